//! Measurements of an utterance as a line of text: the kept hypothesis of a model that produces
//! sound.
//!
//! A line is a JSON object. `measures` has a sum and a count for each metric with its options,
//! keyed as a signature states them. All scores follow from these. Other keys are for people.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::metrics::contract::{Metric, ScoreError, join};

/// A line of measurements; see the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeasuredLine {
    measures: BTreeMap<String, (f64, f64)>,
    #[serde(flatten)]
    facts: Map<String, Value>,
}

impl MeasuredLine {
    /// Adds a measure by these options.
    pub fn measure(&mut self, options: &dyn Metric, (sum, count): (f64, f64)) {
        self.measures.insert(key(options), (sum, count));
    }

    /// Adds another fact.
    pub fn say(&mut self, name: &str, value: Value) {
        self.facts.insert(name.to_owned(), value);
    }

    /// The measure by these options from a kept line. `place` is the line number, from 1.
    ///
    /// # Errors
    /// It is not such a line, or it lacks the measure.
    pub fn read(text: &str, options: &dyn Metric, place: usize) -> Result<(f64, f64), ScoreError> {
        let fail = |problem: String| {
            let hint =
                "the lines are those that `zoo evaluate` keeps for speech synthesis: see docs/synthesis.md";
            Err(ScoreError::Array { what: "a measured line", problem, hint })
        };
        let line: Self = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => return fail(format!("line {place} is not such a line: {error}")),
        };
        let key = key(options);
        match line.measures.get(&key) {
            Some(measure) => Ok(*measure),
            None => {
                let known: Vec<&str> = line.measures.keys().map(String::as_str).collect();
                fail(format!("line {place} has no `{key}`; it has {}", known.join(", ")))
            }
        }
    }
}

/// The part of a signature that states the metric and its options.
fn key(options: &dyn Metric) -> String {
    let mut parts = vec![("metric", options.entry().name.to_string())];
    parts.extend(options.parts());
    join(&parts)
}

impl fmt::Display for MeasuredLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{CepstralOptions, MelErrorOptions};
    use super::*;

    fn line(sum: f64) -> String {
        let mut line = MeasuredLine::default();
        line.measure(&MelErrorOptions { mels: 80 }, (sum, 800.0));
        line.say("frames", 10.into());
        line.to_string()
    }

    #[test]
    fn a_line_holds_its_measures_by_the_options_of_their_signatures() {
        let text = line(8.0);
        assert_eq!(MeasuredLine::read(&text, &MelErrorOptions { mels: 80 }, 1).unwrap(), (8.0, 800.0));
        assert!(text.contains(r#""metric:mel-error|mel:80|mean:frame":[8.0,800.0]"#), "{text}");
        assert!(text.contains("\"frames\":10") && !text.contains('\n'), "{text}");
    }

    #[test]
    fn what_is_no_such_line_says_so() {
        let other = CepstralOptions::default();
        let missing = MeasuredLine::read(&line(1.0), &other, 7).unwrap_err().to_string();
        assert!(missing.contains("line 7 has no `metric:mcd|") && missing.contains("mel-error"), "{missing}");
        for text in ["", "words", "[1]", "{\"measures\": 3}"] {
            let error = MeasuredLine::read(text, &other, 2).unwrap_err().to_string();
            assert!(error.contains("line 2 is not such a line") && error.contains("\nhint: "), "{error}");
        }
    }
}
