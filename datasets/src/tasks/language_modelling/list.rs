//! A vocabulary that is a list of its own.

use std::collections::HashMap;

use zoo_recipes::tasks::language_modelling::{LanguageUnitSpec, LanguageVocabularySpec};

use super::error::LanguageDataError;
use super::units::Units;

impl Units {
    /// The first word of each line, in the order of the lines.
    ///
    /// # Errors
    /// The list has another number of words than the recipe says, or lacks the unknown word or that
    /// at the end of a line.
    pub fn of_list(
        spec: &LanguageUnitSpec,
        vocabulary: LanguageVocabularySpec,
        list: &str,
    ) -> Result<Self, LanguageDataError> {
        let (mut names, mut ids) = (Vec::new(), HashMap::new());
        for word in list.lines().filter_map(|line| line.split_whitespace().next()) {
            if !ids.contains_key(word) {
                ids.insert(word.to_owned(), names.len() as u32);
                names.push(word.to_owned());
            }
        }
        if names.len() != vocabulary.size as usize {
            let (found, expected) = (names.len(), vocabulary.size);
            return Err(LanguageDataError::Vocabulary { found, expected });
        }
        if let LanguageUnitSpec::Word { end_of_line, unknown, .. } = spec
            && let Some(word) =
                [end_of_line, unknown].into_iter().flatten().find(|word| !ids.contains_key(*word))
        {
            return Err(LanguageDataError::NotListed { word: word.clone() });
        }
        Ok(Self { spec: spec.clone(), names, ids })
    }
}
