//! Statistics of a scored test set, one row per segment. They determine the score of the set and of
//! any resample of it.

use sha2::{Digest, Sha256};

use super::signature::Signature;
use crate::metrics::contract::{Arithmetic, Drawn, ResamplingError, Rows, ScoreError};

/// Statistics of a scored corpus, one row per segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentStatistics {
    signature: Signature,
    rows: Rows,
    references_sha256: Option<String>,
}

impl SegmentStatistics {
    pub(crate) fn new(signature: Signature, rows: Rows, references_sha256: Option<String>) -> Self {
        SegmentStatistics { signature, rows, references_sha256 }
    }

    /// Statistics of a metric that is a ratio of sums (accuracy, loss, perplexity, the metrics of
    /// spectrograms). Each pair is the (numerator, denominator) of a segment, e.g. (right answers,
    /// answers) or (summed loss in nats, tokens). Numbers must be finite and denominators not
    /// negative.
    ///
    /// # Errors
    /// There are no pairs, a number is invalid, or the metric's rows are not such pairs.
    pub fn from_ratios(signature: Signature, pairs: &[(f64, f64)]) -> Result<Self, ScoreError> {
        if !signature.convention.metric().takes_pairs() {
            return Err(ScoreError::OutOfRange {
                option: "metric of (sum, count) statistics",
                value: signature.to_string(),
                hint: "accuracy, loss, perplexity, mcd or mel-error; score text from its hypotheses and references",
            });
        }
        if pairs.is_empty() {
            return Err(ScoreError::NoHypotheses);
        }
        if let Some((sum, count)) = pairs.iter().find(|(s, c)| !s.is_finite() || !c.is_finite() || *c < 0.0) {
            let (option, value) = ("(sum, count)", format!("({sum}, {count})"));
            return Err(ScoreError::OutOfRange { option, value, hint: "finite numbers, counts from 0" });
        }
        let rows = pairs.iter().flat_map(|(s, c)| [*s, *c]).collect();
        Ok(SegmentStatistics::new(signature, Rows::even(2, rows), None))
    }

    /// Signature of the statistics.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no segments. Always false, because every constructor rejects an empty set.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// SHA-256 of the references, if there are any.
    pub fn references_sha256(&self) -> Option<&str> {
        self.references_sha256.as_deref()
    }

    /// The corpus score.
    pub fn value(&self) -> f64 {
        self.signature.convention.metric().value(Drawn::all(&self.rows, &mut Vec::new()))
    }

    /// The score of the corpus made of these segments, with repetition. `sums` is a buffer that
    /// later calls reuse.
    pub(crate) fn resampled_value(
        &self,
        indices: &[u32],
        sums: &mut Vec<f64>,
        arithmetic: Arithmetic,
    ) -> f64 {
        let drawn = Drawn::of(&self.rows, indices, arithmetic, sums);
        self.signature.convention.metric().value(drawn)
    }

    /// Whether the two can be paired segment by segment.
    pub(crate) fn pairs_with(&self, other: &SegmentStatistics) -> Result<(), ScoreError> {
        self.signature.comparable(&other.signature)?;
        if self.len() != other.len() || self.references_sha256 != other.references_sha256 {
            return Err(ResamplingError::NotPaired { left: self.len(), right: other.len() }.into());
        }
        Ok(())
    }
}

/// SHA-256 over reference streams: the number of streams, then the length and bytes of every line.
pub(crate) fn fingerprint(references: &[Vec<String>]) -> String {
    let mut digest = Sha256::new();
    digest.update((references.len() as u64).to_le_bytes());
    for line in references.iter().flatten() {
        digest.update((line.len() as u64).to_le_bytes());
        digest.update(line.as_bytes());
    }
    hex::encode(digest.finalize())
}
