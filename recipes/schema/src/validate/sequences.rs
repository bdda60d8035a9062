//! Checks of text and speech recipes: data and searches.

use super::{Findings, data, speech, synthesis};
use crate::spec::{DataSpec, DecodeSpec, LengthPenalty, LossSpec, MaxLength, RecipeOf, TaskTypes};

/// A task of text or speech.
pub(crate) trait Sequences: TaskTypes<Data = DataSpec, Loss = LossSpec, Search = DecodeSpec> {}

impl<T: TaskTypes<Data = DataSpec, Loss = LossSpec, Search = DecodeSpec>> Sequences for T {}

/// The searches of a task: whether a search is one of them, and a hint that names their kinds.
pub(crate) type Searches = (fn(&DecodeSpec) -> bool, &'static str);

/// Checks data and searches of a recipe of text or speech.
pub(crate) fn validate<T: Sequences>(
    recipe: &RecipeOf<T>,
    searches: Searches,
    findings: &mut Findings<'_, '_>,
) {
    data::validate(&recipe.data, findings);
    for (name, search) in &recipe.decode {
        findings.named(name, &format!("decode.{name}"));
        decode(recipe, name, search, searches, findings);
    }
}

fn decode<T: Sequences>(
    recipe: &RecipeOf<T>,
    name: &str,
    search: &DecodeSpec,
    (fits, kinds): Searches,
    findings: &mut Findings<'_, '_>,
) {
    let path = format!("decode.{name}");
    if !fits(search) {
        findings.report_with(&path, format!("`{path}` is a search for models of another kind"), kinds);
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
