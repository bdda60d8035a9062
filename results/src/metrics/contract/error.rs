//! Errors of signatures and of requests to score.

use thiserror::Error;

use super::resampling::ResamplingError;

/// An error of a signature.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SignatureError {
    /// The text is not made of `key:value` parts, a part is repeated or missing, or a key or value
    /// is unknown.
    #[error("signature `{text}`: {problem}\nhint: {hint}")]
    Malformed {
        /// The signature as given.
        text: String,
        /// What was found.
        problem: String,
        /// What to write.
        hint: String,
    },
    /// The two scores measure different things.
    #[error("`{left}` and `{right}` cannot be compared: {}\nhint: score both the same way, on the same test set", .differences.join(", "))]
    Unlike {
        /// Signature of the first score.
        left: String,
        /// Signature of the second score.
        right: String,
        /// The differences: `tok:13a against tok:intl`, …
        differences: Vec<String>,
    },
}

/// Why there is no score. Each message says what was found and, after `hint:`, what to do.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScoreError {
    /// There are no hypotheses. An empty hypothesis stream has no score; its score is not 0.
    #[error(
        "there are no hypotheses to score\nhint: give one hypothesis a line; an empty line is an empty hypothesis"
    )]
    NoHypotheses,
    /// There is no reference stream.
    #[error("there are no references to score against\nhint: give at least one reference stream")]
    NoReferences,
    /// A reference stream has a different number of lines than the hypotheses.
    #[error(
        "reference stream {stream} has {references} lines, the hypotheses have {hypotheses}\nhint: both must be of the same test set, in the same order, empty lines kept"
    )]
    LengthMismatch {
        /// Number of the stream, from 1.
        stream: usize,
        /// Number of lines of the hypotheses.
        hypotheses: usize,
        /// Number of lines of the reference stream.
        references: usize,
    },
    /// A line exceeds the limit of time or memory for one line.
    #[error(
        "line {line} of {}: {problem}\nhint: put one sentence or utterance on a line; is a line feed missing?",
        stream_name(*stream)
    )]
    LineTooLong {
        /// Number of the reference stream, from 1; `None` is the hypotheses.
        stream: Option<usize>,
        /// Line, from 1.
        line: usize,
        /// The line's length and the metric's limit.
        problem: String,
    },
    /// The signature states another number of references.
    #[error(
        "the signature says nrefs:{expected}, {found} reference stream(s) were given\nhint: scores against different numbers of references are different metrics"
    )]
    ReferenceCount {
        /// Number in the signature.
        expected: usize,
        /// Number that was given.
        found: usize,
    },
    /// An unknown name.
    #[error("unknown {what} `{name}`\nhint: {hint}")]
    UnknownName {
        /// Kind of name: `tokenizer`, `smoothing`, `metric`, …
        what: &'static str,
        /// The name as given.
        name: String,
        /// The nearest name, or all names.
        hint: String,
    },
    /// sacreBLEU supports it, but this program does not.
    #[error("{what} `{name}` of sacreBLEU is not built in\nhint: {hint}")]
    Unsupported {
        /// Kind of name: `tokenizer`, …
        what: &'static str,
        /// The name as given.
        name: String,
        /// The alternative.
        hint: &'static str,
    },
    /// An option outside its range.
    #[error("{option} = {value} is out of range\nhint: {hint}")]
    OutOfRange {
        /// Name of the option.
        option: &'static str,
        /// The value as given.
        value: String,
        /// The range.
        hint: &'static str,
    },
    /// The reference tool has no defined value in this case.
    #[error("{tool} has no score here: {reason}\nhint: {hint}")]
    Undefined {
        /// The tool, e.g. `multi-bleu`.
        tool: &'static str,
        /// What is missing.
        reason: &'static str,
        /// What to check.
        hint: &'static str,
    },
    /// The signature is of a value that is not computed from records.
    #[error("{metric} cannot be scored from records\nhint: it is measured during training; give its value")]
    NotFromText {
        /// Name of the metric.
        metric: &'static str,
    },
    /// A typed record that the metric cannot read.
    #[error("line {line} of the records: {problem}\nhint: {hint}")]
    Record {
        /// Line, from 1.
        line: usize,
        /// What was found.
        problem: String,
        /// The form of a valid record, or what to change.
        hint: &'static str,
    },
    /// An invalid array: a wrong shape, or a value that is not finite.
    #[error("{what}: {problem}\nhint: {hint}")]
    Array {
        /// Kind of array: `a log-mel spectrogram`, `attention`, …
        what: &'static str,
        /// What was found.
        problem: String,
        /// What to check.
        hint: &'static str,
    },
    /// Two independent computations disagree, so neither is reported.
    #[error(
        "the {metric} of the library ({library}) and of the segment statistics ({own}) differ\nhint: this is a defect of the program; please report the text that shows it"
    )]
    Disagreement {
        /// Name of the metric.
        metric: &'static str,
        /// Value from the library.
        library: String,
        /// Value from the segment statistics.
        own: String,
    },
    /// An error of a signature.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// An error of resampling.
    #[error(transparent)]
    Resampling(#[from] ResamplingError),
}

/// The stream in words: `the hypotheses`, `reference stream 2`.
fn stream_name(stream: Option<usize>) -> String {
    stream.map_or_else(|| "the hypotheses".to_owned(), |number| format!("reference stream {number}"))
}

/// The error for a `name` that is not in `known`.
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
