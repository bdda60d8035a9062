//! Typed records: JSON objects, one per line.

use serde::de::DeserializeOwned;

use super::error::ScoreError;

/// Maximum size of a record in bytes: room for the scores of some 800,000 classes.
const MOST_BYTES: usize = 16 << 20;

/// Whether a line is a typed record. A line of text that starts with a brace is not valid text for
/// the metrics of classes or likelihoods.
pub(crate) fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{')
}

/// Parses the record on a line. `line` counts from 1. `form` is an example of a valid line.
///
/// # Errors
/// It is not JSON, has other types, or is too long.
pub(crate) fn parse<T: DeserializeOwned>(
    text: &str,
    line: usize,
    form: &'static str,
) -> Result<T, ScoreError> {
    if text.len() > MOST_BYTES {
        let problem = format!("the record has {} bytes; the limit is {MOST_BYTES}", text.len());
        return Err(ScoreError::LineTooLong { stream: None, line, problem });
    }
    serde_json::from_str(text).map_err(|error| wrong(line, error.to_string(), form))
}

/// The error for one record.
pub(crate) fn wrong(line: usize, problem: String, hint: &'static str) -> ScoreError {
    ScoreError::Record { line, problem, hint }
}
