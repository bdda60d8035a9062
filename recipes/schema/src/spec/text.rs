//! Normalisation of text, and the text that outputs are scored against.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::Findings;

/// Text normalisation steps. They are applied in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormalizeStep {
    /// Unicode lower case.
    Lowercase,
    /// Moses `normalize-punctuation.perl` for the side's language.
    MosesPunctuation,
    /// Moses `tokenizer.perl` for the side's language, with escaping, without aggressive hyphens.
    MosesTokenize,
    /// Moses `tokenizer.perl -a`.
    MosesTokenizeAggressive,
    /// Moses `tokenizer.perl -a` since November 2018: the full stop after a line's last word is
    /// always a separate token.
    #[serde(rename = "moses-tokenize-aggressive-2018")]
    MosesTokenizeAggressive2018,
    /// Moses `remove-non-printing-char.perl`: replaces every control, format and unassigned
    /// character by a space.
    RemoveNonPrinting,
    /// Replaces `’` by `'`.
    StraightApostrophes,
}

/// Text that hypotheses are scored against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum References {
    /// The text after the tokenizer's `normalize` steps, with sub-words joined.
    #[default]
    Normalized,
    /// The file unchanged.
    Raw,
}

/// Checks that no step of `data.tokenizer.normalize` is repeated.
pub(crate) fn check_steps(steps: &[NormalizeStep], findings: &mut Findings<'_, '_>) {
    use NormalizeStep::{MosesTokenize, MosesTokenizeAggressive, MosesTokenizeAggressive2018};
    let tokenizes = |step: &NormalizeStep| {
        matches!(step, MosesTokenize | MosesTokenizeAggressive | MosesTokenizeAggressive2018)
    };
    for (at, step) in steps.iter().enumerate() {
        let path = format!("data.tokenizer.normalize.{at}");
        let before = &steps[..at];
        if before.contains(step) {
            findings.report(&path, "this step is there twice");
        } else if tokenizes(step) && before.iter().any(tokenizes) {
            findings.report(&path, "the text is tokenized twice, plainly and aggressively");
        }
    }
}
