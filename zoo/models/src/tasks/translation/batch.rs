//! Batches of sentence pairs.

use crate::Packed;

/// Source and target sequences. Both end with the end token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PairBatch {
    pub source: Packed,
    pub target: Packed,
    /// Index of the target language, which selects the decoder.
    pub language: usize,
    /// Number of target positions of the batch when it is padded as published. This is the
    /// denominator of losses that count padding.
    pub target_positions: u64,
}
