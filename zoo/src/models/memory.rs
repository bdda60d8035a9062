//! What a decoder looks back at.

use burn::tensor::Tensor;

use crate::ops::{Segment, Segments};

/// What an encoder wrote of packed sources.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What is compared with queries: [source rows, width], FP32.
    pub keys: Tensor<2>,
    /// What contexts are made of: [source rows, width], FP32. Mostly the same.
    pub values: Tensor<2>,
    /// Rows of each source.
    pub lengths: Vec<u32>,
}

impl Memory {
    /// Whose keys and values are one.
    pub fn new(rows: Tensor<2>, lengths: &[u32]) -> Self {
        Self { keys: rows.clone(), values: rows, lengths: lengths.to_vec() }
    }
}

/// The source of each hypothesis of a search: its first row and its rows.
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

    /// Hypotheses.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Rows of one's source.
    pub fn rows(&self, hypothesis: usize) -> std::ops::Range<usize> {
        let (first, rows) = self.0[hypothesis];
        first..first + rows
    }

    /// One row for each hypothesis looks at its source.
    pub fn segments(&self) -> Segments {
        let each = self.0.iter().enumerate();
        Segments::new(
            each.map(|(i, &(key, keys))| Segment { query: i, queries: 1, key, keys }).collect(),
            false,
        )
    }

    /// These hypotheses in this order.
    pub fn select(&mut self, rows: &[usize]) {
        self.0 = rows.iter().map(|&row| self.0[row]).collect();
    }
}
