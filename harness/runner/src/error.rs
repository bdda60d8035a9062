//! Failure of a command: exit code, message and hint.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use zoo_datasets::batches::PlanError;
use zoo_datasets::corpora::CorpusError;
use zoo_datasets::fetch::FetchError;
use zoo_datasets::readers::ReadError;
use zoo_datasets::speech::SpeechError;
use zoo_recipes::{Diagnostics, LoadError, untrusted};
use zoo_results::exit::Exit;
use zoo_results::metrics::{ScoreError, SignatureError};
use zoo_training::checkpoint::CheckpointError;
use zoo_training::error::TrainError;
use zoo_training::optimizer::OptimizerError;
use zoo_training::scaling::ScalingError;
use zoo_training::schedule::ScheduleError;

pub use self::finding::Finding;
use crate::output::JSON_VERSION;

mod finding;

/// Result of a command or stage.
pub type Result<T> = std::result::Result<T, Failure>;

/// Splits a message into its text and its first hint.
pub fn split_hint(message: &str) -> (&str, Option<&str>) {
    match message.split_once("\nhint: ") {
        Some((what, hints)) => (what, hints.lines().next()),
        None => (message, None),
    }
}

/// A failure to print on stderr. The message may have further lines; lines that start with `hint:`
/// are printed as hints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exit code of the program.
    pub exit: Exit,
    message: String,
    /// Findings to print before the message without a prefix. Each has its own place in a file.
    findings: Option<Findings>,
}

/// Findings as text, and each with its place for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Findings {
    text: String,
    each: Vec<Finding>,
}

impl Failure {
    /// A failure with an exit code and a message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), findings: None }
    }

    /// A failure because the command line asks for something that does not exist or is not
    /// possible.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.message.push_str(&format!("\nhint: {hint}"));
        self
    }

    /// Puts the subject before the message, e.g. a file.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// A failure of a file system operation.
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let exit = match error.kind() {
            // The named file does not exist, or is a folder, a device or a FIFO.
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => Exit::Data,
            _ => Exit::Internal,
        };
        let failure = Self::new(exit, format!("cannot {doing} {}: {error}", path.display()));
        match untrusted::hint(error) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// The message and its first hint.
    pub fn parts(&self) -> (&str, Option<&str>) {
        split_hint(&self.message)
    }

    /// Prints findings, `error: …` and `hint: …`.
    pub fn print(&self, out: &mut dyn Write, colour: bool) {
        let paint = |code: &str, word: &str| match colour {
            true => format!("\u{1b}[{code}m{word}\u{1b}[0m"),
            false => word.to_owned(),
        };
        let mut text = String::new();
        if let Some(findings) = &self.findings {
            text.push_str(&untrusted::escaped(&findings.text));
            text.push('\n');
        }
        for (at, line) in untrusted::escaped(&self.message).lines().enumerate() {
            if at == 0 {
                text.push_str(&format!("{} {line}\n", paint("1;31", "error:")));
            } else if let Some(hint) = line.trim_start().strip_prefix("hint:") {
                text.push_str(&format!("{}{hint}\n", paint("1;36", "hint:")));
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        // A failed write to stderr cannot be reported.
        let _ = out.write_all(text.as_bytes());
    }

    /// Prints the failure as one line of JSON. It is the last line of stderr.
    pub fn print_json(&self, out: &mut dyn Write) {
        // A failed write to stderr cannot be reported.
        let _ = writeln!(out, "{}", self.json());
    }

    /// The failure for programs. File, line and column are those of the first finding.
    fn json(&self) -> Value {
        let is_hint = |line: &&str| line.trim_start().starts_with("hint:");
        let (hints, message): (Vec<&str>, Vec<&str>) = self.message.lines().partition(is_hint);
        let hints: Vec<&str> =
            hints.iter().map(|line| line.trim_start().trim_start_matches("hint:").trim()).collect();
        let each = self.findings.as_ref().map_or(&[][..], |findings| &findings.each);
        let first = each.first();
        json!({
            "version": JSON_VERSION,
            "error": {
                "exit": self.exit.name(),
                "exit_code": self.exit.code(),
                "message": message.join("\n"),
                "hint": (!hints.is_empty()).then(|| hints.join("\n")),
                "file": first.and_then(|first| first.file.as_deref()),
                "line": first.and_then(|first| first.line),
                "column": first.and_then(|first| first.column),
                "findings": each,
            },
        })
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(findings) = &self.findings {
            writeln!(f, "{}", findings.text)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Diagnostics> for Failure {
    fn from(found: Diagnostics) -> Self {
        let count = match found.len() {
            1 => "the recipe has an error".to_owned(),
            n => format!("the recipe has {n} errors"),
        };
        let findings = Findings { text: found.to_string(), each: found.iter().map(Finding::of).collect() };
        Self { exit: Exit::Recipe, message: count, findings: Some(findings) }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Invalid(found) => found.into(),
            LoadError::Unknown { .. } | LoadError::Read { .. } => Self::usage(error.to_string()),
        }
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::new(fetch_exit(&error), error.to_string())
    }
}

impl From<CorpusError> for Failure {
    fn from(error: CorpusError) -> Self {
        let exit = match &error {
            CorpusError::Fetch { source, .. } => fetch_exit(source),
            _ => Exit::Data,
        };
        Self::new(exit, error.to_string())
    }
}

fn fetch_exit(error: &FetchError) -> Exit {
    match error {
        FetchError::Cancelled { .. } => Exit::Interrupted,
        FetchError::Unconfirmed { .. } => Exit::PlanRefused,
        _ => Exit::Data,
    }
}

impl From<ScoreError> for Failure {
    fn from(error: ScoreError) -> Self {
        let exit = match error {
            ScoreError::NoHypotheses
            | ScoreError::LengthMismatch { .. }
            | ScoreError::LineTooLong { .. }
            | ScoreError::Undefined { .. }
            | ScoreError::Record { .. }
            | ScoreError::Array { .. } => Exit::Data,
            ScoreError::Disagreement { .. } => Exit::Internal,
            _ => Exit::Usage,
        };
        Self::new(exit, error.to_string())
    }
}

/// Conversions of errors with complete messages, with the exit code of each.
macro_rules! failures {
    ($($error:ty => $exit:expr),+ $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let pick: fn(&$error) -> Exit = $exit;
                Self::new(pick(&error), error.to_string())
            }
        }
    )+};
}

