//! The units of a text and their numbers.

use std::collections::HashMap;

use zoo_recipes::tasks::language_modelling::{LanguageUnitSpec, LanguageVocabularySpec, VocabularyOrder};

use super::error::LanguageDataError;
use super::rules::ruled;

/// Words or characters with their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units {
    spec: LanguageUnitSpec,
    names: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Units {
    /// Numbers the units of some texts.
    ///
    /// # Errors
    /// The texts have another number of units than the recipe says, or lack the unknown word.
    pub fn of_texts<'t>(
        spec: &LanguageUnitSpec,
        vocabulary: LanguageVocabularySpec,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<Self, LanguageDataError> {
        let names = ordered(spec, vocabulary, texts)?;
        if names.len() != vocabulary.size as usize && !vocabulary.estimated {
            let (found, expected) = (names.len(), vocabulary.size);
            return Err(LanguageDataError::Vocabulary { found, expected });
        }
        Self::of_names(spec, names)
    }

    /// Units in the order of their numbers. Of equal units, the later number is used.
    ///
    /// # Errors
    /// The units lack the unknown word.
    pub(super) fn of_names(spec: &LanguageUnitSpec, names: Vec<String>) -> Result<Self, LanguageDataError> {
        let ids: HashMap<String, u32> = (0..).zip(&names).map(|(id, name)| (name.clone(), id)).collect();
        if let LanguageUnitSpec::Word { unknown: Some(unknown), .. } = spec
            && !ids.contains_key(unknown)
        {
            return Err(LanguageDataError::NoUnknown { unknown: unknown.clone() });
        }
        Ok(Self { spec: spec.clone(), names, ids })
    }

    /// Whether the units are words, which spaces separate.
    pub fn are_words(&self) -> bool {
        matches!(self.spec, LanguageUnitSpec::Word { .. })
    }

    /// The units in the order of their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Text of a unit.
    pub fn name(&self, id: u32) -> &str {
        self.names.get(id as usize).map_or("", String::as_str)
    }

    /// Number of a unit; that of the unknown word if the unit has none.
    pub fn id(&self, unit: &str) -> Option<u32> {
        let unknown = || match &self.spec {
            LanguageUnitSpec::Word { unknown: Some(unknown), .. } => self.ids.get(unknown),
            _ => None,
        };
        self.ids.get(unit).or_else(unknown).copied()
    }

    /// Number of the unit that ends a line; `None` if lines leave no trace.
    pub fn end_of_line(&self) -> Option<u32> {
        match &self.spec {
            LanguageUnitSpec::Word { end_of_line, .. } => self.ids.get(end_of_line.as_deref()?).copied(),
            LanguageUnitSpec::Character {} => self.ids.get("\n").copied(),
        }
    }

    /// The units of a text. `split` is its name in errors.
    ///
    /// # Errors
    /// A unit has no number.
    pub fn numbers(&self, split: &str, text: &str) -> Result<Vec<u32>, LanguageDataError> {
        let mut found = Vec::with_capacity(text.len() / 4);
        each(&self.spec, text, |unit, line| match self.id(unit) {
            Some(id) => {
                found.push(id);
                Ok(())
            }
            None => {
                let (split, unit) = (split.to_owned(), unit.to_owned());
                Err(LanguageDataError::UnknownUnit { split, line, unit })
            }
        })?;
        Ok(found)
    }

    /// The text of units: words are joined by spaces, and the end of a line is a line feed.
    pub fn text(&self, ids: &[u32]) -> String {
        if let LanguageUnitSpec::Character {} = self.spec {
            return ids.iter().map(|id| self.name(*id)).collect();
        }
        let end = self.end_of_line();
        let mut text = String::new();
        for id in ids {
            if Some(*id) == end {
                text.push('\n');
                continue;
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(' ');
            }
            text.push_str(self.name(*id));
        }
        text
    }
}

/// The units of a vocabulary in the order of their numbers.
pub(super) fn ordered<'t>(
    spec: &LanguageUnitSpec,
    vocabulary: LanguageVocabularySpec,
    mut texts: impl Iterator<Item = &'t str>,
) -> Result<Vec<String>, LanguageDataError> {
    let least = vocabulary.least_count.unwrap_or(1);
    if let (VocabularyOrder::Openseq2seq, LanguageUnitSpec::Word { unknown: Some(unknown), .. }) =
        (vocabulary.order, spec)
    {
        let first = texts.next().unwrap_or_default();
        let uncounted = first.split_inclusive('\n').next().map_or(0, str::len);
        let mut counted = counted(spec, std::iter::once(&first[uncounted..]).chain(texts))?;
        // The source adds the unknown word once by itself. If the text has it often enough, the
        // word is written twice, and the later number is used.
        let place = counted.iter().position(|(name, _)| name == unknown);
        let (name, count) = place.map_or((unknown.clone(), 0), |place| counted.remove(place));
        counted.insert(0, (name, count + 1));
        counted.retain(|(_, count)| *count >= least);
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others = counted.into_iter().map(|(name, _)| name);
        return Ok(std::iter::once(unknown.clone()).chain(others).collect());
    }
    let mut counted = counted(spec, texts)?;
    let unknown = match spec {
        LanguageUnitSpec::Word { unknown, .. } => unknown.as_deref(),
        LanguageUnitSpec::Character {} => None,
    };
    counted.retain(|(name, count)| *count >= least || Some(name.as_str()) == unknown);
    match vocabulary.order {
        VocabularyOrder::Appearance => {}
        VocabularyOrder::Frequency | VocabularyOrder::Openseq2seq => {
            counted.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        }
        VocabularyOrder::Sorted => counted.sort(),
    }
    Ok(counted.into_iter().map(|(name, _)| name).collect())
}

/// Units in the order of their first appearance, with their counts.
fn counted<'t>(
    spec: &LanguageUnitSpec,
    texts: impl Iterator<Item = &'t str>,
) -> Result<Vec<(String, u64)>, LanguageDataError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut counted: Vec<(String, u64)> = Vec::new();
    for text in texts {
        each(spec, text, |unit, _| {
            match places.get(unit) {
                Some(place) => counted[*place].1 += 1,
                None => {
                    places.insert(unit.to_owned(), counted.len());
                    counted.push((unit.to_owned(), 1));
                }
            }
            Ok(())
        })?;
    }
    Ok(counted)
}

/// Calls `found` with each unit of a text and the number of its line, from 1.
fn each(
    spec: &LanguageUnitSpec,
    text: &str,
    mut found: impl FnMut(&str, usize) -> Result<(), LanguageDataError>,
) -> Result<(), LanguageDataError> {
    for (line, text) in (1..).zip(text.split_inclusive('\n')) {
        match spec {
            LanguageUnitSpec::Word { end_of_line, rules, .. } => {
                for word in ruled(text, *rules).split_whitespace().chain(end_of_line.as_deref()) {
                    found(word, line)?;
                }
            }
            LanguageUnitSpec::Character {} => {
                let mut buffer = [0; 4];
                for character in text.chars() {
                    found(character.encode_utf8(&mut buffer), line)?;
                }
            }
        }
    }
    Ok(())
}
