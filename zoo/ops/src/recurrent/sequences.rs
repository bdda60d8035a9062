//! The rows of packed sequences that each step processes.

/// Sequences of different lengths, concatenated in the rows of a matrix and processed step by step.
///
/// Internally, sequences are numbered by falling length: the sequences that have a step are the
/// first ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequences {
    /// Original index of each sequence.
    order: Vec<usize>,
    lengths: Vec<usize>,
    /// First row of each sequence.
    starts: Vec<usize>,
    backwards: bool,
}

impl Sequences {
    /// Sequences of these lengths, read from the first row of each to the last.
    pub fn new(lengths: &[u32]) -> Self {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
        let starts: Vec<usize> = lengths
            .iter()
            .scan(0, |row, &length| {
                let start = *row;
                *row += length as usize;
                Some(start)
            })
            .collect();
        Self {
            lengths: order.iter().map(|&i| lengths[i] as usize).collect(),
            starts: order.iter().map(|&i| starts[i]).collect(),
            order,
            backwards: false,
        }
    }

    /// The same sequences in the other direction: from the last row of each to the first.
    pub fn reversed(&self) -> Self {
        Self { backwards: !self.backwards, ..self.clone() }
    }

    /// Number of sequences.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Number of rows of all sequences.
    pub fn rows(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Number of steps of the longest sequence.
    pub fn steps(&self) -> usize {
        self.lengths.first().copied().unwrap_or(0)
    }

    /// Number of sequences that have this step; they are the first ones.
    pub fn active(&self, step: usize) -> usize {
        self.lengths.partition_point(|&length| length > step)
    }

    /// The last step of a sequence; `None` for an empty one.
    pub fn last_step(&self, sequence: usize) -> Option<usize> {
        self.lengths[sequence].checked_sub(1)
    }

    /// The row that a sequence reads at a step.
    pub fn row(&self, sequence: usize, step: usize) -> usize {
        let start = self.starts[sequence];
        if self.backwards { start + self.lengths[sequence] - 1 - step } else { start + step }
    }

    /// For every row in order, the row read one step before, or the sequence that begins there.
    pub fn previous(&self) -> Vec<Result<usize, usize>> {
        let mut previous = vec![Ok(0); self.rows()];
        for (sequence, &length) in self.lengths.iter().enumerate() {
            for step in 0..length {
                previous[self.row(sequence, step)] =
                    if step == 0 { Err(sequence) } else { Ok(self.row(sequence, step - 1)) };
            }
        }
        previous
    }

    /// Original index of each sequence, in the order of lengths.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Sorts the rows of a matrix `[count, width]` by falling length.
    pub fn sorted(&self, rows: &[f32], width: usize) -> Vec<f32> {
        self.order.iter().flat_map(|&i| &rows[i * width..][..width]).copied().collect()
    }

    /// Appends the rows of a sorted matrix `[count, width]` to `to`, in the original order.
    pub fn restore(&self, rows: &[f32], width: usize, to: &mut Vec<f32>) {
        let first = to.len();
        to.resize(first + rows.len(), 0.0);
        for (&i, row) in self.order.iter().zip(rows.chunks_exact(width.max(1))) {
            to[first + i * width..][..width].copy_from_slice(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_directions() {
        let sequences = Sequences::new(&[2, 0, 3, 1]);
        assert_eq!((sequences.rows(), sequences.count(), sequences.steps()), (6, 4, 3));
        assert_eq!([0, 1, 2, 3].map(|step| sequences.active(step)), [3, 2, 1, 0]);
        assert_eq!(sequences.order(), [2, 0, 3, 1]);
        assert_eq!([0, 1, 2].map(|step| sequences.row(0, step)), [2, 3, 4]);
        assert_eq!([0, 1, 2].map(|step| sequences.reversed().row(0, step)), [4, 3, 2]);
        assert_eq!(sequences.previous(), [Err(1), Ok(0), Err(0), Ok(2), Ok(3), Err(2)]);
        let sorted = sequences.sorted(&[0.0, 1.0, 2.0, 3.0], 1);
        assert_eq!(sorted, [2.0, 0.0, 3.0, 1.0]);
        let mut restored = Vec::new();
        sequences.restore(&sorted, 1, &mut restored);
        assert_eq!(restored, [0.0, 1.0, 2.0, 3.0]);
    }
}
