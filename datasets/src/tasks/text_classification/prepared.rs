//! The texts of a recipe in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::text_classification::{LabelledDataSpec, LabelledLengthSpec};

use super::batches::TextBatch;
use super::error::LabelledTextError;
use super::folds::folded;
use super::source::{Read, read};
use super::vocabulary::{KnownWords, LabelledVocabulary, Words, fit, padding, words};
use crate::corpora::{FetchedCorpus, LabelledTexts};
use crate::random::{Purpose, RandomStream};
use crate::set_size::SetSizeError;

/// The texts of one split, in the order of their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSplit {
    /// Name of the split.
    pub name: String,
    /// Numbers of each text, neither padded nor cut.
    pub texts: Vec<Vec<u32>>,
    /// Class of each text.
    pub labels: Vec<u32>,
    /// The part of each text in a cross-validation; empty without one.
    pub folds: Vec<u32>,
    length: LabelledLengthSpec,
    positions: usize,
    /// Number of padding.
    padding: u32,
}

impl TextSplit {
    /// SHA-256 over the numbers of the texts and their classes.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.positions as u64).to_le_bytes());
        for (text, label) in self.texts.iter().zip(&self.labels) {
            hash.update(label.to_le_bytes());
            hash.update((text.len() as u64).to_le_bytes());
            text.iter().for_each(|number| hash.update(number.to_le_bytes()));
        }
        self.folds.iter().for_each(|fold| hash.update(fold.to_le_bytes()));
        hex::encode(hash.finalize())
    }

    /// A batch of some texts.
    pub(super) fn batch(&self, texts: &[usize]) -> TextBatch {
        let mut ids = Vec::with_capacity(texts.len() * self.positions);
        for text in texts {
            fit(self.length, &self.texts[*text], self.positions, self.padding, &mut ids);
        }
        let labels = texts.iter().map(|text| self.labels[*text]).collect();
        let fold = texts.first().and_then(|text| self.folds.get(*text)).copied().unwrap_or(0);
        TextBatch { ids, labels, fold }
    }

    /// The texts in their order, `together` in a batch; the last batch may have fewer. A batch has
    /// texts of one part of a cross-validation.
    pub fn batches(&self, together: usize) -> impl Iterator<Item = TextBatch> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            let fold = |text: usize| self.folds.get(text).copied().unwrap_or(0);
            let most = self.texts.len().min(start + together.max(1));
            let texts: Vec<usize> = (start..most).take_while(|text| fold(*text) == fold(start)).collect();
            start += texts.len();
            (!texts.is_empty()).then(|| self.batch(&texts))
        })
    }

    /// Indices of the texts of each part of a cross-validation; all texts without one.
    pub(super) fn by_fold(&self) -> Vec<Vec<usize>> {
        let mut found: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for text in 0..self.texts.len() {
            found.entry(self.folds.get(text).copied().unwrap_or(0)).or_default().push(text);
        }
        found.into_values().collect()
    }

    /// A split of some of the texts.
    pub(super) fn part(&self, name: &str, texts: &[usize], folds: &[u32]) -> Self {
        Self {
            name: name.to_owned(),
            texts: texts.iter().map(|text| self.texts[*text].clone()).collect(),
            labels: texts.iter().map(|text| self.labels[*text]).collect(),
            folds: folds.to_vec(),
            length: self.length,
            positions: self.positions,
            padding: self.padding,
        }
    }

    /// Appends some texts of another split as those of a part.
    pub(super) fn append(&mut self, of: &Self, texts: &[usize], fold: u32) {
        let more = of.part(&self.name, texts, &vec![fold; texts.len()]);
        self.texts.extend(more.texts);
        self.labels.extend(more.labels);
        self.folds.extend(more.folds);
    }
}

/// The splits of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedTexts {
    /// Splits by name.
    pub splits: BTreeMap<String, TextSplit>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Words with their numbers.
    pub vocabulary: LabelledVocabulary,
    /// Positions of the model's input.
    pub positions: usize,
}

