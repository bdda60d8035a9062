//! A metric's value with everything needed to interpret and compare it.

use serde::{Deserialize, Serialize};
use zoo_recipes::spec::Direction;

use super::bootstrap::Interval;
use super::segments::SegmentStatistics;
use super::signature::Signature;
use crate::metrics::contract::Entry;

/// A measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// The metric.
    pub metric: &'static Entry,
    /// The value, in the metric's unit.
    pub value: f64,
    /// The convention of the value. Two values are compared only if their signatures agree.
    pub signature: Signature,
    /// Interval over resampled segments, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Parts of the score, e.g. precisions, brevity penalty, lengths; hits, substitutions,
    /// deletions, insertions; `segments`; `references_sha256`.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
    /// Whether higher or lower is better.
    pub direction: Direction,
}

impl MetricValue {
    /// The value from segment statistics, without interval and parts.
    pub fn from_statistics(statistics: &SegmentStatistics) -> Self {
        let signature = statistics.signature().clone();
        let metric = signature.convention.entry();
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
            direction: metric.direction,
        }
    }
}
