//! A vocabulary that is a list of its own.

use std::collections::HashSet;

use zoo_recipes::tasks::language_modelling::{LanguageUnitSpec, LanguageVocabularySpec};

use super::error::LanguageDataError;
use super::units::Units;

impl Units {
    /// The first word of each line, in the order of the lines. Of equal words the first counts.
    ///
    /// # Errors
    /// The list has another number of words than the recipe says, or lacks the unknown word or that
    /// at the end of a line.
    pub fn of_list(
        spec: &LanguageUnitSpec,
        vocabulary: LanguageVocabularySpec,
        list: &str,
    ) -> Result<Self, LanguageDataError> {
        let mut seen = HashSet::new();
        let words = list.lines().filter_map(|line| line.split_whitespace().next());
        let names: Vec<String> = words.filter(|word| seen.insert(*word)).map(str::to_owned).collect();
        if names.len() != vocabulary.size as usize {
            let (found, expected) = (names.len(), vocabulary.size);
            return Err(LanguageDataError::Vocabulary { found, expected });
        }
        if let LanguageUnitSpec::Word { end_of_line, unknown, .. } = spec
            && let Some(word) =
                [end_of_line, unknown].into_iter().flatten().find(|word| !seen.contains(word.as_str()))
        {
            return Err(LanguageDataError::NotListed { word: word.clone() });
        }
        Self::of_names(spec, names)
    }
}
