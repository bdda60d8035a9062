//! Translation data as ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zoo_recipes::{DataSpec, EvalSetSpec, FilterSpec, References, TokenizerSpec, TooLong};

use super::error::PrepareError;
use super::pipeline::{TextPipeline, Treatment, with_specials};
use super::sequences::Sequences;
use crate::batches::PairSource;
use crate::readers::{SplitText, TRAIN};
use crate::text::bpe::{Encoder, Learner, undo};
use crate::text::vocabulary::Vocabulary;

/// What preparing needs to know beside `[data]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareOptions {
    /// Target sequences begin with the begin token (`model.decoder.begin_token_in_target`).
    pub begin_token_in_target: bool,
}

/// Counts of one split.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitStatistics {
    /// Pairs of the text, empty ones included.
    pub pairs_read: u64,
    /// Pairs left out because a side was empty.
    pub skipped_empty: u64,
    /// Pairs left out because a side was too long.
    pub dropped_too_long: u64,
    /// Source sequences cut.
    pub truncated_source: u64,
    /// Target sequences cut.
    pub truncated_target: u64,
    /// Pairs kept.
    pub pairs: u64,
    /// Source tokens of pairs kept, special tokens included.
    pub source_tokens: u64,
    /// Target tokens of pairs kept, special tokens included.
    pub target_tokens: u64,
    /// Unknown tokens among the source tokens.
    pub source_unknown: u64,
    /// Unknown tokens among the target tokens.
    pub target_unknown: u64,
    /// Longest source sequence, in tokens.
    pub longest_source: u64,
    /// Longest target sequence, in tokens.
    pub longest_target: u64,
}

/// The target lines of a split that is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplitReferences {
    /// As read.
    pub raw: Vec<String>,
    /// After the tokenizer's `normalize` steps, words separated by single spaces, not in sub-words.
    pub normalized: Vec<String>,
}

/// One split as ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreparedSplit {
    /// Its name.
    pub name: String,
    /// Source sequences, special tokens included.
    pub source: Sequences,
    /// Target sequences, special tokens included.
    pub target: Sequences,
    /// For each pair, its index in the split's text.
    pub lines: Vec<u32>,
    /// The references; `None` for the training split.
    pub references: Option<SplitReferences>,
    /// Counts.
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

/// A named evaluation set, checked against what the recipe says of it.
#[derive(Debug, Clone)]
pub struct EvalSet<'p> {
    /// The split.
    pub split: &'p Arc<PreparedSplit>,
    /// The references to score against, one a line.
    pub references: &'p [String],
}

/// All splits as ids, with what made them.
#[derive(Debug)]
pub struct PreparedTranslation {
    /// Text to ids and back.
    pub pipeline: TextPipeline,
    /// The splits by name.
    pub splits: BTreeMap<String, Arc<PreparedSplit>>,
}

impl PreparedTranslation {
    /// A split by name; `user` is what needs it, for the message.
    pub fn split(&self, name: &str, user: &str) -> Result<&Arc<PreparedSplit>, PrepareError> {
        self.splits.get(name).ok_or_else(|| missing(name, user, self.splits.keys()))
    }

    /// The training split.
    pub fn train(&self) -> Result<&Arc<PreparedSplit>, PrepareError> {
        self.split(TRAIN, "training")
    }

    /// A hypothesis of the model as text; see [`TextPipeline::undo`].
    pub fn undo(&self, ids: &[u32]) -> String {
        self.pipeline.undo(ids)
    }

    /// The evaluation set `name` as `spec` says; an error unless lines and reference tokens are as stated.
    pub fn eval_set(&self, name: &str, spec: &EvalSetSpec) -> Result<EvalSet<'_>, PrepareError> {
        let user = format!("data.eval.{name}");
        let split = self.split(&spec.split, &user)?;
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
        let differs = |what, found: usize, expected: u32| PrepareError::EvalSet {
            set: name.to_string(),
            split: spec.split.clone(),
            what,
            found,
            expected,
        };
        if references.len() != spec.lines as usize {
            return Err(differs("lines", references.len(), spec.lines));
        }
        if let Some(expected) = spec.reference_tokens {
            let found = references.iter().map(|line| line.split_whitespace().count()).sum();
            if found != expected as usize {
                return Err(differs("reference tokens", found, expected));
            }
        }
        Ok(EvalSet { split, references })
    }

    /// Checks every evaluation set of `data`.
    pub(super) fn check_eval_sets(&self, data: &DataSpec) -> Result<(), PrepareError> {
        data.eval.iter().try_for_each(|(name, spec)| self.eval_set(name, spec).map(|_| ()))
    }
}

