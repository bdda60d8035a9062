//! Prepared texts for training and evaluation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zoo_datasets::tasks::text_classification::PreparedTexts;
use zoo_models::tasks::text_classification::{TextBatch, TextModel};
use zoo_recipes::DataBlock;
use zoo_results::exit::Exit;
use zoo_results::report::page::SplitCounts;

use super::material::{Texts, of_models};
use super::prepare::failure;
use super::{Recipe, decode};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::data::{Decoded, EvaluationBatches, TaskData};
use crate::run::folder::{Run, VOCABULARY};
use crate::run::numbering;

/// Prepared texts of a recipe.
pub struct TextData {
    /// Splits, words and classes.
    pub prepared: Arc<PreparedTexts>,
}

impl TaskData for TextData {
    type Task = zoo_recipes::TextClassification;
    type Material = Texts;

    fn material(&self, recipe: &Recipe) -> Result<Texts> {
        // Only the texts determine how many positions the layers read.
        let positions = u32::try_from(self.prepared.positions).unwrap_or(u32::MAX);
        if let Err(problem) = recipe.model.shapes(positions) {
            return Err(Failure::new(Exit::Data, problem.to_string())
                .hint("the longest text is too short: a larger `data.length`, or smaller kernels"));
        }
        Ok(Texts { prepared: Some(self.prepared.clone()) })
    }

    fn keep(&self, folder: &Path) -> Result<()> {
        self.prepared.keep(folder).map_err(failure)
    }

    fn check(&self, recipe: &Recipe, run: &Run) -> Result<()> {
        numbering::check_training(self, run)?;
        // Texts of other words may have the same numbers.
        let kept = PreparedTexts::kept(&recipe.data, &run.folder.join(VOCABULARY)).map_err(failure)?;
        let same = |kept: &PreparedTexts| {
            let now = &self.prepared;
            (&kept.vocabulary, &kept.classes, kept.positions)
                == (&now.vocabulary, &now.classes, now.positions)
        };
        match kept.as_ref().is_none_or(same) {
            true => Ok(()),
            false => Err(numbering::changed(run, "they have other words, classes or lengths")),
        }
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), split.fingerprint())).collect()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        let of = |texts: usize| {
            let count = texts as u64;
            SplitCounts { read: count, kept: count, left_out: BTreeMap::new(), amounts: BTreeMap::new() }
        };
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), of(split.labels.len()))).collect()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        Ok(vec!["train".to_owned()])
    }

    fn evaluation_splits(&self, recipe: &Recipe, name: &str) -> Result<Vec<String>> {
        Ok(recipe.data.eval_set(name).into_iter().map(|set| set.split.to_owned()).collect())
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, TextBatch>> {
        let split = self.prepared.eval_set(name, &recipe.data).map_err(failure)?;
        Ok(Box::new(split.batches(decode::TOGETHER).map(|batch| Ok(of_models(batch)))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        (eval, _): (&str, &str),
        model: &TextModel,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, &self.prepared, eval, model)
    }
}
