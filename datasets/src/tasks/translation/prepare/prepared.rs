//! Translation data as token ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zoo_recipes::tasks::translation::{TextDataSpec, TextSetSpec};
use zoo_recipes::{RecipeOf, References, Translation};

use super::error::PrepareError;
use super::pipeline::TextPipeline;
use super::sequences::Sequences;
use crate::batches::PairSource;
use crate::set_size::SetSizeError;
use crate::tasks::translation::{PairSplit, TRAIN};

/// Options of the preparation besides `[data]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareOptions {
    /// Whether target sequences begin with the begin token (`model.decoder.begin_token_in_target`).
    pub begin_token_in_target: bool,
}

impl PrepareOptions {
    /// The options of a recipe.
    pub fn of(recipe: &RecipeOf<Translation>) -> Self {
        Self { begin_token_in_target: recipe.model.decoder.begin_token_in_target() }
    }

    /// Whether a begin token is the decoder's first input but not part of the target sequence.
    pub fn begins_before_target(self, data: &TextDataSpec) -> bool {
        data.begin_token_in_source && !self.begin_token_in_target
    }
}

/// Statistics of one split.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitStatistics {
    /// Number of pairs in the text, including those with an empty side.
    pub pairs_read: u64,
    /// Number of pairs skipped because a side was empty.
    pub skipped_empty: u64,
    /// Number of pairs dropped by the preparation of the corpus.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_by_cleaning: u64,
    /// Number of pairs dropped because a side was too long.
    pub dropped_too_long: u64,
    /// Number of pairs dropped because the ratio of the lengths was too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_unequal: u64,
    /// Number of truncated source sequences.
    pub truncated_source: u64,
    /// Number of truncated target sequences.
    pub truncated_target: u64,
    /// Number of pairs kept.
    pub pairs: u64,
    /// Number of source tokens in the pairs kept, special tokens included.
    pub source_tokens: u64,
    /// Number of target tokens in the pairs kept, special tokens included.
    pub target_tokens: u64,
    /// Number of unknown tokens among the source tokens.
    pub source_unknown: u64,
    /// Number of unknown tokens among the target tokens.
    pub target_unknown: u64,
    /// Length of the longest source sequence, in tokens.
    pub longest_source: u64,
    /// Length of the longest target sequence, in tokens.
    pub longest_target: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The target lines of an evaluation split.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplitReferences {
    /// Lines as read.
    pub raw: Vec<String>,
    /// After the tokenizer's `normalize` steps, words separated by single spaces, not in sub-words.
    pub normalized: Vec<String>,
}

/// One split as token ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreparedSplit {
    /// Name of the split.
    pub name: String,
    /// Source sequences, special tokens included.
    pub source: Sequences,
    /// Target sequences, special tokens included.
    pub target: Sequences,
    /// For each pair, its index in the split's prepared text. Pairs dropped by cleaning are not
    /// counted, and `train` may be shuffled.
    pub lines: Vec<u32>,
    /// The references; `None` for the training split.
    pub references: Option<SplitReferences>,
    /// Statistics of the split.
    pub statistics: SplitStatistics,
}

impl PairSource for PreparedSplit {
    fn len(&self) -> usize {
        self.source.len()
    }

    fn pair(&self, index: u32) -> (&[u32], &[u32]) {
        (
            self.source.get(index as usize).unwrap_or_default(),
            self.target.get(index as usize).unwrap_or_default(),
        )
    }
}

/// A named evaluation set, checked against the recipe.
#[derive(Debug, Clone)]
pub struct EvalSet<'p> {
    /// The split.
    pub split: &'p Arc<PreparedSplit>,
    /// Index of its target language.
    pub target: usize,
    /// The references to score against, one per line.
    pub references: &'p [String],
}

/// All splits as token ids, with the pipeline that made them.
#[derive(Debug)]
pub struct PreparedTranslation {
    /// Converts text to ids and back.
    pub pipeline: TextPipeline,
    /// Target languages. Each has its own decoder.
    pub targets: Vec<String>,
    /// The splits by [`PairSplit::name`].
    pub splits: BTreeMap<String, Arc<PreparedSplit>>,
}

impl PreparedTranslation {
    /// A split by name. `user` is the setting that needs it, for the message.
    pub fn split(&self, name: &str, user: &str) -> Result<&Arc<PreparedSplit>, PrepareError> {
        self.splits.get(name).ok_or_else(|| missing(name, user, self.splits.keys()))
    }

    /// The training split in each target language.
    pub fn train(&self) -> Result<Vec<&Arc<PreparedSplit>>, PrepareError> {
        (0..self.targets.len()).map(|target| self.split_in(TRAIN, target, "training")).collect()
    }

    fn split_in(&self, split: &str, target: usize, user: &str) -> Result<&Arc<PreparedSplit>, PrepareError> {
        self.split(PairSplit::new(split, &self.targets, target).name(), user)
    }

    /// Converts a hypothesis of the model to text; see [`TextPipeline::undo`].
    pub fn undo(&self, ids: &[u32]) -> String {
        self.pipeline.undo(ids)
    }

    /// The evaluation set `name` that `spec` describes, in each of its target languages. There is
    /// only one, except for a `valid` set of all languages. Fails unless the numbers of lines and
    /// reference tokens are as stated.
    pub fn eval_sets(&self, name: &str, spec: &TextSetSpec) -> Result<Vec<EvalSet<'_>>, PrepareError> {
        let targets = spec.targets_among(&self.targets).into_iter();
        targets.map(|target| self.eval_set_in(name, spec, target)).collect()
    }

    /// As [`Self::eval_sets`]. Fails if the set has several target languages.
    pub fn eval_set(&self, name: &str, spec: &TextSetSpec) -> Result<EvalSet<'_>, PrepareError> {
        let mut sets = self.eval_sets(name, spec)?;
        match (sets.pop(), sets.is_empty()) {
            (Some(set), true) => Ok(set),
            _ => Err(PrepareError::Languages { set: name.into(), targets: self.targets.join(", ") }),
        }
    }

    fn eval_set_in(
        &self,
        name: &str,
        spec: &TextSetSpec,
        target: usize,
    ) -> Result<EvalSet<'_>, PrepareError> {
        let user = format!("data.eval.{name}");
        let split = self.split_in(&spec.split, target, &user)?;
        let references = match (&split.references, spec.references) {
            (Some(references), References::Normalized) => &references.normalized,
            (Some(references), References::Raw) => &references.raw,
            (None, _) => {
                return Err(PrepareError::Unavailable {
                    what: "evaluation on the training split",
                    hint: "give the evaluation set a split of its own",
                });
            }
        };
        let due = |what, found, expected| SetSizeError::check((name, &split.name), what, found, expected);
        let lines = references.len() + split.statistics.dropped_by_cleaning as usize;
        due("lines", lines, spec.lines)?;
        if let Some(expected) = spec.reference_tokens {
            let words = |line: &String| line.split_whitespace().count();
            due("reference tokens", references.iter().map(words).sum(), expected)?;
        }
        Ok(EvalSet { split, target, references })
    }

    /// Checks every evaluation set of `data`.
    pub(super) fn check_eval_sets(&self, data: &TextDataSpec) -> Result<(), PrepareError> {
        data.eval.iter().try_for_each(|(name, spec)| self.eval_sets(name, spec).map(|_| ()))
    }
}

fn missing<'k>(split: &str, user: &str, known: impl Iterator<Item = &'k String>) -> PrepareError {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    PrepareError::MissingSplit { split: split.to_string(), user: user.to_string(), known: known.join(", ") }
}
