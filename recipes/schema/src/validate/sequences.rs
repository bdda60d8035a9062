//! Checks of text and speech recipes: data, model, loss and searches must fit together.

use super::{Findings, data, model, speech, synthesis};
use crate::spec::{
    Architecture, DataSpec, DecodeSpec, DecoderSpec, LengthPenalty, MaxLength, ModelSpec, RecipeOf, Task,
    TaskTypes,
};

/// A task of text or speech.
pub(crate) trait Sequences:
    TaskTypes<Data = DataSpec, Model = ModelSpec, Search = DecodeSpec>
{
}

impl<T: TaskTypes<Data = DataSpec, Model = ModelSpec, Search = DecodeSpec>> Sequences for T {}

/// The decoders that a task allows: values of `model.decoder.kind`.
fn decoders_of(task: Task) -> &'static [&'static str] {
    match task {
        Task::Translation => &["transformer", "recurrent", "convolutional"],
        Task::SpeechRecognition => &["ctc"],
        Task::SpeechSynthesis => &["tacotron"],
        _ => &[],
    }
}

/// Checks the blocks of a recipe of text or speech.
pub(crate) fn validate<T: Sequences>(recipe: &RecipeOf<T>, findings: &mut Findings<'_, '_>) {
    task(recipe, findings);
    data::validate(&recipe.data, findings);
    model::validate(recipe, findings);
    for (name, search) in &recipe.decode {
        findings.named(name, &format!("decode.{name}"));
        decode(recipe, name, search, findings);
    }
}

/// Checks that the decoder is one that the task allows.
fn task<T: Sequences>(recipe: &RecipeOf<T>, findings: &mut Findings<'_, '_>) {
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

fn decode<T: Sequences>(
    recipe: &RecipeOf<T>,
    name: &str,
    search: &DecodeSpec,
    findings: &mut Findings<'_, '_>,
) {
    let path = format!("decode.{name}");
    let fits = match recipe.model.architecture() {
        Some(Architecture::Tokens(_)) => (search.is_of_tokens(), "greedy or beam"),
        Some(Architecture::Acoustic(_)) => (search.is_of_classes(), "ctc-greedy, ctc-lexicon or ctc-beam"),
        Some(Architecture::Synthesis(_)) => (search.is_of_frames(), "free-running or teacher-forced"),
        None => (true, ""),
    };
    if let (false, hint) = fits {
        findings.report_with(&path, format!("`{path}` is a search for models of another kind"), hint);
        return;
    }
    match search {
        DecodeSpec::CtcGreedy {} | DecodeSpec::TeacherForced {} => {}
        DecodeSpec::FreeRunning(spec) => synthesis::free_running(spec, &path, findings),
        DecodeSpec::CtcLexicon { log10, end_log10, silence } => {
            speech::lexicon_search(recipe, (log10, *end_log10, *silence), &path, findings);
        }
        DecodeSpec::CtcBeam {
            beam,
            cutoff,
            cutoff_classes,
            language_model,
            needs_language_model,
            alpha,
            beta,
            words,
        } => {
            findings.positive(u64::from(*beam), &format!("{path}.beam"));
            findings.positive(u64::from(*cutoff_classes), &format!("{path}.cutoff_classes"));
            findings.require(*cutoff > 0.0 && *cutoff <= 1.0, &format!("{path}.cutoff"), || {
                format!("`{path}.cutoff` is {cutoff}; it is a probability above 0")
            });
            if let Some(model) = language_model {
                findings.said(model, &format!("{path}.language_model"));
            }
            let none = language_model.is_none() && !needs_language_model;
            if none && (*alpha != 0.0 || *beta != 0.0) {
                findings.report_with(
                    &path,
                    "`alpha` and `beta` weigh a language model, and there is none",
                    "language_model = \"model.arpa.gz\", or needs_language_model = true",
                );
            }
            if let Some(words) = words {
                speech::spelt_words(recipe, words, none, &format!("{path}.words"), findings);
            }
        }
        DecodeSpec::Greedy { max_length } => longest(max_length, &path, findings),
        DecodeSpec::Beam { beam, length_penalty, stop: _, max_length } => {
            findings.positive(u64::from(*beam), &format!("{path}.beam"));
            if let LengthPenalty::Gnmt { alpha } | LengthPenalty::LengthPower { alpha } = length_penalty {
                findings.not_negative(*alpha, &format!("{path}.length_penalty.alpha"));
            }
            longest(max_length, &path, findings);
        }
        DecodeSpec::TensorflowBeam { beam, alpha, max_length }
        | DecodeSpec::JoeynmtBeam { beam, alpha, as_coded: _, max_length } => {
            findings.positive(u64::from(*beam), &format!("{path}.beam"));
            findings.not_negative(*alpha, &format!("{path}.alpha"));
            longest(max_length, &path, findings);
        }
        DecodeSpec::GnmtBeam { beam, alpha, constant, coverage, as_coded: _, max_length } => {
            findings.positive(u64::from(*beam), &format!("{path}.beam"));
            for (value, key) in [(alpha, "alpha"), (constant, "constant"), (coverage, "coverage")] {
                findings.not_negative(*value, &format!("{path}.{key}"));
            }
            if search.counts_attention() && !matches!(recipe.model.decoder, DecoderSpec::Recurrent(_)) {
                findings.report_with(
                    &format!("{path}.coverage"),
                    "the decoder has no one attention whose weights could be summed",
                    "coverage = 0.0, or a recurrent decoder",
                );
            }
            longest(max_length, &path, findings);
        }
    }
}

fn longest(max_length: &MaxLength, path: &str, findings: &mut Findings<'_, '_>) {
    longest_of(max_length, &format!("{path}.max_length"), findings);
}

pub(super) fn longest_of(max_length: &MaxLength, path: &str, findings: &mut Findings<'_, '_>) {
    findings.not_negative(max_length.factor, &format!("{path}.factor"));
    findings.require(max_length.factor > 0.0 || max_length.extra > 0, path, || {
        format!("`{path}` lets nothing be written: `factor` and `extra` are both 0")
    });
}
