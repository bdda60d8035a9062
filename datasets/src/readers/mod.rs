//! Generic readers of pairs of lines.

mod error;
pub mod parallel_text;
mod split_names;
mod stream;

pub use error::ReadError;
pub use split_names::split_names;
pub(crate) use stream::LineSource;
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