fn missing<'k>(split: &str, user: &str, known: impl Iterator<Item = &'k String>) -> PrepareError {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    PrepareError::MissingSplit { split: split.to_string(), user: user.to_string(), known: known.join(", ") }
}

/// The text of a split in tokens, as it was numbered.
pub(super) type EncodedText = BTreeMap<String, (Vec<String>, Vec<String>)>;

/// Normalises, learns sub-words and vocabularies on `train`, and numbers every split. Only `train` is filtered.
///
/// `words` has one vocabulary for both sides; so has `subword-nmt` with `joined_dictionary`.
pub fn prepare(
    data: &DataSpec,
    splits: &BTreeMap<String, SplitText>,
    options: PrepareOptions,
) -> Result<PreparedTranslation, PrepareError> {
    prepare_with_text(data, splits, options).map(|(prepared, _)| prepared)
}

pub(super) fn prepare_with_text(
    data: &DataSpec,
    splits: &BTreeMap<String, SplitText>,
    options: PrepareOptions,
) -> Result<(PreparedTranslation, EncodedText), PrepareError> {
    let treatment = Treatment::new(data)?;
    if !splits.contains_key(TRAIN) {
        return Err(missing(TRAIN, "training", splits.keys()));
    }
    for (name, text) in splits {
        if text.source.len() != text.target.len() {
            let (source_lines, target_lines) = (text.source.len(), text.target.len());
            return Err(PrepareError::LineCounts { split: name.clone(), source_lines, target_lines });
        }
    }
    let mut encoded: EncodedText = splits
        .iter()
        .map(|(name, text)| {
            (name.clone(), (treatment.source.lines(&text.source), treatment.target.lines(&text.target)))
        })
        .collect();
    let references: BTreeMap<&String, SplitReferences> = splits
        .iter()
        .filter(|(name, _)| name.as_str() != TRAIN)
        .map(|(name, text)| {
            let joined = |line: &String| if treatment.subwords { undo(line) } else { line.clone() };
            let normalized = encoded[name].1.iter().map(|line| single_spaced(&joined(line))).collect();
            (name, SplitReferences { raw: text.target.clone(), normalized })
        })
        .collect();

    let codes = match &data.tokenizer {
        TokenizerSpec::SubwordNmt { merges, .. } => {
            let mut learner = Learner::default();
            let (source, target) = &encoded[TRAIN];
            source.iter().chain(target).for_each(|line| learner.add_line(line));
            let codes = learner.learn(*merges as usize);
            let encoder = Encoder::new(&codes);
            for (source, target) in encoded.values_mut() {
                *source = encoder.lines(source);
                *target = encoder.lines(target);
            }
            Some(codes)
        }
        _ => None,
    };
    let vocabularies = vocabularies(&data.tokenizer, &encoded[TRAIN])?;
    let begin = (data.begin_token_in_source, options.begin_token_in_target);
    let pipeline = TextPipeline::new(treatment, codes, vocabularies, begin);

    let no_filter = FilterSpec::default();
    let mut numbered = BTreeMap::new();
    for (name, text) in splits {
        let filter = if name == TRAIN { &data.filter } else { &no_filter };
        let mut split = number(&pipeline, &encoded[name], filter);
        split.name.clone_from(name);
        split.references = references.get(name).cloned();
        split.statistics.pairs_read = text.len() as u64 + text.skipped_empty;
        split.statistics.skipped_empty = text.skipped_empty;
        if name == TRAIN && split.source.is_empty() {
            return Err(PrepareError::NothingToTrainOn { read: split.statistics.pairs_read });
        }
        numbered.insert(name.clone(), Arc::new(split));
    }
    let prepared = PreparedTranslation { pipeline, splits: numbered };
    prepared.check_eval_sets(data)?;
    Ok((prepared, encoded))
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Source and target vocabulary, counted on the encoded training text before any filter.
fn vocabularies(
    tokenizer: &TokenizerSpec,
    (source, target): &(Vec<String>, Vec<String>),
) -> Result<(Arc<Vocabulary>, Arc<Vocabulary>), PrepareError> {
    let (specials, max_rows, pad_to, joined) = match tokenizer {
        TokenizerSpec::Words { specials, pad_vocabulary_to, max_vocabulary, .. } => {
            (*specials, *max_vocabulary, *pad_vocabulary_to, true)
        }
        TokenizerSpec::SubwordNmt {
            specials, pad_vocabulary_to, max_vocabulary, joined_dictionary, ..
        } => (*specials, *max_vocabulary, *pad_vocabulary_to, *joined_dictionary),
        TokenizerSpec::SentencePiece { .. } => {
            return Err(super::pipeline::steps(tokenizer).expect_err("this tokenizer has no steps"));
        }
    };
    Ok(if joined {
        let both = source.iter().chain(target);
        let both = Arc::new(Vocabulary::from_most_frequent(both, specials, pad_to, max_rows));
        (both.clone(), both)
    } else {
        let side =
            |lines: &[String]| Arc::new(Vocabulary::from_most_frequent(lines, specials, pad_to, max_rows));
        (side(source), side(target))
    })
}

/// What became of one pair.
struct Numbered {
    source: (Vec<u32>, bool),
    target: (Vec<u32>, bool),
    dropped: bool,
}

fn number(pipeline: &TextPipeline, text: &(Vec<String>, Vec<String>), filter: &FilterSpec) -> PreparedSplit {
    let cut = filter.too_long == TooLong::Truncate;
    let (max_source, max_target) = (filter.max_source_tokens, filter.max_target_tokens);
    let side = |line: &str, vocabulary: &Vocabulary, begin, limit: Option<u32>| {
        with_specials(&vocabulary.ids(line), vocabulary, begin, limit.filter(|_| cut))
    };
    let too_long = |sequence: &[u32], limit: Option<u32>| limit.is_some_and(|l| sequence.len() > l as usize);
    let pairs: Vec<Numbered> = text
        .0
        .par_iter()
        .zip(&text.1)
        .map(|(source, target)| {
            let source = side(source, &pipeline.source, pipeline.begin_in_source, max_source);
            let target = side(target, &pipeline.target, pipeline.begin_in_target, max_target);
            let dropped = !cut && (too_long(&source.0, max_source) || too_long(&target.0, max_target));
            Numbered { source, target, dropped }
        })
        .collect();
    let mut split = PreparedSplit::default();
    let statistics = &mut split.statistics;
    for (line, pair) in pairs.iter().enumerate() {
        if pair.dropped {
            statistics.dropped_too_long += 1;
            continue;
        }
        statistics.truncated_source += u64::from(pair.source.1);
        statistics.truncated_target += u64::from(pair.target.1);
        split.source.push(&pair.source.0);
        split.target.push(&pair.target.0);
        split.lines.push(u32::try_from(line).expect("indices of lines are 32 bit"));
    }
    let unknown = |sequences: &Sequences, vocabulary: &Vocabulary| {
        let unknown = vocabulary.specials().unknown;
        sequences.tokens().iter().filter(|&&id| id == unknown).count() as u64
    };
    statistics.pairs = split.lines.len() as u64;
    statistics.source_tokens = split.source.tokens().len() as u64;
    statistics.target_tokens = split.target.tokens().len() as u64;
    statistics.source_unknown = unknown(&split.source, &pipeline.source);
    statistics.target_unknown = unknown(&split.target, &pipeline.target);
    statistics.longest_source = split.source.longest() as u64;
    statistics.longest_target = split.target.longest() as u64;
    split
}
