//! The text of a recipe as numbers, and its batches.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::language_modelling::{
    EvaluationWindowsSpec, LanguageDataSpec, LossDivisor, TrainingWindowsSpec, VocabularySplits,
};

use super::chunks::Chunks;
use super::error::LanguageDataError;
use super::sentences::Sentences;
use super::source::{LIST, split_names, texts, unknown};
use super::units::Units;
use super::windows::{Contiguous, Scattered, WindowBatch};
use crate::batches::Ahead;
use crate::corpora::FetchedCorpus;
use crate::set_size::SetSizeError;

/// One split of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageSplit {
    /// Number of each unit, in the order of the text.
    pub units: Arc<[u32]>,
    /// Number of lines.
    pub lines: usize,
}

impl LanguageSplit {
    /// SHA-256 over the units.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        self.units.iter().for_each(|unit| hash.update(unit.to_le_bytes()));
        hex::encode(hash.finalize())
    }
}

/// The splits of a recipe and their units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedLanguage {
    /// Splits by name.
    pub splits: BTreeMap<String, LanguageSplit>,
    /// The units and their numbers.
    pub units: Units,
}

/// Reads the text of all splits, and numbers its units. `base` is the folder that the recipe's
/// paths are relative to.
///
/// # Errors
/// The text cannot be read, or it is not what the recipe says.
pub fn prepare_language(
    data: &LanguageDataSpec,
    corpus: Option<&FetchedCorpus>,
    base: &Path,
) -> Result<PreparedLanguage, LanguageDataError> {
    let texts = texts(data, corpus, base)?;
    let text_of = |name: &String| texts.get(name).ok_or_else(|| unknown(name, texts.keys()));
    let names = split_names(data);
    let of_texts = |names: &[String]| {
        let counted = names.iter().map(text_of).collect::<Result<Vec<_>, _>>()?;
        Units::of_texts(&data.unit, data.vocabulary, counted.into_iter().map(String::as_str))
    };
    let units = match data.vocabulary.of {
        VocabularySplits::Training => of_texts(&names[..1])?,
        VocabularySplits::All => of_texts(&names)?,
        VocabularySplits::List => Units::of_list(&data.unit, data.vocabulary, text_of(&LIST.to_owned())?)?,
    };
    let mut splits = BTreeMap::new();
    for name in names {
        let most = data.share.map_or(usize::MAX, |share| share.most(name == data.training()));
        let text = first_lines(text_of(&name)?, most);
        let lines = text.split_inclusive('\n').count();
        let split = LanguageSplit { units: units.numbers(&name, text)?.into(), lines };
        splits.insert(name, split);
    }
    Ok(PreparedLanguage { splits, units })
}

/// The first lines of a text.
fn first_lines(text: &str, most: usize) -> &str {
    let bytes = text.split_inclusive('\n').take(most).map(str::len).sum();
    &text[..bytes]
}

impl PreparedLanguage {
    /// The split of an evaluation set.
    ///
    /// # Errors
    /// The set or its split is missing, or it has another number of lines than the recipe says.
    pub fn eval_set(&self, name: &str, data: &LanguageDataSpec) -> Result<&LanguageSplit, LanguageDataError> {
        let missing = || unknown(name, self.splits.keys());
        let set = data.eval.get(name).ok_or_else(missing)?;
        let split = self.splits.get(&set.split).ok_or_else(missing)?;
        SetSizeError::check((name, &set.split), "lines", split.lines, set.lines)?;
        Ok(split)
    }

