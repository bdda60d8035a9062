//! Scoring: hypotheses and references in, a value out. All scores of records are computed here.

use serde_json::{Map, Value};

use super::bootstrap::{Resampling, interval};
use super::error::ScoreError;
use super::metric::Source;
use super::registry::Convention;
use super::segments::{SegmentStatistics, fingerprint};
use super::signature::Signature;
use super::text::check_streams;
use super::value::MetricValue;

/// Scores records by one convention.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorer {
    convention: Convention,
    references: Option<usize>,
    test_set: Option<String>,
}

/// Options of [`score`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreOptions {
    /// Metric, options and test set.
    pub scorer: Scorer,
    /// Resampling for an interval; `None` for no interval.
    pub resampling: Option<Resampling>,
}

/// Scores records, one per segment, against reference streams, each with one reference per segment.
/// A record is a line of text or of JSON.
///
/// # Errors
/// Streams of different lengths, and records or references that the metric cannot read.
pub fn score(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &ScoreOptions,
) -> Result<MetricValue, ScoreError> {
    let (statistics, detail) = options.scorer.measure(hypotheses, references)?;
    let mut value = MetricValue::from_statistics(&statistics);
    if let Some(parts) = value.detail.as_object_mut() {
        parts.extend(detail);
    }
    if let Some(resampling) = options.resampling {
        value.interval = Some(interval(&statistics, resampling)?);
        value.signature.resampling = Some(resampling);
    }
    Ok(value)
}

impl Scorer {
    /// A scorer by this convention, against any number of references.
    ///
    /// # Errors
    /// Invalid options, or a metric that is not computed from records.
    pub fn new(convention: Convention) -> Result<Self, ScoreError> {
        convention.check()?;
        if convention.metric().source() == Source::Training {
            return Err(ScoreError::NotFromText { metric: convention.entry().name });
        }
        Ok(Scorer { convention, references: None, test_set: None })
    }

    /// A scorer by a claim's signature. The number of references must then be the stated one.
    pub fn from_signature(text: &str) -> Result<Self, ScoreError> {
        let signature = Signature::parse(text)?;
        let mut scorer = Scorer::new(signature.convention)?;
        scorer.references = signature.references;
        scorer.test_set = signature.test_set;
        Ok(scorer)
    }

    /// Sets the name of the test set.
    pub fn on(mut self, test_set: &str) -> Result<Self, ScoreError> {
        // Signature checks which names can be printed.
        self.test_set = Signature::own(self.convention, Some(1)).on(test_set)?.test_set;
        Ok(self)
    }

    /// Metric and options.
    pub fn convention(&self) -> &Convention {
        &self.convention
    }

    /// Statistics of every segment, for intervals and paired comparisons.
    pub fn statistics(
        &self,
        hypotheses: &[String],
        references: &[Vec<String>],
    ) -> Result<SegmentStatistics, ScoreError> {
        self.measure(hypotheses, references).map(|(statistics, _)| statistics)
    }

    fn measure(
        &self,
        records: &[String],
        references: &[Vec<String>],
    ) -> Result<(SegmentStatistics, Map<String, Value>), ScoreError> {
        let metric = self.convention.metric();
        let needed = metric.source().needs_references();
        if needed || !references.is_empty() {
            check_streams(records, references)?;
        } else if records.is_empty() {
            return Err(ScoreError::NoHypotheses);
        }
        if let Some(expected) = self.references.filter(|n| *n != references.len()) {
            return Err(ScoreError::ReferenceCount { expected, found: references.len() });
        }
        let reading = metric.read(records, references)?;
        let mut signature = Signature::own(self.convention, needed.then_some(references.len()));
        signature.test_set = self.test_set.clone();
        let digest = (!references.is_empty()).then(|| fingerprint(references));
        Ok((SegmentStatistics::new(signature, reading.rows, digest), reading.detail))
    }
}
