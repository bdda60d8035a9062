//! Generic readers: where pairs of lines come from.

pub mod parallel_text;
pub mod reversal;
mod splits;
mod stream;

pub use splits::{PairSplit, TRAIN, open_split, pair_splits, read_splits, split_names};
pub use stream::PairReader;

/// The pairs of one split, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplitText {
    /// Source lines, without line feeds.
    pub source: Vec<String>,
    /// Target lines, as many.
    pub target: Vec<String>,
    /// Pairs left out because one side was empty.
    pub skipped_empty: u64,
}

impl SplitText {
    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }
}
