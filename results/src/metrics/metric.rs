//! What a metric is: from records and references to rows, and from rows to a number.

use std::fmt::Debug;

use serde_json::{Map, Value};

use super::arithmetic::Arithmetic;
use super::entry::Entry;
use super::error::ScoreError;
use super::rows::{Drawn, Rows};

/// A metric with its options. The types of options implement it, one in each file of a family's folder.
///
/// A score is computed in two steps, so that a resampled test set costs no second reading: [`Metric::read`] gives each record a row of
/// numbers, [`Metric::value`] makes a number of the rows that were drawn. A metric need not be a sum: it sees every row.
pub trait Metric: Debug + Send + Sync {
    /// Name, unit and direction. Options may choose between two entries, as words and characters do of error rates.
    fn entry(&self) -> &'static Entry;

    /// Refuses options that no metric can have.
    fn check(&self) -> Result<(), ScoreError> {
        Ok(())
    }

    /// The options as parts of a signature, in canonical order: everything that changes the value.
    fn parts(&self) -> Vec<(&'static str, String)>;

    /// What a record's row is computed from.
    fn source(&self) -> Source;

    /// Whether sacreBLEU computes the same under the same signature. Signatures then have its form and version.
    fn is_sacrebleu(&self) -> bool {
        false
    }

    /// Rows of records against reference streams, each with one reference a record.
    ///
    /// # Errors
    /// A record or a reference that the metric cannot read, named by its line.
    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError>;

    /// The value of the records whose rows were drawn.
    fn value(&self, drawn: Drawn<'_>) -> f64;

    /// Whether rows are (sum, count) pairs, which other programs may give without records.
    fn takes_pairs(&self) -> bool {
        false
    }

    /// Precision of a resample's sums for the interval. sacreBLEU's is single, and metrics of text follow it.
    fn precision(&self) -> Arithmetic {
        Arithmetic::Single
    }
}

/// What the row of a record is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A line of text and its references: signatures have `nrefs:`.
    Text,
    /// A typed record and its references: signatures have `nrefs:`.
    Labelled,
    /// The record alone: everything that was measured stands in it.
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

/// Rows of a test set, with what else is to be said of its score.
#[derive(Debug, Clone)]
pub struct Reading {
    /// One row a record.
    pub rows: Rows,
    /// Parts of the score for [`super::MetricValue::detail`].
    pub detail: Map<String, Value>,
}

impl From<Rows> for Reading {
    fn from(rows: Rows) -> Self {
        Self { rows, detail: Map::new() }
    }
}
