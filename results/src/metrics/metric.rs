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
    /// Parts of the score for [`super::MetricValue::detail`].
    pub detail: Map<String, Value>,
}

impl From<Rows> for Reading {
    fn from(rows: Rows) -> Self {
        Self { rows, detail: Map::new() }
    }
}
