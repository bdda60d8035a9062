//! Prepared pairs of token sequences for training and evaluation.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};
use zoo_datasets::tasks::translation::prepare::{PreparedSplit, PreparedTranslation};
use zoo_models::tasks::translation::{PairBatch, Seq2Seq, Vocabularies};
use zoo_results::report::page::SplitCounts;

use super::batches::validation_batches;
use super::material::Text;
use super::{Recipe, decode};
use crate::context::Context;
use crate::error::Result;
use crate::run::data::{Decoded, EvaluationBatches, TaskData};
use crate::run::folder::{Run, VOCABULARY};
use crate::run::numbering;

impl TaskData for PreparedTranslation {
    type Task = zoo_recipes::Translation;
    type Material = Text;

    fn material(&self, _: &Recipe) -> Result<Text> {
        let train = self.train()?.into_iter().cloned().collect();
        Ok(Text { train, vocabularies: vocabularies(self) })
    }

    fn keep(&self, folder: &Path) -> Result<()> {
        Ok(self.keep(folder)?)
    }

    fn check(&self, _: &Recipe, run: &Run) -> Result<()> {
        numbering::check_training(self, run)?;
        // Text of other words may have the same numbers.
        match self.is_kept(&run.folder.join(VOCABULARY))? {
            Some(false) => Err(numbering::changed(run, "they have other sub-words or words")),
            _ => Ok(()),
        }
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        let digest = |split: &PreparedSplit| {
            let mut hash = Sha256::new();
            for sequence in split.source.iter().chain(split.target.iter()) {
                hash.update((sequence.len() as u64).to_le_bytes());
                sequence.iter().for_each(|id| hash.update(id.to_le_bytes()));
            }
            hex::encode(hash.finalize())
        };
        self.splits.iter().map(|(name, split)| (name.clone(), digest(split))).collect()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        let of = |split: &PreparedSplit| {
            let counts = &split.statistics;
            let left_out = [
                ("a side is empty", counts.skipped_empty),
                ("the corpus's preparation", counts.dropped_by_cleaning),
                ("too long", counts.dropped_too_long),
                ("too unequal", counts.dropped_unequal),
            ];
            let amounts = [
                ("source tokens", counts.source_tokens),
                ("target tokens", counts.target_tokens),
                ("source tokens unknown", counts.source_unknown),
                ("target tokens unknown", counts.target_unknown),
                ("source sides cut", counts.truncated_source),
                ("target sides cut", counts.truncated_target),
                ("longest source", counts.longest_source),
                ("longest target", counts.longest_target),
            ];
            let left_out = left_out.into_iter().filter(|(_, count)| *count > 0);
            SplitCounts {
                read: counts.pairs_read,
                kept: counts.pairs,
                left_out: left_out.map(|(why, count)| (why.to_owned(), count)).collect(),
                amounts: amounts.into_iter().map(|(what, count)| (what.to_owned(), count as f64)).collect(),
            }
        };
        self.splits.iter().map(|(name, split)| (name.clone(), of(split))).collect()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        Ok(self.train()?.into_iter().map(|split| split.name.clone()).collect())
    }

    fn evaluation_splits(&self, recipe: &Recipe, name: &str) -> Result<Vec<String>> {
        Ok(self
            .eval_sets(name, &recipe.data.eval[name])?
            .into_iter()
            .map(|set| set.split.name.clone())
            .collect())
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, PairBatch>> {
        let sets = self.eval_sets(name, &recipe.data.eval[name])?;
        Ok(Box::new(sets.into_iter().flat_map(|set| validation_batches(&set)).map(Ok)))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &Seq2Seq,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, self, wanted, model)
    }
}

/// Vocabulary sizes and special ids of prepared data.
pub(super) fn vocabularies(prepared: &PreparedTranslation) -> Vocabularies {
    let (source, target) = (&prepared.pipeline.source, &prepared.pipeline.target);
    let ids = target.specials();
    Vocabularies {
        source: source.len(),
        target: target.len(),
        languages: prepared.targets.len(),
        pad: ids.pad,
        begin: ids.begin,
        end: ids.end,
    }
}
