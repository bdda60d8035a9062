//! Checks the `[model]` blocks of text and speech.

use super::{Findings, Sequences, parts};
use crate::spec::{
    Architecture, DecoderSpec, DecoderStart, EmbeddingInit, EmbeddingSpec, EncoderSpec, ModelSpec, Positions,
    ReaderSpec, RecipeOf, ScheduleSpec, Specials, TokenModel, TokenizerSpec, Tying,
};

pub(super) fn validate<T: Sequences>(recipe: &RecipeOf<T>, findings: &mut Findings<'_, '_>) {
    let model = &recipe.model;
    if let ScheduleSpec::TransformerPolicy { width, .. } = recipe.train.schedule {
        let of_model = model.width.unwrap_or(width);
        findings.require(width == of_model, "train.schedule.width", || {
            format!("the schedule's width {width} is not the model's, {of_model}")
        });
    }
    match model.architecture() {
        Some(Architecture::Tokens(model)) => tokens(recipe, model, findings),
        Some(Architecture::Acoustic(encoder)) => super::speech::model(recipe, encoder, findings),
        Some(Architecture::Synthesis(parts)) => super::synthesis::model(recipe, parts, findings),
        None => misfit(model, findings),
    }
}

/// Reports why the encoder and the decoder do not form a model.
fn misfit(model: &ModelSpec, findings: &mut Findings<'_, '_>) {
    let tokens = match (&model.encoder, &model.decoder) {
        (EncoderSpec::Acoustic(_), DecoderSpec::Ctc {})
        | (EncoderSpec::Tacotron(_), DecoderSpec::Tacotron(_)) => false,
        (EncoderSpec::Acoustic(_) | EncoderSpec::Tacotron(_), _)
        | (_, DecoderSpec::Ctc {} | DecoderSpec::Tacotron(_)) => {
            let message = "the encoder reads tokens and the decoder reads frames, or the other way round";
            let hint = "kind = \"transformer\", \"recurrent\" or \"convolutional\" in both, or \"acoustic\" with \"ctc\", or \"tacotron\" in both";
            return findings.report_with("model.decoder", message, hint);
        }
        _ => true,
    };
    for (key, there) in [("width", model.width.is_some()), ("embedding", model.embedding.is_some())] {
        if there != tokens {
            let path = format!("model.{key}");
            match tokens {
                true => findings.report("model", format!("a model of tokens lacks `{path}`")),
                false => findings.report(&path, format!("a model of frames has no use for `{path}`")),
            }
        }
    }
}

fn tokens<T: Sequences>(recipe: &RecipeOf<T>, model: TokenModel<'_>, findings: &mut Findings<'_, '_>) {
    let TokenModel { width, embedding, encoder, decoder } = model;
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
    parts::encoder(encoder, width, findings);
    parts::decoder(model, findings);
    findings.require(
        !(decoder.begin_token_in_target() && decoder.start() == Some(DecoderStart::Begin)),
        "model.decoder.begin_token_in_target",
        || "duplicate begin token: `start = \"begin\"` already adds one".to_owned(),
    );
}

/// Checks that the embedding tables fit the vocabulary.
fn vocabulary<T: Sequences>(
    recipe: &RecipeOf<T>,
    embedding: &EmbeddingSpec,
    findings: &mut Findings<'_, '_>,
) {
    let (specials, joint, key) = match &recipe.data.tokenizer {
        TokenizerSpec::Words { specials, joint, .. } => (specials, *joint, "joint"),
        TokenizerSpec::SubwordNmt { specials, joined_dictionary, .. } => {
            (specials, *joined_dictionary, "joined_dictionary")
        }
        TokenizerSpec::SentencePiece { specials, joint, .. } => (specials, *joint, "joint"),
        TokenizerSpec::Characters { .. } | TokenizerSpec::Lexicon { .. } | TokenizerSpec::Symbols { .. } => {
            let hint = "words, subword-nmt or sentence-piece";
            return findings.report_with(
                "data.tokenizer.kind",
                "this tokenizer makes classes of frames; the model reads tokens",
                hint,
            );
        }
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
    if recipe.data.reader.sample_rate_hz().is_some() {
        findings.report("data.reader.kind", "the reader gives recordings; the model reads tokens");
    }
    // Generated text consists of symbols. The other tokenizers can learn from it too, so they are
    // allowed, but Moses is not.
    let moses = match (&recipe.data.reader, &recipe.data.tokenizer) {
        (
            ReaderSpec::Reversal { .. },
            TokenizerSpec::Words { normalize, .. } | TokenizerSpec::SubwordNmt { normalize, .. },
        ) => !normalize.is_empty(),
        _ => false,
    };
    findings.require(!moses, "data.tokenizer.normalize", || {
        "generated strings of symbols are in no language; there is nothing to normalize".to_owned()
    });
}
