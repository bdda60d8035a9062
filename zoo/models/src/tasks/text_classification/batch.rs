//! Batches of texts.

/// Numbers of words and labels of a batch of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextBatch {
    /// Numbers `[texts, positions]`; padding is 0, or `NO_WORD` if 0 is the number of a word.
    pub ids: Vec<u32>,
    /// Class of each text.
    pub labels: Vec<u32>,
    /// Part of a cross-validation that the texts belong to; 0 without one.
    pub fold: u32,
}

impl TextBatch {
    /// Number of texts.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}
