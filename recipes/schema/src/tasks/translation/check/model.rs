//! Checks of the `[model]` block of a translation recipe.

use crate::spec::{EmbeddingInit, EmbeddingSpec, Positions, RecipeOf, ScheduleSpec, Tying};
use crate::tasks::Translation;
use crate::tasks::translation::{
    DecoderStart, Specials, TextReaderSpec, TextTokenizerSpec, TranslationModelSpec,
};
use crate::validate::Findings;

/// Checks ranges and combinations of embedding, encoder and decoder.
pub(in crate::tasks::translation) fn model(recipe: &RecipeOf<Translation>, findings: &mut Findings<'_, '_>) {
    let model = &recipe.model;
    let (width, embedding) = (model.width, &model.embedding);
    if let ScheduleSpec::TransformerPolicy { width: of_schedule, .. } = recipe.train.schedule {
        findings.require(of_schedule == width, "train.schedule.width", || {
            format!("the schedule's width {of_schedule} is not the model's, {width}")
        });
    }
    findings.positive(u64::from(width), "model.width");
    findings.share(embedding.dropout, "model.embedding.dropout");
    if let Some(std) = embedding.init_std {
        findings.above_zero(std, "model.embedding.init_std");
    }
    if let Some(EmbeddingInit::Uniform { bound }) = embedding.init {
        findings.above_zero(bound, "model.embedding.init.bound");
    }
    findings.require(
        embedding.init.is_none() || embedding.init_std.is_none(),
        "model.embedding.init",
        || "`init_std` is of a normal initialiser, `init` is another: one of them".to_owned(),
    );
    findings.require(
        embedding.positions == Positions::None || width.is_multiple_of(2),
        "model.width",
        || format!("`model.width` is {width}; sinusoidal positions need an even width"),
    );
    vocabulary(recipe, embedding, findings);
    model.encoder.check(width, findings);
    model.decoder.check(model, findings);
    output(model, findings);
    findings.require(
        !(model.decoder.begin_token_in_target() && model.decoder.start() == DecoderStart::Begin),
        "model.decoder.begin_token_in_target",
        || "duplicate begin token: `start = \"begin\"` already adds one".to_owned(),
    );
}

/// Checks that the output projection can be the table that it shares.
fn output(model: &TranslationModelSpec, findings: &mut Findings<'_, '_>) {
    let own = model.embedding.tied.has_own_output();
    findings.require(own || !model.decoder.output_bias(), "model.decoder.output_bias", || {
        "the output projection is the table of the target's tokens, which has no bias".to_owned()
    });
    let (width, projected) = (model.width, model.projected_width());
    findings.require(own || projected == width, "model.embedding.tied", || {
        format!(
            "what the decoder projects is {projected} wide, its tokens {width}: they cannot share a matrix"
        )
    });
}

/// Checks that the embedding tables fit the vocabulary.
fn vocabulary(recipe: &RecipeOf<Translation>, embedding: &EmbeddingSpec, findings: &mut Findings<'_, '_>) {
    let (specials, joint, key) = match &recipe.data.tokenizer {
        TextTokenizerSpec::Words { specials, joint, .. } => (specials, *joint, "joint"),
        TextTokenizerSpec::SubwordNmt { specials, joined_dictionary, .. } => {
            (specials, *joined_dictionary, "joined_dictionary")
        }
        TextTokenizerSpec::SentencePiece { specials, joint, .. } => (specials, *joint, "joint"),
    };
    if matches!(embedding.tied, Tying::All | Tying::Inputs) && !joint {
        findings.report_with(
            "model.embedding.tied",
            "one matrix for source and target needs one vocabulary for both",
            format!("data.tokenizer.{key} = true, or tied = \"decoder\""),
        );
    }
    if embedding.positions == Positions::SinusoidFairseq && *specials != Specials::Fairseq {
        findings.report_with(
            "model.embedding.positions",
            "fairseq's positions begin behind its padding index 1",
            "data.tokenizer.specials = \"fairseq\", or another layout of positions",
        );
    }
    // Generated text consists of symbols. The other tokenizers can learn from it too, so they are
    // allowed, but Moses is not.
    let steps = recipe.data.tokenizer.normalize();
    let moses = matches!(recipe.data.reader, TextReaderSpec::Reversal(_)) && !steps.is_empty();
    findings.require(!moses, "data.tokenizer.normalize", || {
        "generated strings of symbols are in no language; there is nothing to normalize".to_owned()
    });
}
