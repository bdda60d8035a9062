//! Share of hypotheses that equal a reference after runs of white space become one space, in
//! percent.

use super::options::ExactMatchOptions;
use crate::metrics::contract::{
    Case, Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source, is_space,
};
use zoo_recipes::Direction;

/// Share of hypotheses that equal a reference.
pub static EXACT_MATCH: Entry = Entry::percent("exact-match", "percent", Direction::Higher);

impl Metric for ExactMatchOptions {
    fn entry(&self) -> &'static Entry {
        &EXACT_MATCH
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![self.case.part()]
    }

    fn source(&self) -> Source {
        Source::Text
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        Ok(Rows::even(2, matches(records, references, self.case)).into())
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        100.0 * arithmetic.ratio(sums[0], sums[1])
    }
}

/// Reads the options of exact match.
pub fn read<C: From<ExactMatchOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(ExactMatchOptions { case: parts.case()? }.into())
}

/// (1 or 0, 1) for each segment.
fn matches(hypotheses: &[String], references: &[Vec<String>], case: Case) -> Vec<f64> {
    let words = |line: &str| -> Vec<String> {
        let line = if case == Case::Lower { line.to_lowercase() } else { line.to_string() };
        line.split(is_space).filter(|w| !w.is_empty()).map(str::to_string).collect()
    };
    let equal = |(i, h): (usize, &String)| {
        let h = words(h);
        [f64::from(u8::from(references.iter().any(|stream| words(&stream[i]) == h))), 1.0]
    };
    hypotheses.iter().enumerate().flat_map(equal).collect()
}
