//! Largest length of an output, for searches of several tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::Findings;

/// Largest output length in tokens (frames in speech synthesis), including the end token:
/// `factor` x source tokens (including special tokens), rounded down, + `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxLength {
    /// Factor of the source's length.
    pub factor: f64,
    /// Tokens added to that.
    pub extra: u32,
}

impl MaxLength {
    /// The same length for every source.
    pub fn fixed(length: u32) -> Self {
        Self { factor: 0.0, extra: length }
    }

    /// Checks the length at `path`.
    pub(crate) fn check(&self, path: &str, findings: &mut Findings<'_, '_>) {
        findings.not_negative(self.factor, &format!("{path}.factor"));
        findings.require(self.factor > 0.0 || self.extra > 0, path, || {
            format!("`{path}` lets nothing be written: `factor` and `extra` are both 0")
        });
    }
}