impl PreparedTexts {
    /// The split of an evaluation set.
    ///
    /// # Errors
    /// The set or its split is missing, or it has another number of texts than the recipe says.
    pub fn eval_set(&self, name: &str, data: &LabelledDataSpec) -> Result<&TextSplit, LabelledTextError> {
        let set = data.eval.get(name).ok_or_else(|| self.unknown(name))?;
        let split = self.splits.get(&set.split).ok_or_else(|| self.unknown(name))?;
        // Of a share, every part of a cross-validation has its own texts.
        if data.share.is_none() || data.folds.is_none() {
            SetSizeError::check((name, &set.split), "texts", split.texts.len(), set.lines)?;
        }
        Ok(split)
    }

    /// A text of the user's as a batch of one, with the class 0.
    pub fn text(&self, data: &LabelledDataSpec, text: &[u8]) -> TextBatch {
        let numbers = self.vocabulary.numbers(&words(&data.tokenizer, self.vocabulary.known(), text));
        let mut ids = Vec::with_capacity(self.positions);
        fit(data.length, &numbers, self.positions, padding(&data.tokenizer), &mut ids);
        TextBatch { ids, labels: vec![0], fold: 0 }
    }

    /// The training split.
    ///
    /// # Errors
    /// It was not prepared.
    pub fn train(&self, data: &LabelledDataSpec) -> Result<&TextSplit, LabelledTextError> {
        self.splits.get(data.training()).ok_or_else(|| self.unknown(data.training()))
    }

    fn unknown(&self, split: &str) -> LabelledTextError {
        let known: Vec<&str> = self.splits.keys().map(String::as_str).collect();
        LabelledTextError::UnknownSplit { split: split.to_owned(), known: known.join(", ") }
    }
}

/// Reads the texts of all splits that the recipe uses. `base` is the folder that the recipe's paths
/// are relative to. `known` are the words of a language model, if the recipe's tokenizer has them;
/// otherwise the training split numbers the words of all others. It numbers their classes in any
/// case, so none can be prepared alone.
///
/// # Errors
/// The texts cannot be read, or they are not what the recipe says.
pub fn prepare_texts(
    data: &LabelledDataSpec,
    corpus: Option<&FetchedCorpus>,
    base: &Path,
    known: Option<KnownWords>,
) -> Result<PreparedTexts, LabelledTextError> {
    let training = data.training();
    let Read { texts, classes } = read(data, corpus, base, training, None)?;
    check(data, training, &classes)?;
    let texts = first_of_each_class(texts, data.share.map(|share| share.most(true)));
    let mut splits: Vec<(String, LabelledTexts)> = Vec::new();
    match &data.held_out {
        Some(part) => {
            let most = data.share.map_or(part.texts, |share| part.texts.min(share.eval));
            let [rest, taken] = parted(texts, most, part.seed)?;
            splits.extend([(training.to_owned(), rest), (part.split.clone(), taken)]);
        }
        None => splits.push((training.to_owned(), texts)),
    }
    let evaluated: BTreeSet<&str> = data.eval.values().map(|set| set.split.as_str()).collect();
    for split in evaluated {
        if data.folds.is_some() || splits.iter().any(|(name, _)| name == split) {
            continue;
        }
        let other = read(data, corpus, base, split, Some(&classes))?;
        check(data, split, &other.classes)?;
        let most = data.share.map(|share| share.most(false));
        splits.push((split.to_owned(), first_of_each_class(other.texts, most)));
    }
    let mut prepared = numbered(data, splits, classes, known)?;
    if let Some(spec) = &data.folds
        && let Some(all) = prepared.splits.remove(training)
    {
        let splits = folded(&all, spec, data.batching.texts as usize);
        prepared.splits.extend(splits.map(|split| (split.name.clone(), split)));
    }
    Ok(prepared)
}

