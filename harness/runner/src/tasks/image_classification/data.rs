//! Prepared pictures for training and evaluation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zoo_datasets::tasks::image_classification::PreparedPictures;
use zoo_models::tasks::image_classification::{Classifier, PictureBatch};
use zoo_recipes::DataBlock;
use zoo_results::report::page::SplitCounts;

use super::material::{Pictures, of_models};
use super::prepare::failure;
use super::{Recipe, decode};
use crate::context::Context;
use crate::error::Result;
use crate::run::data::{Decoded, EvaluationBatches, TaskData};

/// Prepared pictures of a recipe.
pub struct PictureData {
    /// Splits and classes.
    pub prepared: Arc<PreparedPictures>,
}

impl TaskData for PictureData {
    type Task = zoo_recipes::ImageClassification;
    type Material = Pictures;

    fn material(&self, _: &Recipe) -> Result<Pictures> {
        Ok(Pictures { prepared: Some(self.prepared.clone()) })
    }

    fn keep(&self, folder: &Path) -> Result<()> {
        self.prepared.keep(folder).map_err(failure)
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), split.fingerprint())).collect()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        let of = |pictures: usize| {
            let count = pictures as u64;
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

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, PictureBatch>> {
        let split = self.prepared.eval_set(name, &recipe.data).map_err(failure)?;
        let batches = split.batches(&recipe.data.pixels, decode::TOGETHER).map_err(failure)?;
        Ok(Box::new(batches.map(|batch| Ok(of_models(batch.map_err(failure)?)))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        (eval, _): (&str, &str),
        model: &Classifier,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, &self.prepared, eval, model)
    }
}
