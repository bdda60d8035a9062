//! Segments: which query rows attend to which key rows, for concatenated sequences without padding.

use std::sync::Arc;

/// A range of query rows that attends to a range of key rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First query row.
    pub query: usize,
    /// Number of query rows.
    pub queries: usize,
    /// First key row.
    pub key: usize,
    /// Number of key rows.
    pub keys: usize,
}

/// Segments of a batch. They cover the query rows once, in order.
#[derive(Debug, Clone)]
pub struct Segments {
    pub(crate) list: Arc<[Segment]>,
    pub(crate) causal: bool,
    pub(crate) longest_key: usize,
}

impl Segments {
    /// Self-attention: every sequence attends to itself. `causal` masks later rows.
    pub fn own(lengths: &[u32], causal: bool) -> Self {
        Self::between(lengths, lengths, causal)
    }

    /// Cross-attention: sequence i of the queries attends to sequence i of the keys.
    pub fn across(query_lengths: &[u32], key_lengths: &[u32]) -> Self {
        Self::between(query_lengths, key_lengths, false)
    }

    fn between(query_lengths: &[u32], key_lengths: &[u32], causal: bool) -> Self {
        assert_eq!(query_lengths.len(), key_lengths.len(), "a key sequence for every query sequence");
        let (mut query, mut key) = (0, 0);
        let list = query_lengths.iter().zip(key_lengths).map(|(&queries, &keys)| {
            let segment = Segment { query, queries: queries as usize, key, keys: keys as usize };
            query += segment.queries;
            key += segment.keys;
            segment
        });
        Self::new(list.collect(), causal)
    }

    /// Any segments.
    ///
    /// # Panics
    /// If the segments do not cover the query rows once and in order.
    pub fn new(list: Vec<Segment>, causal: bool) -> Self {
        let mut next = 0;
        for segment in &list {
            assert_eq!(segment.query, next, "query rows are covered once, in order");
            next += segment.queries;
        }
        let longest_key = list.iter().map(|segment| segment.keys).max().unwrap_or(0);
        Self { list: list.into(), causal, longest_key }
    }

    /// Number of keys that query row i of a segment may attend to.
    pub(super) fn visible(&self, segment: &Segment, i: usize) -> usize {
        if self.causal { segment.keys + 1 + i - segment.queries } else { segment.keys }
    }

    /// Whether the segments cover the key rows once and in order, as a gradient requires.
    pub(crate) fn keys_are_disjoint(&self) -> bool {
        self.list.iter().try_fold(0, |next, s| (s.key == next).then_some(next + s.keys)).is_some()
    }
}

/// Padded length for a longest sequence: 1, multiples of 8 up to 64, then four sizes an octave.
/// Beyond 64, less than a fifth of the keys is padding.
#[cfg(any(test, feature = "cubecl"))]
pub fn padded(longest: usize) -> usize {
    if longest <= 1 {
        return 1;
    }
    longest.next_multiple_of((longest.next_power_of_two() / 8).max(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_few_and_none_is_cut() {
        let sizes: std::collections::BTreeSet<usize> = (1..=512).map(padded).collect();
        assert_eq!(sizes.len(), 1 + 8 + 3 * 4);
        for longest in 1..=512 {
            assert!(padded(longest) >= longest && padded(longest) < longest + (longest / 4).max(8));
        }
    }
}
