//! Which rows of packed sequences are worked on at which step.

/// Sequences of unlike length, one behind the other in the rows of a matrix, walked through step by step.
///
/// Inside, sequences are numbered by falling length: those that still run at a step are the first ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequences {
    /// As they were given.
    order: Vec<usize>,
    lengths: Vec<usize>,
    /// First row of each.
    starts: Vec<usize>,
    backwards: bool,
}

impl Sequences {
    /// Of these lengths, read from the first row of each to the last.
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

    /// Read the other way: from the last row of each to the first.
    pub fn reversed(&self) -> Self {
        Self { backwards: !self.backwards, ..self.clone() }
    }

    /// Number of sequences.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Rows of all sequences.
    pub fn rows(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Steps of the longest.
    pub fn steps(&self) -> usize {
        self.lengths.first().copied().unwrap_or(0)
    }

    /// Sequences that have such a step: the first so many.
    pub fn active(&self, step: usize) -> usize {
        self.lengths.partition_point(|&length| length > step)
    }

    /// The last step of a sequence, if it has any.
    pub fn last_step(&self, sequence: usize) -> Option<usize> {
        self.lengths[sequence].checked_sub(1)
    }

    /// The row that a sequence reads at a step.
    pub fn row(&self, sequence: usize, step: usize) -> usize {
        let start = self.starts[sequence];
        if self.backwards { start + self.lengths[sequence] - 1 - step } else { start + step }
    }

    /// The row read one step before this row, or which sequence begins here: for every row in order.
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

    /// Where each sequence stood before they were numbered by length.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The rows of a matrix [count, width] in the order of lengths.
    pub fn sorted(&self, rows: &[f32], width: usize) -> Vec<f32> {
        self.order.iter().flat_map(|&i| &rows[i * width..][..width]).copied().collect()
    }

    /// The rows of a sorted matrix [count, width] as they were given, behind what stands in `to`.
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
