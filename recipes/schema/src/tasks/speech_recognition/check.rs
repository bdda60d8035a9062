//! Checks what `[model]` and `[loss]` of a speech recognition recipe need.

use super::SpeechRecognition;
use crate::spec::{LossSpec, RecipeOf, TokenizerSpec};
use crate::validate::{Findings, blame};

/// Checks a model of frames, its loss and its classes.
pub(super) fn model(recipe: &RecipeOf<SpeechRecognition>, findings: &mut Findings<'_, '_>) {
    blame("model.encoder", recipe.model.layers().problems(), findings);
    if recipe.data.reader.sample_rate_hz().is_none() {
        findings.report_with(
            "data.reader.kind",
            "the reader gives text; the model reads the frames of recordings",
            "kind = \"audio-manifest\"",
        );
    }
    if !matches!(recipe.data.tokenizer, TokenizerSpec::Characters { .. } | TokenizerSpec::Lexicon { .. }) {
        findings.report_with(
            "data.tokenizer.kind",
            "this tokenizer makes tokens; the model gives classes of frames",
            "characters or lexicon",
        );
    }
    if !matches!(recipe.loss, LossSpec::Ctc { .. }) {
        findings.report_with(
            "loss.kind",
            "this loss is of tokens; the model gives classes of frames",
            "kind = \"ctc\"",
        );
    }
}
