//! Checks the `[model]` blocks of text and speech.

use super::{Findings, parts};
use crate::spec::{
    Architecture, DecoderSpec, DecoderStart, EmbeddingInit, EmbeddingSpec, EncoderSpec, ModelSpec, Positions,
    RecipeOf, ScheduleSpec, Task, TaskTypes, TokenModel, Tying,
};
use crate::tasks::Translation;
use crate::tasks::translation::{Specials, TextReaderSpec, TextTokenizerSpec};

/// The decoders that a task allows: values of `model.decoder.kind`.
fn decoders_of(task: Task) -> &'static [&'static str] {
    match task {
        Task::Translation => &["transformer", "recurrent", "convolutional"],
        Task::SpeechRecognition => &["ctc"],
        Task::SpeechSynthesis => &["tacotron"],
        _ => &[],
    }
}

/// Checks that encoder and decoder form a model, and that the task allows it. Returns the model.
pub(crate) fn architecture<'r, T: TaskTypes<Model = ModelSpec>>(
    recipe: &'r RecipeOf<T>,
    findings: &mut Findings<'_, '_>,
) -> Option<Architecture<'r>> {
    task(recipe, findings);
    let model = &recipe.model;
    if let ScheduleSpec::TransformerPolicy { width, .. } = recipe.train.schedule {
        let of_model = model.width.unwrap_or(width);
        findings.require(width == of_model, "train.schedule.width", || {
            format!("the schedule's width {width} is not the model's, {of_model}")
        });
    }
    let architecture = model.architecture();
    if architecture.is_none() {
        misfit(model, findings);
    }
    architecture
}

/// Checks that the decoder is one that the task allows.
fn task<T: TaskTypes<Model = ModelSpec>>(recipe: &RecipeOf<T>, findings: &mut Findings<'_, '_>) {
    let (task, kind) = (T::TASK, recipe.model.decoder.kind());
    if decoders_of(task).contains(&kind) {
        return;
    }
    let decoders: Vec<String> = decoders_of(task).iter().map(|kind| format!("`{kind}`")).collect();
    let decoders = format!("`{task}` needs `model.decoder.kind` to be {}", decoders.join(" or "));
    findings.report_with(
        "recipe.task",
        format!("the task is `{task}`, but a model with the decoder `{kind}` is not a model of this task"),
        match Task::ALL.iter().find(|task| decoders_of(**task).contains(&kind)) {
            Some(fits) => format!("task = \"{fits}\"; {decoders}"),
            None => decoders,
        },
    );
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

/// Checks a model that reads and writes tokens.
pub(crate) fn tokens(recipe: &RecipeOf<Translation>, model: TokenModel<'_>, findings: &mut Findings<'_, '_>) {
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
