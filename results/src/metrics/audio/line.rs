//! Measurements of an utterance as a line of text: the kept hypothesis of a model that produces
//! sound.
//!
//! A line is a JSON object. `measures` has a sum and a count for each convention, keyed by the
//! first part of its signature. All scores follow from these. Other keys are for people.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::metrics::error::ScoreError;
use crate::metrics::registry::Convention;
use crate::metrics::signature::Signature;

/// A line of measurements; see the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeasuredLine {
    measures: BTreeMap<String, (f64, f64)>,
    #[serde(flatten)]
    facts: Map<String, Value>,
}

impl MeasuredLine {
    /// Adds a measure.
    pub fn measure(&mut self, convention: Convention, (sum, count): (f64, f64)) {
        self.measures.insert(key(convention), (sum, count));
    }

    /// Adds another fact.
    pub fn say(&mut self, name: &str, value: Value) {
        self.facts.insert(name.to_owned(), value);
    }

    /// The measure of a convention from a kept line. `place` is the line number, from 1.
    ///
    /// # Errors
    /// It is not such a line, or it lacks the measure.
    pub fn read(text: &str, convention: Convention, place: usize) -> Result<(f64, f64), ScoreError> {
        let fail = |problem: String| {
            let hint =
                "the lines are those that `zoo evaluate` keeps for speech synthesis: see docs/synthesis.md";
            Err(ScoreError::Array { what: "a measured line", problem, hint })
        };
        let line: Self = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => return fail(format!("line {place} is not such a line: {error}")),
        };
        let key = key(convention);
        match line.measures.get(&key) {
            Some(measure) => Ok(*measure),
            None => {
                let known: Vec<&str> = line.measures.keys().map(String::as_str).collect();
                fail(format!("line {place} has no `{key}`; it has {}", known.join(", ")))
            }
        }
    }
}

/// The convention's own part of its signature.
fn key(convention: Convention) -> String {
    let signature = Signature::own(convention, None).to_string();
    signature.split_once("|version:").map_or(signature.clone(), |(own, _)| own.to_owned())
}

impl fmt::Display for MeasuredLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{CepstralOptions, MelErrorOptions};
    use crate::metrics::{ScoreOptions, Scorer, score};

    fn line(sum: f64) -> String {
        let mut line = MeasuredLine::default();
        line.measure(Convention::MelError(MelErrorOptions { mels: 80 }), (sum, 800.0));
        line.say("frames", 10.into());
        line.to_string()
    }

    #[test]
    fn lines_are_scored_as_the_sums_that_they_hold() {
        let convention = Convention::MelError(MelErrorOptions { mels: 80 });
        assert_eq!(MeasuredLine::read(&line(8.0), convention, 1).unwrap(), (8.0, 800.0));
        assert!(line(8.0).contains("\"frames\":10") && !line(8.0).contains('\n'), "{}", line(8.0));
        let scorer = Scorer::new(convention).unwrap();
        let options = ScoreOptions { scorer, resampling: None };
        let said = vec!["one".to_owned(), "two".to_owned()];
        let value = score(&[line(8.0), line(24.0)], std::slice::from_ref(&said), &options).unwrap();
        assert_eq!(value.value, 0.02);
        let again = Scorer::from_signature(&value.signature.to_string()).unwrap();
        let options = ScoreOptions { scorer: again, resampling: None };
        assert_eq!(score(&[line(8.0), line(24.0)], &[said], &options).unwrap().value, 0.02);
    }

    #[test]
    fn what_is_no_such_line_says_so() {
        let other = Convention::MelCepstral(CepstralOptions::default());
        let missing = MeasuredLine::read(&line(1.0), other, 7).unwrap_err().to_string();
        assert!(missing.contains("line 7 has no `metric:mcd|") && missing.contains("mel-error"), "{missing}");
        for text in ["", "words", "[1]", "{\"measures\": 3}"] {
            let error = MeasuredLine::read(text, other, 2).unwrap_err().to_string();
            assert!(error.contains("line 2 is not such a line") && error.contains("\nhint: "), "{error}");
        }
    }
}
