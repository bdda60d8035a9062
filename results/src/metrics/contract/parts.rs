//! The parts of a signature. Each is taken once; a part left over at the end is unknown.

use std::collections::BTreeMap;

use super::error::{ScoreError, SignatureError};
use super::lines::Case;

/// A hint that fits most mistakes.
pub(crate) const EXAMPLE: &str = "a signature looks like `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp`";

/// The error of a signature that cannot be read.
pub(crate) fn malformed(text: &str, problem: String, hint: &str) -> SignatureError {
    SignatureError::Malformed { text: text.to_string(), problem, hint: hint.to_string() }
}

/// Formats a boolean as `yes` or `no`.
pub(crate) fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_string()
}

/// Parts as they are written in a signature: `key:value|key:value`.
pub(crate) fn join(parts: &[(&str, String)]) -> String {
    parts.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join("|")
}

/// The parts that have not been taken yet.
#[derive(Debug)]
pub struct Parts<'a> {
    text: &'a str,
    parts: BTreeMap<String, String>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(text: &'a str, parts: BTreeMap<String, String>) -> Self {
        Self { text, parts }
    }

    /// An error about this signature.
    pub(crate) fn fail<T>(&self, problem: String, hint: &str) -> Result<T, SignatureError> {
        Err(malformed(self.text, problem, hint))
    }

    /// Whether the part exists.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.parts.contains_key(key)
    }

    /// Whether the part exists with this value.
    pub(crate) fn is(&self, key: &str, value: &str) -> bool {
        self.parts.get(key).is_some_and(|found| found == value)
    }

    /// Takes an optional part.
    pub(crate) fn optional(&mut self, key: &str) -> Option<String> {
        self.parts.remove(key)
    }

    /// One of the parts that were not taken.
    pub(crate) fn left_over(self) -> Option<(String, String)> {
        self.parts.into_iter().next()
    }

    /// Takes a required part.
    pub(crate) fn take(&mut self, key: &str) -> Result<String, SignatureError> {
        match self.parts.remove(key) {
            Some(value) => Ok(value),
            None => self.fail(format!("`{key}:` is missing"), "state every option; none is assumed"),
        }
    }

    /// Takes a whole number in its printed form, without leading zeros.
    pub(crate) fn number(&mut self, key: &str, least: usize) -> Result<usize, SignatureError> {
        let value = self.take(key)?;
        match value.parse::<usize>() {
            Ok(n) if n >= least && value == n.to_string() => Ok(n),
            _ => self.fail(format!("`{key}:{value}` is not a whole number from {least}"), EXAMPLE),
        }
    }

    /// Takes a `yes` or `no`.
    pub(crate) fn yes(&mut self, key: &str) -> Result<bool, SignatureError> {
        match self.take(key)?.as_str() {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => self.fail(format!("`{key}:{other}` is neither yes nor no"), EXAMPLE),
        }
    }

    /// Takes the part `case:`.
    pub(crate) fn case(&mut self) -> Result<Case, SignatureError> {
        match self.take("case")?.as_str() {
            "mixed" => Ok(Case::Mixed),
            "lc" => Ok(Case::Lower),
            other => self.fail(format!("`case:{other}`"), "case is `mixed` or `lc`"),
        }
    }

    /// Takes one of several words and returns the value it stands for.
    pub(crate) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Result<T, SignatureError> {
        let found = self.take(key)?;
        match words.iter().find(|(word, _)| *word == found) {
            Some((_, value)) => Ok(*value),
            None => {
                let names: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
                self.fail(format!("`{key}:{found}`"), &format!("`{key}:` is {}", names.join(" or ")))
            }
        }
    }

    /// Takes a part that has only one valid value.
    pub(crate) fn only(&mut self, key: &str, value: &str, hint: &str) -> Result<(), SignatureError> {
        let found = self.take(key)?;
        if found == value {
            return Ok(());
        }
        self.fail(format!("`{key}:{found}` is not built in"), hint)
    }

    /// The value; an error is converted into one about this signature.
    pub(crate) fn name<T>(&self, key: &str, result: Result<T, ScoreError>) -> Result<T, SignatureError> {
        result.or_else(|e| {
            let text = e.to_string();
            let (problem, hint) = text.split_once("\nhint: ").unwrap_or((&text, EXAMPLE));
            self.fail(format!("`{key}:` {problem}"), hint)
        })
    }
}
