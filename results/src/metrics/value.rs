//! A metric's value with everything that it takes to understand and to compare it.

use serde::{Deserialize, Serialize};
use zoo_recipes::spec::Direction;

use super::bootstrap::Interval;
use super::convention::{Convention, Metric, Unit};
use super::error::ScoreError;
use super::segments::SegmentStatistics;
use super::signature::{Signature, SignatureError};

/// A measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// Which metric.
    pub metric: Metric,
    /// BLEU, chrF, TER, error rates, accuracy and exact match in percent; loss in nats; distortion in dB; perplexity and
    /// squared error as they are.
    pub value: f64,
    /// What it was computed as; two values are compared only where these agree.
    pub signature: Signature,
    /// Over resampled segments, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Parts of the score, e.g. precisions, brevity penalty, lengths; hits, substitutions, deletions, insertions; `segments`;
    /// `references_sha256`.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
    /// Which way is better.
    pub direction: Direction,
}

impl MetricValue {
    /// From segment statistics, without interval and parts.
    pub fn from_statistics(statistics: &SegmentStatistics) -> Self {
        let signature = statistics.signature().clone();
        let metric = signature.convention.metric();
        let mut detail = serde_json::Map::new();
        detail.insert("segments".into(), statistics.len().into());
        if let Some(digest) = statistics.references_sha256() {
            detail.insert("references_sha256".into(), digest.into());
        }
        MetricValue {
            metric,
            value: statistics.value(),
            signature,
            interval: None,
            detail: detail.into(),
            direction: metric.direction(),
        }
    }

    /// Right ones among all, in percent.
    pub fn accuracy(correct: u64, total: u64, unit: Unit) -> Result<Self, ScoreError> {
        if total == 0 || correct > total {
            let (option, value) = ("accuracy", format!("{correct} of {total}"));
            return Err(ScoreError::OutOfRange {
                option,
                value,
                hint: "at least one, and no more right than all",
            });
        }
        Self::ratio(Convention::Accuracy(unit), correct as f64, total as f64)
    }

    /// Mean loss in nats; `label_smoothing` is what the training loss had in it, 0 for plain cross-entropy.
    pub fn loss(sum: f64, count: u64, unit: Unit, label_smoothing: f64) -> Result<Self, ScoreError> {
        Self::ratio(Convention::Loss(unit, label_smoothing), sum, count as f64)
    }

    /// exp of the mean plain cross-entropy.
    pub fn perplexity(sum: f64, count: u64, unit: Unit) -> Result<Self, ScoreError> {
        Self::ratio(Convention::Perplexity(unit), sum, count as f64)
    }

    fn ratio(convention: Convention, sum: f64, count: f64) -> Result<Self, ScoreError> {
        convention.check()?;
        if !sum.is_finite() || count <= 0.0 {
            let (option, value) = (convention.metric().name(), format!("{sum} over {count}"));
            return Err(ScoreError::OutOfRange { option, value, hint: "a finite sum over at least one" });
        }
        let signature = Signature::own(convention, None);
        let statistics = SegmentStatistics::from_ratios(signature, &[(sum, count)])?;
        let detail = serde_json::json!({ "sum": sum, "count": count });
        Ok(MetricValue { detail, ..Self::from_statistics(&statistics) })
    }

    /// The same on a named test set.
    pub fn on(mut self, test_set: &str) -> Result<Self, SignatureError> {
        self.signature = self.signature.on(test_set)?;
        Ok(self)
    }

    /// How much better this is than the other, in the metric's unit: negative where it is worse. An error where the
    /// two were not measured alike.
    pub fn gain_over(&self, other: &MetricValue) -> Result<f64, SignatureError> {
        self.signature.comparable(&other.signature)?;
        let difference = self.value - other.value;
        Ok(if self.direction == Direction::Higher { difference } else { -difference })
    }
}
