//! Typed records: objects of JSON, one on a line.

use serde::de::DeserializeOwned;

use super::error::ScoreError;

/// Bytes of a record: the scores of some 800,000 classes.
const MOST_BYTES: usize = 16 << 20;

/// Whether a line is a typed record. Lines of text that begin with a brace are none of classes or likelihoods.
pub(super) fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{')
}

/// What a line holds; `line` counts from 1. `form` is an example of a right line.
///
/// # Errors
/// It is not JSON, has other types, or is too long.
pub(super) fn parse<T: DeserializeOwned>(
    text: &str,
    line: usize,
    form: &'static str,
) -> Result<T, ScoreError> {
    if text.len() > MOST_BYTES {
        let problem = format!("{} bytes, and a record takes {MOST_BYTES} at most", text.len());
        return Err(ScoreError::LineTooLong { stream: None, line, problem });
    }
    serde_json::from_str(text).map_err(|error| wrong(line, error.to_string(), form))
}

/// The error of one record.
pub(super) fn wrong(line: usize, problem: String, hint: &'static str) -> ScoreError {
    ScoreError::Record { line, problem, hint }
}
