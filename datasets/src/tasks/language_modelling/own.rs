//! The files that a recipe itself names.

use std::path::Path;

use sha2::{Digest, Sha256};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::language_modelling::{LanguageDataSpec, LanguageReaderSpec};

use super::error::LanguageDataError;
use super::source::{WHOLE, read_text, texts};
use super::units::ordered;

/// Number of training lines in the recipe's own files, or of generated ones; `None` if it names no
/// files. Of a text that is cut, all lines count.
///
/// # Errors
/// A file cannot be read.
pub fn own_lines(data: &LanguageDataSpec, base: &Path) -> Result<Option<usize>, LanguageDataError> {
    Ok(match &data.reader {
        LanguageReaderSpec::Babble { train, .. } => Some(*train as usize),
        LanguageReaderSpec::Text { files, training_share } => {
            let name = if training_share.is_some() { WHOLE } else { data.training() };
            let text = files.get(name).map(|file| read_text(&base.join(file))).transpose()?;
            text.map(|text| text.split_inclusive('\n').count())
        }
    })
}

/// Number of units of a vocabulary of the recipe's own text, counted over all splits.
///
/// # Errors
/// A file cannot be read.
pub fn own_units(data: &LanguageDataSpec, base: &Path) -> Result<usize, LanguageDataError> {
    let texts = texts(data, None, base)?;
    Ok(ordered(&data.unit, data.vocabulary, texts.values().map(String::as_str))?.len())
}

/// Path and SHA-256 of every file that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_stamps(data: &LanguageDataSpec, base: &Path) -> Result<Vec<(String, String)>, LanguageDataError> {
    let LanguageReaderSpec::Text { files, .. } = &data.reader else { return Ok(Vec::new()) };
    let stamp = |file: &String| {
        let path = base.join(file);
        let bytes = zoo_recipes::untrusted::read(&path);
        let bytes = bytes.map_err(|source| LanguageDataError::Io { file: path.clone(), source })?;
        Ok((path.display().to_string(), hex::encode(Sha256::digest(bytes))))
    };
    files.values().map(stamp).collect()
}
