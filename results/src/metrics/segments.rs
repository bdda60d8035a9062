//! Sufficient statistics: one row a segment, from whose column sums the corpus score follows.

use sha2::{Digest, Sha256};

use super::arithmetic::Arithmetic;
use super::convention::Convention;
use super::error::ScoreError;
use super::signature::Signature;
use super::text::{bleu, chrf, error_rate, ter, tokenised_bleu};

/// Statistics of a scored corpus, a row of `width` numbers for each segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentStatistics {
    signature: Signature,
    width: usize,
    rows: Vec<f64>,
    references_sha256: Option<String>,
}

impl SegmentStatistics {
    pub(crate) fn new(
        signature: Signature,
        width: usize,
        rows: Vec<f64>,
        references_sha256: Option<String>,
    ) -> Self {
        debug_assert!(width > 0 && rows.len().is_multiple_of(width));
        SegmentStatistics { signature, width, rows, references_sha256 }
    }

    /// Of a metric that is a ratio of sums (accuracy, loss, perplexity, those on spectrograms): (numerator, denominator) by segment, e.g.
    /// (right tokens, tokens) or (summed loss in nats, tokens). Numbers must be finite, denominators not negative.
    pub fn from_ratios(signature: Signature, pairs: &[(f64, f64)]) -> Result<Self, ScoreError> {
        if signature.convention.is_from_text() {
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
        Ok(SegmentStatistics::new(signature, 2, rows, None))
    }

    /// What the statistics are of.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.rows.len() / self.width
    }

    /// Is there no segment? Never so: every constructor refuses that.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// SHA-256 of the references, where there are any.
    pub fn references_sha256(&self) -> Option<&str> {
        self.references_sha256.as_deref()
    }

    /// The corpus score.
    pub fn value(&self) -> f64 {
        value_of(&self.signature.convention, &column_sums(&self.rows, self.width), Arithmetic::Double)
    }

    /// The score of the corpus that has these segments, with repetition. In single precision the rows are summed one
    /// after the other in f32, as NumPy sums along the first axis.
    pub(crate) fn resampled_value(
        &self,
        indices: &[u32],
        sums: &mut Vec<f64>,
        arithmetic: Arithmetic,
    ) -> f64 {
        sums.clear();
        sums.resize(self.width, 0.0);
        for &i in indices {
            let at = i as usize * self.width;
            for (sum, x) in sums.iter_mut().zip(&self.rows[at..at + self.width]) {
                *sum = arithmetic.round(*sum + arithmetic.round(*x));
            }
        }
        value_of(&self.signature.convention, sums, arithmetic)
    }

    /// May the two be paired segment by segment?
    pub(crate) fn pairs_with(&self, other: &SegmentStatistics) -> Result<(), ScoreError> {
        self.signature.comparable(&other.signature)?;
        if self.len() != other.len() || self.references_sha256 != other.references_sha256 {
            return Err(super::bootstrap::ResamplingError::NotPaired {
                left: self.len(),
                right: other.len(),
            }
            .into());
        }
        Ok(())
    }
}

/// Sum of each column, rows in order.
pub(crate) fn column_sums(rows: &[f64], width: usize) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
    sums
}

/// The score from column sums.
fn value_of(convention: &Convention, sums: &[f64], arithmetic: Arithmetic) -> f64 {
    let ratio = || if sums[1] > 0.0 { arithmetic.round(sums[0] / sums[1]) } else { 0.0 };
    match convention {
        Convention::Bleu(options) => bleu::from_sums(sums, options, arithmetic).0,
        Convention::TokenisedBleu(..) => tokenised_bleu::from_sums(sums).0,
        Convention::Chrf(options) => chrf::from_sums(sums, options, arithmetic),
        Convention::Ter(_) => ter::from_sums(sums, arithmetic),
        Convention::ErrorRate(_) => error_rate::from_sums(sums),
        Convention::ExactMatch(_) | Convention::Accuracy(_) => 100.0 * ratio(),
        Convention::Loss(..) | Convention::MelCepstral(_) | Convention::MelError { .. } => ratio(),
        Convention::Perplexity(_) => ratio().exp(),
    }
}

/// SHA-256 over reference streams: number of streams, then every line by its length and bytes.
pub(crate) fn fingerprint(references: &[Vec<String>]) -> String {
    let mut digest = Sha256::new();
    digest.update((references.len() as u64).to_le_bytes());
    for line in references.iter().flatten() {
        digest.update((line.len() as u64).to_le_bytes());
        digest.update(line.as_bytes());
    }
    digest.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
