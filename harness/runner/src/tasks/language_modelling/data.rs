//! A prepared text for training and evaluation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zoo_datasets::tasks::language_modelling::PreparedLanguage;
use zoo_models::tasks::language_modelling::{LanguageModel, WindowBatch};
use zoo_recipes::DataBlock;
use zoo_results::report::page::SplitCounts;

use super::material::{Text, of_models};
use super::prepare::failure;
use super::{Recipe, decode};
use crate::context::Context;
use crate::error::Result;
use crate::run::data::{Decoded, EvaluationBatches, TaskData};
use crate::run::folder::{Run, VOCABULARY};
use crate::run::numbering;

/// The prepared text of a recipe.
pub struct LanguageData {
    /// Splits and units.
    pub prepared: Arc<PreparedLanguage>,
}

impl TaskData for LanguageData {
    type Task = zoo_recipes::LanguageModelling;
    type Material = Text;

    fn material(&self, _: &Recipe) -> Result<Text> {
        Ok(Text { prepared: Some(self.prepared.clone()) })
    }

    fn keep(&self, folder: &Path) -> Result<()> {
        self.prepared.keep(folder).map_err(failure)
    }

    fn check(&self, recipe: &Recipe, run: &Run) -> Result<()> {
        numbering::check_training(self, run)?;
        // Texts of other units may have the same numbers.
        let kept = PreparedLanguage::kept(&recipe.data, &run.folder.join(VOCABULARY)).map_err(failure)?;
        match kept.is_none_or(|kept| kept.units == self.prepared.units) {
            true => Ok(()),
            false => Err(numbering::changed(run, "they have other units")),
        }
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), split.fingerprint())).collect()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        let of = |lines: usize| {
            let count = lines as u64;
            SplitCounts { read: count, kept: count, left_out: BTreeMap::new(), amounts: BTreeMap::new() }
        };
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), of(split.lines))).collect()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        Ok(vec!["train".to_owned()])
    }

    fn evaluation_splits(&self, recipe: &Recipe, name: &str) -> Result<Vec<String>> {
        Ok(recipe.data.eval_set(name).into_iter().map(|set| set.split.to_owned()).collect())
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, WindowBatch>> {
        let batches = self.prepared.evaluation(name, &recipe.data).map_err(failure)?;
        Ok(Box::new(batches.map(|(batch, _)| Ok(of_models(batch)))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        (eval, _): (&str, &str),
        model: &LanguageModel,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, &self.prepared, eval, model)
    }
}
