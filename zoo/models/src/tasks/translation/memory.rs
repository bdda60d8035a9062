//! Encoder output, as the attention of a decoder reads it.

use burn::tensor::Tensor;

use crate::ops::{Segment, Segments};

/// Encoder output of packed sources.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Rows that are compared with queries: `[source rows, width]`, FP32.
    pub keys: Tensor<2>,
    /// Rows that are summed to contexts: `[source rows, width]`, FP32. For most encoders they equal
    /// `keys`.
    pub values: Tensor<2>,
    /// Number of rows of each source.
    pub lengths: Vec<u32>,
}

impl Memory {
    /// Uses the same rows as keys and values.
    pub fn new(rows: Tensor<2>, lengths: &[u32]) -> Self {
        Self { keys: rows.clone(), values: rows, lengths: lengths.to_vec() }
    }
}

/// For each hypothesis of a search, the first row of its source and the number of rows.
#[derive(Debug, Clone)]
pub struct Sources(Vec<(usize, usize)>);

impl Sources {
    /// One hypothesis for each source.
    pub fn new(lengths: &[u32]) -> Self {
        let mut first = 0;
        let rows = lengths.iter().map(|&length| {
            first += length as usize;
            (first - length as usize, length as usize)
        });
        Self(rows.collect())
    }

    /// Number of hypotheses.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Rows of the source of a hypothesis.
    pub fn rows(&self, hypothesis: usize) -> std::ops::Range<usize> {
        let (first, rows) = self.0[hypothesis];
        first..first + rows
    }

    /// Attention segments: one query row for each hypothesis, over the rows of its source.
    pub fn segments(&self) -> Segments {
        let each = self.0.iter().enumerate();
        Segments::new(
            each.map(|(i, &(key, keys))| Segment { query: i, queries: 1, key, keys }).collect(),
            false,
        )
    }

    /// Keeps the given hypotheses, in the given order.
    pub fn select(&mut self, rows: &[usize]) {
        self.0 = rows.iter().map(|&row| self.0[row]).collect();
    }
}
