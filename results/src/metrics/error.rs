//! What can be wrong with a request to score.

use thiserror::Error;

/// Why there is no score. Each text says what was found and, after `hint:`, what to do.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScoreError {
    /// An empty hypothesis stream has no score; it is not a score of 0.
    #[error(
        "there are no hypotheses to score\nhint: give one hypothesis a line; an empty line is an empty hypothesis"
    )]
    NoHypotheses,
    /// No reference stream at all.
    #[error("there are no references to score against\nhint: give at least one reference stream")]
    NoReferences,
    /// A reference stream that does not pair up with the hypotheses.
    #[error(
        "reference stream {stream} has {references} lines, the hypotheses have {hypotheses}\nhint: both must be of the same test set, in the same order, empty lines kept"
    )]
    LengthMismatch {
        /// 1-based number of the stream.
        stream: usize,
        /// Lines of hypotheses.
        hypotheses: usize,
        /// Lines of that stream.
        references: usize,
    },
    /// A line that would cost more time or memory than one line may.
    #[error(
        "line {line} of {}: {problem}\nhint: put one sentence or utterance on a line; is a line feed missing?",
        stream_name(*stream)
    )]
    LineTooLong {
        /// 1-based number of the reference stream; `None` is the hypotheses.
        stream: Option<usize>,
        /// Line, from 1.
        line: usize,
        /// How long it is and what the metric takes.
        problem: String,
    },
    /// The signature asks for another number of references.
    #[error(
        "the signature says nrefs:{expected}, {found} reference stream(s) were given\nhint: scores against different numbers of references are different metrics"
    )]
    ReferenceCount {
        /// What the signature says.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A name that is in no list.
    #[error("unknown {what} `{name}`\nhint: {hint}")]
    UnknownName {
        /// `tokenizer`, `smoothing`, `metric`, …
        what: &'static str,
        /// As given.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// sacreBLEU has it, this program does not.
    #[error("{what} `{name}` of sacreBLEU is not built in\nhint: {hint}")]
    Unsupported {
        /// `tokenizer`, …
        what: &'static str,
        /// As given.
        name: String,
        /// What can be done instead.
        hint: &'static str,
    },
    /// An option outside of its range.
    #[error("{option} = {value} is out of range\nhint: {hint}")]
    OutOfRange {
        /// Name of the option.
        option: &'static str,
        /// As given.
        value: String,
        /// The range.
        hint: &'static str,
    },
    /// The tool that is followed has no value here.
    #[error("{tool} has no score here: {reason}\nhint: {hint}")]
    Undefined {
        /// The tool, e.g. `multi-bleu`.
        tool: &'static str,
        /// What is missing.
        reason: &'static str,
        /// What to look at.
        hint: &'static str,
    },
    /// A signature of a value that is not made from records.
    #[error(
        "{metric} cannot be scored from records\nhint: it is measured while the model trains; state its value itself"
    )]
    NotFromText {
        /// The metric.
        metric: &'static str,
    },
    /// A typed record that the metric cannot read.
    #[error("line {line} of the records: {problem}\nhint: {hint}")]
    Record {
        /// Line, from 1.
        line: usize,
        /// What was found.
        problem: String,
        /// What a right record looks like, or what to change.
        hint: &'static str,
    },
    /// Numbers that are not what they should be: a shape, a value that is not finite.
    #[error("{what}: {problem}\nhint: {hint}")]
    Array {
        /// `a log-mel spectrogram`, `attention`, …
        what: &'static str,
        /// What was found.
        problem: String,
        /// What to look at.
        hint: &'static str,
    },
    /// Two independent computations disagree; neither is reported.
    #[error(
        "the {metric} of the library ({library}) and of the segment statistics ({own}) differ\nhint: this is a defect of the program; please report the text that shows it"
    )]
    Disagreement {
        /// The metric.
        metric: &'static str,
        /// The library's.
        library: String,
        /// Ours.
        own: String,
    },
    /// What was asked about a signature.
    #[error(transparent)]
    Signature(#[from] super::signature::SignatureError),
    /// Resampling.
    #[error(transparent)]
    Resampling(#[from] super::bootstrap::ResamplingError),
}

/// `the hypotheses`, `reference stream 2`.
fn stream_name(stream: Option<usize>) -> String {
    stream.map_or_else(|| "the hypotheses".to_owned(), |number| format!("reference stream {number}"))
}

/// The error for a `name` that is none of `known`.
pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> ScoreError {
    let near = known
        .iter()
        .map(|k| (strsim::levenshtein(name, k), *k))
        .min()
        .filter(|(d, k)| *d <= 2 && *d < k.len())
        .map(|(_, k)| format!("did you mean `{k}`? "))
        .unwrap_or_default();
    ScoreError::UnknownName {
        what,
        name: name.to_string(),
        hint: format!("{near}known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let e = unknown("tokenizer", "13b", &["13a", "intl", "char"]).to_string();
        assert!(e.contains("unknown tokenizer `13b`") && e.contains("did you mean `13a`?"), "{e}");
        let e = unknown("tokenizer", "mecab", &["13a", "intl"]).to_string();
        assert!(!e.contains("did you mean") && e.contains("known: 13a, intl"), "{e}");
    }
}
