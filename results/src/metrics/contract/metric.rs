//! The interface of a metric: it turns records and references into rows, and rows into a number.

use std::fmt::Debug;

use serde_json::{Map, Value};

use super::arithmetic::Arithmetic;
use super::entry::Entry;
use super::error::ScoreError;
use super::rows::{Drawn, Rows};

/// A metric with its options. The option types implement this trait, one in each file of a family's
/// folder.
///
/// A score is computed in two steps, so that resampling does not read the test set again:
/// [`Metric::read`] computes a row of numbers for each record, and [`Metric::value`] computes a
/// number from the drawn rows. A metric does not have to be a sum, because it sees every row.
pub trait Metric: Debug + Send + Sync {
    /// Name, unit and direction. Options may choose between two entries, as words and characters do
    /// for error rates.
    fn entry(&self) -> &'static Entry;

    /// Checks the options and rejects invalid ones.
    fn check(&self) -> Result<(), ScoreError> {
        Ok(())
    }

    /// The options as parts of a signature, in canonical order: everything that changes the value.
    fn parts(&self) -> Vec<(&'static str, String)>;

    /// The input from which a record's row is computed.
    fn source(&self) -> Source;

    /// Whether sacreBLEU computes the same value under the same signature. The signatures then have
    /// sacreBLEU's form and version.
    fn is_sacrebleu(&self) -> bool {
        false
    }

    /// Rows of records against reference streams, each with one reference per record.
    ///
    /// # Errors
    /// A record or a reference that the metric cannot read, with its line.
    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError>;

    /// The value of the records whose rows were drawn.
    fn value(&self, drawn: Drawn<'_>) -> f64;

    /// Whether rows are (sum, count) pairs, which other programs may supply without records.
    fn takes_pairs(&self) -> bool {
        false
    }

    /// Precision of a resample's sums for the interval. sacreBLEU uses single precision, and the
    /// metrics of text follow it.
    fn precision(&self) -> Arithmetic {
        Arithmetic::Single
    }
}

/// The input from which a record's row is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A line of text and its references. Signatures have `nrefs:`.
    Text,
    /// A typed record and its references. Signatures have `nrefs:`.
    Labelled,
    /// The record alone, which contains all measurements.
    Record,
    /// No record: training logs the sum and the count of a term.
    Training,
}

impl Source {
    /// Whether references are needed.
    pub fn needs_references(self) -> bool {
        matches!(self, Source::Text | Source::Labelled)
    }
}

/// Rows of a test set, and further facts about its score.
#[derive(Debug, Clone)]
pub struct Reading {
    /// One row per record.
    pub rows: Rows,
    /// Parts of the score for [`MetricValue::detail`](crate::metrics::MetricValue::detail).
    pub detail: Map<String, Value>,
}

impl From<Rows> for Reading {
    fn from(rows: Rows) -> Self {
        Self { rows, detail: Map::new() }
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::Direction;

    use super::*;

    static AP: Entry = Entry::percent("ap", "percent", Direction::Higher);

    /// Average precision: the mean over the right detections, in order of decreasing score, of the
    /// share of right detections so far.
    #[derive(Debug)]
    struct AveragePrecision;

    impl Metric for AveragePrecision {
        fn entry(&self) -> &'static Entry {
            &AP
        }

        fn parts(&self) -> Vec<(&'static str, String)> {
            Vec::new()
        }

        fn source(&self) -> Source {
            Source::Record
        }

        fn read(&self, records: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
            let numbers = |line: &String| line.split(' ').filter_map(|word| word.parse().ok()).collect();
            Ok(Rows::ragged(records.iter().map(numbers)).into())
        }

        fn value(&self, drawn: Drawn<'_>) -> f64 {
            let mut found: Vec<(f64, f64)> =
                drawn.rows().flat_map(|row| row.chunks_exact(2).map(|pair| (pair[0], pair[1]))).collect();
            found.sort_by(|one, other| other.0.total_cmp(&one.0));
            let (mut right, mut sum) = (0.0, 0.0);
            for (place, (_, hit)) in (1..).zip(&found) {
                right += hit;
                sum += hit * right / f64::from(place);
            }
            if right > 0.0 { 100.0 * sum / right } else { 0.0 }
        }
    }

    #[test]
    fn a_metric_that_is_not_a_sum_is_computed_of_the_rows_that_were_drawn() {
        // Three images with three, zero and one detections; each detection is a score and a hit.
        let records = ["0.9 1 0.5 0 0.3 1", "", "0.7 0"].map(str::to_owned);
        let rows = AveragePrecision.read(&records, &[]).unwrap().rows;
        let mut sums = Vec::new();
        // In order of score: right, wrong, wrong, right.
        assert_eq!(AveragePrecision.value(Drawn::all(&rows, &mut sums)), 100.0 * (1.0 + 0.5) / 2.0);
        let of = Drawn::of(&rows, &[0, 0], Arithmetic::Double, &mut sums);
        // Right twice, wrong twice, right twice.
        assert_eq!(AveragePrecision.value(of), 100.0 * (1.0 + 1.0 + 3.0 / 5.0 + 4.0 / 6.0) / 4.0);
        assert_eq!(AveragePrecision.value(Drawn::of(&rows, &[1, 2], Arithmetic::Double, &mut sums)), 0.0);
    }
}
