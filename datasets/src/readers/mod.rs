//! Generic readers of pairs of lines.

mod error;
pub mod parallel_text;
pub mod reversal;
mod splits;
mod stream;

pub use error::ReadError;
pub use splits::{PairSplit, TRAIN, open_split, pair_splits, read_splits, split_names};
pub use stream::{EmptyLines, PairReader};

/// The pairs of one split, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplitText {
    /// Source lines, without line feeds.
    pub source: Vec<String>,
    /// Target lines, as many as source lines.
    pub target: Vec<String>,
    /// Number of pairs skipped because one side was empty.
    pub skipped_empty: u64,
}

impl SplitText {
    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }
}
