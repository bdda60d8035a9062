//! Errors of a block that is checked separately, in a recipe or made in code.

use std::fmt;

/// An invalid value at a key of the checked block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted path within the block, e.g. `mel.high_hz`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Largest allowed count: FFT length, features, channels.
pub(super) const LARGEST: u32 = 1 << 17;

/// Collects the errors of a block.
#[derive(Default)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    pub(crate) fn require(&mut self, holds: bool, key: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Problem { key: key.to_owned(), message: message(), hint: None });
        }
    }

    pub(crate) fn hint(
        &mut self,
        holds: bool,
        key: &str,
        message: impl FnOnce() -> String,
        hint: impl Into<String>,
    ) {
        if !holds {
            self.0.push(Problem { key: key.to_owned(), message: message(), hint: Some(hint.into()) });
        }
    }

    pub(crate) fn count(&mut self, value: u32, key: &str) {
        self.require((1..=LARGEST).contains(&value), key, || {
            format!("`{key}` is {value}; it must be 1 to {LARGEST}")
        });
    }

    /// Requires a finite value in [least, most].
    pub(crate) fn within(&mut self, value: f64, least: f64, most: f64, key: &str) {
        self.require((least..=most).contains(&value), key, || {
            format!("`{key}` is {value}; it must be {least} to {most}")
        });
    }

    pub(crate) fn above_zero(&mut self, value: f64, key: &str) {
        self.require(value > 0.0 && value.is_finite(), key, || {
            format!("`{key}` is {value}; it must be a finite number greater than 0")
        });
    }
}