    /// The batches of an evaluation set in order, each with the number of units that count although
    /// they are not predicted.
    ///
    /// # Errors
    /// As for [`Self::eval_set`]; the text is too short for a window.
    pub fn evaluation(
        &self,
        name: &str,
        data: &LanguageDataSpec,
    ) -> Result<Box<dyn ExactSizeIterator<Item = (WindowBatch, u64)>>, LanguageDataError> {
        let split = self.eval_set(name, data)?;
        Ok(match data.eval[name].windows {
            EvaluationWindowsSpec::Contiguous { rows, steps, last, state: _, divisor } => {
                let windows = Contiguous::new(name, &split.units, [rows, steps], last)?;
                let given = if divisor == LossDivisor::All { u64::from(rows) } else { 0 };
                let of = move |at| (windows.batch(at), if at == 0 { given } else { 0 });
                Box::new((0..Contiguous::new(name, &split.units, [rows, steps], last)?.len()).map(of))
            }
            EvaluationWindowsSpec::Random { rows, steps, batches, seed } => {
                let windows = Scattered::new(name, &split.units, [rows, steps], false, seed)?;
                Box::new((0..batches).map(move |at| (windows.batch(u64::from(at)), 0)))
            }
            EvaluationWindowsSpec::Chunks { rows, steps, first_units } => {
                let chunks = Chunks::evaluation(name, &split.units, [rows, steps], first_units)?;
                Box::new((0..chunks.filled()).map(move |at| (chunks.batch(at as u64), 0)))
            }
            EvaluationWindowsSpec::Sentences { rows, steps } => {
                let end = self.units.end_of_line();
                let windows = Sentences::evaluation(name, &split.units, end, [rows, steps])?;
                Box::new((0..windows.all() as usize).map(move |at| (windows.batch(at as u64), 0)))
            }
        })
    }
}

/// The training batches of a recipe. A batch is a function of the seed, the epoch and its index.
#[derive(Debug, Clone)]
pub struct TrainingWindows {
    windows: Windows,
    batches: u64,
}

#[derive(Debug, Clone)]
enum Windows {
    Contiguous(Contiguous),
    Scattered(Scattered),
    Chunks(Chunks),
    Sentences(Sentences),
}

impl TrainingWindows {
    /// The batches of a recipe's training split.
    ///
    /// # Errors
    /// The split is missing, or too short for a window.
    pub fn new(
        prepared: &PreparedLanguage,
        data: &LanguageDataSpec,
        seed: u64,
    ) -> Result<Self, LanguageDataError> {
        let name = data.training();
        let split = prepared.splits.get(name).ok_or_else(|| unknown(name, prepared.splits.keys()))?;
        Ok(match data.batching {
            TrainingWindowsSpec::Contiguous { rows, steps, last, state: _ } => {
                let windows = Contiguous::new(name, &split.units, [rows, steps], last)?;
                let batches = windows.len() as u64;
                Self { windows: Windows::Contiguous(windows), batches }
            }
            TrainingWindowsSpec::Random { rows, steps, batches } => {
                let windows = Scattered::new(name, &split.units, [rows, steps], true, seed)?;
                Self { windows: Windows::Scattered(windows), batches: u64::from(batches) }
            }
            TrainingWindowsSpec::Chunks { rows, steps, shuffled, first_units } => {
                let order = (seed, shuffled);
                let chunks = Chunks::training(name, &split.units, [rows, steps], first_units, order)?;
                let batches = chunks.full() as u64;
                Self { windows: Windows::Chunks(chunks), batches }
            }
            TrainingWindowsSpec::Sentences { rows, steps } => {
                let end = prepared.units.end_of_line();
                let windows = Sentences::training(name, &split.units, end, [rows, steps], seed)?;
                let batches = windows.full();
                Self { windows: Windows::Sentences(windows), batches }
            }
        })
    }

    /// Number of batches of an epoch.
    pub fn per_epoch(&self) -> u64 {
        self.batches
    }

    /// One batch of an epoch.
    pub fn batch(&self, epoch: u64, index: u64) -> WindowBatch {
        match &self.windows {
            Windows::Contiguous(windows) => windows.batch(index as usize),
            Windows::Scattered(windows) => windows.batch(self.number(epoch, index)),
            Windows::Chunks(chunks) => chunks.batch(self.number(epoch, index)),
            Windows::Sentences(windows) => windows.batch(self.number(epoch, index)),
        }
    }

    /// Number of a batch, counted over all epochs.
    fn number(&self, epoch: u64, index: u64) -> u64 {
        epoch.wrapping_mul(self.batches).wrapping_add(index)
    }

    /// The batches of an epoch from index `from` on of which `wanted` says yes, made on a thread of
    /// their own.
    pub fn ahead(
        &self,
        epoch: u64,
        from: u64,
        wanted: impl Fn(u64) -> bool + Send + 'static,
    ) -> Ahead<WindowBatch, LanguageDataError> {
        let windows = self.clone();
        let indices = (from..self.batches).filter(move |index| wanted(*index));
        Ahead::new("windows", indices.map(move |index| Ok(windows.batch(epoch, index))))
    }
}
