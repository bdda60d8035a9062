//! What a schema cannot say: ranges, combinations, names that must exist.

mod acoustic;
mod audio;
mod claim;
mod data;
mod model;
mod parts;
mod problems;
mod speech;
mod synthesis;
mod train;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::did_you_mean;
use crate::schema::find_path;
use crate::spec::{
    Architecture, DataStatus, DecodeSpec, DecoderSpec, LengthPenalty, MaxLength, Recipe, Task,
};
use crate::split::is_name;
use crate::tree::Node;

pub use problems::Problem;

/// Checks a recipe of the right shape; `root` is the tree it was read from, `arms` the arms that claims may name.
pub(crate) fn validate(recipe: &Recipe, root: &Node, arms: &[&str], found: &mut Diagnostics) {
    let mut findings = Findings { root, found };
    about(recipe, &mut findings);
    data::validate(&recipe.data, &mut findings);
    model::validate(recipe, &mut findings);
    train::validate(recipe, &mut findings);
    for (name, search) in &recipe.decode {
        findings.named(name, &format!("decode.{name}"));
        decode(recipe, name, search, &mut findings);
    }
    claim::validate(recipe, arms, &mut findings);
}

/// Collects findings at dotted paths.
pub(crate) struct Findings<'r, 'f> {
    root: &'r Node,
    found: &'f mut Diagnostics,
}

impl Findings<'_, '_> {
    /// A finding at `path`.
    pub(crate) fn report(&mut self, path: &str, message: impl Into<String>) {
        self.found.push(Diagnostic::new(self.root.locate(path), message));
    }

    /// A finding at `path` with advice.
    pub(crate) fn report_with(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(Diagnostic::new(self.root.locate(path), message).hint(hint));
    }

    /// A finding unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, path: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.report(path, message());
        }
    }

    /// At least 1.
    pub(crate) fn positive(&mut self, value: u64, path: &str) {
        self.require(value >= 1, path, || format!("`{path}` is 0; it must be at least 1"));
    }

    /// Greater than 0.
    pub(crate) fn above_zero(&mut self, value: f64, path: &str) {
        self.require(value > 0.0, path, || format!("`{path}` is {value}; it must be greater than 0"));
    }

    /// 0 or more.
    pub(crate) fn not_negative(&mut self, value: f64, path: &str) {
        self.require(value >= 0.0, path, || format!("`{path}` is {value}; it must not be negative"));
    }

    /// In [0, 1): drop rates, decays, smoothing.
    pub(crate) fn share(&mut self, value: f64, path: &str) {
        self.require((0.0..1.0).contains(&value), path, || {
            format!("`{path}` is {value}; it must be at least 0 and less than 1")
        });
    }

    /// One of `names`.
    pub(crate) fn exists<'n>(
        &mut self,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
        path: &str,
        what: &str,
    ) {
        if !names.clone().any(|known| known == name) {
            let hint = did_you_mean(name, names, &format!("{what}s"));
            self.report_with(
                path,
                format!("`{path}` names the {what} `{name}`, which the recipe does not have"),
                hint,
            );
        }
    }

    /// Text that says something.
    pub(crate) fn said(&mut self, text: &str, path: &str) {
        self.require(!text.trim().is_empty(), path, || format!("`{path}` is empty"));
    }

    /// Fit for file names.
    pub(crate) fn named(&mut self, name: &str, path: &str) {
        if !is_name(name) {
            let hint = "lower-case letters, digits, `-` and `_`, and a letter or digit first";
            self.report_with(path, format!("`{name}` is not a valid name"), hint);
        }
    }
}

fn about(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let about = &recipe.recipe;
    findings.named(&about.name, "recipe.name");
    task(recipe, findings);
    for (text, path) in [(&about.summary, "recipe.summary"), (&about.origin, "recipe.origin")] {
        findings.said(text, path);
        findings.require(!text.contains('\n'), path, || format!("`{path}` has more than one line"));
    }
    for (at, free) in about.free.iter().enumerate() {
        if let Err((segment, known)) = find_path(free) {
            let hint = did_you_mean(&segment, known.iter().map(String::as_str), "keys");
            findings.report_with(&format!("recipe.free.{at}"), format!("no recipe has a key `{free}`"), hint);
        }
    }
    if about.status == DataStatus::Generated && !recipe.data.reader.is_generated() {
        findings.report_with(
            "recipe.status",
            "the status is `generated`, but `data.reader` reads files",
            "status = \"private\", if they are files of your own",
        );
    }
}

/// A task has models of its own: the decoder must be one of them.
fn task(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let (task, kind) = (recipe.recipe.task, recipe.model.decoder.kind());
    if task.decoders().contains(&kind) {
        return;
    }
    let decoders: Vec<String> = task.decoders().iter().map(|kind| format!("`{kind}`")).collect();
    let decoders = format!("`{task}` needs `model.decoder.kind` to be {}", decoders.join(" or "));
    findings.report_with(
        "recipe.task",
        format!("the task is `{task}`, but a model with the decoder `{kind}` is not a model of this task"),
        match Task::of_decoder(kind) {
            Some(fits) => format!("task = \"{fits}\"; {decoders}"),
            None => decoders,
        },
    );
}

fn decode(recipe: &Recipe, name: &str, search: &DecodeSpec, findings: &mut Findings<'_, '_>) {
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

fn longest_of(max_length: &MaxLength, path: &str, findings: &mut Findings<'_, '_>) {
    findings.not_negative(max_length.factor, &format!("{path}.factor"));
    findings.require(max_length.factor > 0.0 || max_length.extra > 0, path, || {
        format!("`{path}` lets nothing be written: `factor` and `extra` are both 0")
    });
}