fn check(data: &LabelledDataSpec, split: &str, classes: &[String]) -> Result<(), LabelledTextError> {
    match classes.len() == data.classes as usize {
        true => Ok(()),
        false => Err(LabelledTextError::Classes {
            split: split.to_owned(),
            found: classes.len(),
            expected: data.classes,
        }),
    }
}

/// Cuts the texts into words, and gives the words their numbers. The first split is that of
/// training.
fn numbered(
    data: &LabelledDataSpec,
    splits: Vec<(String, LabelledTexts)>,
    classes: Vec<String>,
    known: Option<KnownWords>,
) -> Result<PreparedTexts, LabelledTextError> {
    let cut = |texts: &LabelledTexts| -> Vec<Words> {
        texts.texts.par_iter().map(|text| words(&data.tokenizer, known.as_ref(), text)).collect()
    };
    let cuts: Vec<Vec<Words>> = splits.iter().map(|(_, texts)| cut(texts)).collect();
    let (training, others) = cuts.split_first().map_or((&[][..], &[][..]), |(one, more)| (one, more));
    let vocabulary = LabelledVocabulary::new(&data.tokenizer, known, training, others.iter().flatten())?;
    let numbers = |cut: Vec<Words>| cut.par_iter().map(|text| vocabulary.numbers(text)).collect();
    let numbers: Vec<Vec<Vec<u32>>> = cuts.into_iter().map(numbers).collect();
    let positions = match data.length {
        LabelledLengthSpec::Last { positions } => positions as usize,
        LabelledLengthSpec::Longest { margin } => {
            numbers.iter().flatten().map(Vec::len).max().unwrap_or(0) + 2 * margin as usize
        }
    };
    let of = |((name, texts), numbers): ((String, LabelledTexts), Vec<Vec<u32>>)| {
        let (labels, length) = (texts.labels, data.length);
        let padding = padding(&data.tokenizer);
        let split = TextSplit { name, texts: numbers, labels, folds: Vec::new(), length, positions, padding };
        (split.name.clone(), split)
    };
    let splits = splits.into_iter().zip(numbers).map(of).collect();
    Ok(PreparedTexts { splits, classes, vocabulary, positions })
}

/// `most` texts at most: the first of each class, then the second, and so on, in the order of the
/// split.
fn first_of_each_class(texts: LabelledTexts, most: Option<usize>) -> LabelledTexts {
    let Some(most) = most.filter(|most| *most < texts.texts.len()) else { return texts };
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let place = |(index, label): (usize, &u32)| {
        let place = places.entry(*label).or_default();
        *place += 1;
        (*place, index)
    };
    let mut order: Vec<(usize, usize)> = texts.labels.iter().enumerate().map(place).collect();
    order.sort_unstable();
    let taken: BTreeSet<usize> = order.into_iter().take(most).map(|(_, index)| index).collect();
    let [taken, _] = split_by(texts, |index| taken.contains(&index));
    taken
}

/// The texts that are left to train on, and those that are drawn from them.
fn parted(texts: LabelledTexts, count: u32, seed: u64) -> Result<[LabelledTexts; 2], LabelledTextError> {
    let all = texts.texts.len();
    if count as usize >= all {
        return Err(LabelledTextError::HeldOut { asked: count, texts: all });
    }
    let mut order: Vec<usize> = (0..all).collect();
    RandomStream::new(seed, Purpose::HeldOut, 0).shuffle(&mut order);
    let drawn: BTreeSet<usize> = order.into_iter().take(count as usize).collect();
    Ok(split_by(texts, |index| !drawn.contains(&index)))
}

/// The texts for whose index `first` returns true, and the others.
fn split_by(texts: LabelledTexts, first: impl Fn(usize) -> bool) -> [LabelledTexts; 2] {
    let mut parts = [LabelledTexts::default(), LabelledTexts::default()];
    for (index, (text, label)) in texts.texts.into_iter().zip(texts.labels).enumerate() {
        let part = &mut parts[usize::from(!first(index))];
        part.texts.push(text);
        part.labels.push(label);
    }
    parts
}
