//! Pads sequences to a matrix.

use super::PairSource;

/// Sequences of token ids as a matrix, row after row, padded on the right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaddedSequences {
    /// Number of sequences.
    pub rows: usize,
    /// Number of columns: the longest length, rounded up to the requested multiple.
    pub cols: usize,
    /// `rows * cols` ids.
    pub tokens: Vec<u32>,
    /// Length of each sequence, without padding.
    pub lengths: Vec<u32>,
}

impl PaddedSequences {
    /// Pads `sequences` with `pad` to a common length that is a multiple of `multiple` (0 counts as
    /// 1).
    pub fn new(sequences: &[&[u32]], pad: u32, multiple: u32) -> Self {
        let longest = sequences.iter().map(|s| s.len()).max().unwrap_or(0);
        let cols = longest.next_multiple_of(multiple.max(1) as usize);
        let mut tokens = Vec::with_capacity(sequences.len() * cols);
        for sequence in sequences {
            tokens.extend_from_slice(sequence);
            tokens.resize(tokens.len() + cols - sequence.len(), pad);
        }
        let lengths = sequences.iter().map(|s| s.len() as u32).collect();
        Self { rows: sequences.len(), cols, tokens, lengths }
    }

    /// Row `row` without its padding; `None` if `row` is beyond the last row.
    pub fn sequence(&self, row: usize) -> Option<&[u32]> {
        let length = *self.lengths.get(row)? as usize;
        self.tokens.get(row * self.cols..row * self.cols + length)
    }

    /// Number of tokens that are not padding.
    pub fn token_count(&self) -> u64 {
        self.lengths.iter().map(|&l| u64::from(l)).sum()
    }
}

/// Input of a model for one micro-step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Index of each example in its split.
    pub ids: Vec<u32>,
    /// Source sequences, end token included.
    pub source: PaddedSequences,
    /// Target sequences to predict, end token included. They include the begin token if targets
    /// have one.
    pub target: PaddedSequences,
}

/// How pairs are padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collator {
    /// Id of the source vocabulary's pad token.
    pub source_pad: u32,
    /// Id of the target vocabulary's pad token.
    pub target_pad: u32,
    /// Lengths are rounded up to a multiple of this.
    pub pad_length_to: u32,
}

impl Collator {
    /// Makes the batch of the pairs `ids`, in their order.
    pub fn batch(&self, pairs: &dyn PairSource, ids: &[u32]) -> Batch {
        let (sources, targets): (Vec<&[u32]>, Vec<&[u32]>) = ids.iter().map(|&id| pairs.pair(id)).unzip();
        Batch {
            ids: ids.to_vec(),
            source: PaddedSequences::new(&sources, self.source_pad, self.pad_length_to),
            target: PaddedSequences::new(&targets, self.target_pad, self.pad_length_to),
        }
    }
}

/// Counts how many of the computed positions are padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PaddingWaste {
    /// Number of tokens of both sides.
    pub tokens: u64,
    /// Number of positions of both sides, padding included.
    pub positions: u64,
}

impl PaddingWaste {
    /// Adds the counts of a batch.
    pub fn add(&mut self, batch: &Batch) {
        for side in [&batch.source, &batch.target] {
            self.tokens += side.token_count();
            self.positions += side.tokens.len() as u64;
        }
    }

    /// Padding as a share of all positions, 0 to 1; 0 if there are no positions.
    pub fn share(&self) -> f64 {
        if self.positions == 0 {
            return 0.0;
        }
        1.0 - self.tokens as f64 / self.positions as f64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Pairs in memory.
    pub struct Pairs(pub Vec<(Vec<u32>, Vec<u32>)>);

    impl PairSource for Pairs {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn pair(&self, index: u32) -> (&[u32], &[u32]) {
            let (source, target) = &self.0[index as usize];
            (source, target)
        }
    }

    #[test]
    fn rows_are_padded_on_the_right_to_the_multiple() {
        let padded = PaddedSequences::new(&[&[5, 2], &[6, 7, 2]], 1, 4);
        assert_eq!((padded.rows, padded.cols), (2, 4));
        assert_eq!(padded.tokens, [5, 2, 1, 1, 6, 7, 2, 1]);
        assert_eq!(padded.lengths, [2, 3]);
        assert_eq!(padded.sequence(1), Some(&[6, 7, 2][..]));
        assert_eq!(padded.sequence(2), None);
        let empty = PaddedSequences::new(&[], 1, 0);
        assert_eq!((empty.rows, empty.cols, empty.tokens.len()), (0, 0, 0));
    }

    #[test]
    fn a_batch_keeps_the_order_of_its_ids_and_each_side_its_pad() {
        let pairs = Pairs(vec![(vec![4, 2], vec![9, 9, 1]), (vec![5, 5, 2], vec![8, 1])]);
        let batch = Collator { source_pad: 1, target_pad: 0, pad_length_to: 1 }.batch(&pairs, &[1, 0]);
        assert_eq!(batch.ids, [1, 0]);
        assert_eq!(batch.source.tokens, [5, 5, 2, 4, 2, 1]);
        assert_eq!(batch.target.tokens, [8, 1, 0, 9, 9, 1]);
        let mut waste = PaddingWaste::default();
        assert_eq!(waste.share(), 0.0);
        waste.add(&batch);
        assert_eq!((waste.tokens, waste.positions), (10, 12));
        assert!((waste.share() - 1.0 / 6.0).abs() < 1e-12);
    }
}