failures! {
    ReadError => |_| Exit::Data,
    PlanError => |_| Exit::Data,
    SpeechError => |_| Exit::Data,
    CheckpointError => checkpoint_exit,
    ScheduleError => |_| Exit::Recipe,
    ScalingError => |_| Exit::Recipe,
    OptimizerError => |_| Exit::Internal,
    TrainError => |error| match error {
        TrainError::Checkpoint(error) => checkpoint_exit(error),
        TrainError::Schedule(_) | TrainError::Scaling(_) | TrainError::Settings(_) => Exit::Recipe,
        TrainError::Islands => Exit::Device,
        TrainError::OtherRun { .. } | TrainError::Batch { .. } => Exit::Data,
        _ => Exit::Internal,
    },
}

fn checkpoint_exit(error: &CheckpointError) -> Exit {
    match error {
        CheckpointError::Damaged { .. }
        | CheckpointError::NoneWhole { .. }
        | CheckpointError::Missing { .. }
        | CheckpointError::OtherRun { .. } => Exit::Damaged,
        CheckpointError::Io { .. } => Exit::Internal,
        _ => Exit::Data,
    }
}

impl From<SignatureError> for Failure {
    fn from(error: SignatureError) -> Self {
        Self::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(failure: &Failure, colour: bool) -> String {
        let mut out = Vec::new();
        failure.print(&mut out, colour);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hints_stand_on_lines_of_their_own() {
        let failure = Failure::new(Exit::Data, "a file is missing\n  hint: look there").hint("or fetch it");
        assert_eq!(
            printed(&failure, false),
            "error: a file is missing\nhint: look there\nhint: or fetch it\n"
        );
        assert!(printed(&failure, true).starts_with("\u{1b}[1;31merror:\u{1b}[0m a file"));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let failure = Failure::new(Exit::Data, "\u{1b}]0;x\u{7}: it is \u{9b}2J not\nhint: \u{1b}c");
        assert_eq!(
            printed(&failure, false),
            "error: \\u{1b}]0;x\\u{7}: it is \\u{9b}2J not\nhint: \\u{1b}c\n"
        );
    }

    #[test]
    fn a_file_without_consent_ends_as_a_refused_plan() {
        let unconfirmed = || FetchError::Unconfirmed { name: "a".into(), attempts: Vec::new() };
        assert_eq!(Failure::from(unconfirmed()).exit, Exit::PlanRefused);
        let (corpus, file, source) = ("a".into(), "a".into(), Box::new(unconfirmed()));
        assert_eq!(Failure::from(CorpusError::Fetch { corpus, file, source }).exit, Exit::PlanRefused);
    }

    #[test]
    fn a_full_disk_is_about_space() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let text = printed(&Failure::io("write", Path::new("runs/a"), &full), false);
        assert!(text.contains("hint: free some space"), "{text}");
    }

    #[test]
    fn for_programs_a_failure_is_one_line() {
        let failure = Failure::new(Exit::Data, "a file is missing\nin x\n  hint: look there").hint("or not");
        let mut out = Vec::new();
        failure.print_json(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({ "version": 1, "error": {
            "exit": "data", "exit_code": 4, "message": "a file is missing\nin x", "hint": "look there\nor not",
            "file": null, "line": null, "column": null, "findings": [],
        }});
        assert_eq!(read, expected);
    }

    #[test]
    fn findings_keep_their_place() {
        let error =
            zoo_recipes::Document::parse("[recipe\n", "x.toml", Path::new("")).map(|_| ()).unwrap_err();
        let failure = Failure::from(error);
        let found = failure.json();
        assert_eq!((&found["error"]["file"], &found["error"]["line"]), (&json!("x.toml"), &json!(1)));
        assert_eq!(found["error"]["findings"].as_array().map(Vec::len), Some(1), "{found}");
        let text = printed(&failure, false);
        assert!(text.starts_with("x.toml:1:"), "{text}");
        assert!(text.ends_with("error: the recipe has an error\n"), "{text}");
    }
}
