//! A term logged by training, as evidence.

use serde::{Deserialize, Serialize};

use super::segments::SegmentStatistics;
use super::signature::Signature;
use super::value::MetricValue;
use crate::metrics::contract::{ScoreError, Source};

/// Sum and count of a term over the updates that the signature names. The score follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedTerm {
    /// Metric and options.
    pub signature: Signature,
    /// For `mean:unit` the sum of the term; for `mean:update` the sum of the updates' means.
    pub sum: f64,
    /// For `mean:unit` the number of units; for `mean:update` the number of updates.
    pub count: f64,
    /// Number of the last update included, from 1.
    pub update: u64,
}

impl TrainedTerm {
    /// The value, without an interval: a training set is not a sample that could be drawn again.
    ///
    /// # Errors
    /// The signature is not of a training term, or the numbers have no mean.
    pub fn value(&self) -> Result<MetricValue, ScoreError> {
        let metric = self.signature.convention.metric();
        if metric.source() != Source::Training {
            return Err(ScoreError::OutOfRange {
                option: "metric of a training term",
                value: self.signature.to_string(),
                hint: "train-loss, train-perplexity or train-accuracy",
            });
        }
        if self.count <= 0.0 {
            let (option, value) = (metric.entry().name, format!("{} over {}", self.sum, self.count));
            return Err(ScoreError::OutOfRange { option, value, hint: "a finite sum over at least one" });
        }
        let pairs = [(self.sum, self.count)];
        let statistics = SegmentStatistics::from_ratios(self.signature.clone(), &pairs)?;
        Ok(MetricValue::from_statistics(&statistics))
    }
}
