//! The weights before an update, kept to be compared with those after it.

use std::ops::Range;

use super::counting::{self, of_update};
use super::histogram::ExponentHistogram;

/// Number of values of a parameter that are kept and counted. A share of so many independent values
/// has a standard error of at most 0.2 points. If the values of a row behave alike, the rows count.
const ENOUGH: usize = 1 << 16;
/// Number of values of a block, one or a few rows of most tables of embeddings.
const BLOCK: usize = 1 << 8;
/// The fraction of the golden ratio, as a fraction of 2^32.
const GOLDEN: u32 = 0x9e37_79b9;

/// The weights of one parameter before an update. Of a parameter with more than 65,536 values, about
/// so many are kept: one block of each group of blocks. It stands for the group, so that parameters
/// have their weight in sums. The memory is used again for the next parameter.
#[derive(Debug, Default)]
pub struct WeightsBefore {
    before: Vec<f32>,
    after: Vec<f32>,
    /// Number of all values.
    length: usize,
}

impl WeightsBefore {
    /// Keeps weights in place of those that were kept.
    pub fn keep(&mut self, weights: &[f32]) {
        self.length = weights.len();
        take(weights, &mut self.before);
    }

    /// Counts the kept weights, their differences from the new weights, and the ratios
    /// |weight| / |difference|. The ratio of an unchanged weight is not finite. The numbers add up to
    /// the number of values.
    ///
    /// # Panics
    /// If there are not as many new weights.
    #[must_use]
    pub fn compared_with(&mut self, weights: &[f32]) -> [ExponentHistogram; 3] {
        assert_eq!(self.length, weights.len(), "an update keeps the number of weights");
        take(weights, &mut self.after);
        let Sample { blocks, groups } = Sample::of(self.length);
        let count = |range: Range<usize>| {
            let before = self.before[range.clone()].chunks(counting::BLOCK);
            of_update(before.zip(self.after[range].chunks(counting::BLOCK)))
        };
        let mut sums = count(0..groups * BLOCK).map(|found| found.times(blocks as u64));
        let rest = count(groups * BLOCK..self.before.len());
        sums.iter_mut().zip(rest).for_each(|(sum, more)| sum.merge(&more));
        sums
    }
}

/// Copies a sample of the values, and the rest behind the last group.
// On this thread: others take longer to start than it takes to copy.
fn take(values: &[f32], into: &mut Vec<f32>) {
    let sample = Sample::of(values.len());
    into.clear();
    sample.starts().for_each(|start| into.extend_from_slice(&values[start..start + BLOCK]));
    into.extend_from_slice(&values[sample.groups * sample.blocks * BLOCK..]);
}

/// Groups of blocks, of each of which one block is taken.
struct Sample {
    /// Number of blocks of a group.
    blocks: usize,
    /// Number of groups.
    groups: usize,
}

impl Sample {
    fn of(length: usize) -> Self {
        let blocks = length.div_ceil(ENOUGH).max(1);
        Self { blocks, groups: length / (blocks * BLOCK) }
    }

    /// Places of the first values of the taken blocks. The place within a group follows multiples of
    /// the golden ratio, so that no length of a row leaves out columns.
    fn starts(&self) -> impl Iterator<Item = usize> {
        (0..self.groups).map(|group| {
            let fraction = u64::from((group as u32).wrapping_mul(GOLDEN));
            let block = (fraction * self.blocks as u64) >> 32;
            (group * self.blocks + block as usize) * BLOCK
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::counting::defined;

    fn compared(before: &[f32], after: &[f32]) -> [ExponentHistogram; 3] {
        let mut kept = WeightsBefore::default();
        // What was kept before is gone.
        kept.keep(&[3.0; 5]);
        kept.keep(before);
        kept.compared_with(after)
    }

    #[test]
    fn an_update_has_the_histograms_of_weights_changes_and_ratios() {
        let (before, after) = ([1.0, 4096.0, 2.0, 0.0], [1.5, 4095.0, 2.0, 0.25]);
        let [weights, changes, ratios] = compared(&before, &after);
        assert_eq!(weights, ExponentHistogram::of(&before));
        assert_eq!(changes, ExponentHistogram::of(&[0.5, -1.0, 0.0, 0.25]));
        // 1 / 0.5, 4096 / 1, 2 / 0, 0 / 0.25.
        assert_eq!(ratios.exponents().collect::<Vec<_>>(), [(1, 1), (12, 1)]);
        assert_eq!((ratios.not_finite(), ratios.zeros(), ratios.at_least(11)), (1, 1, 1));
    }

    #[test]
    fn all_values_are_counted_up_to_the_limit() {
        for length in [ENOUGH - 1, ENOUGH] {
            let before: Vec<f32> = (0..length).map(|i| 1.0 + (i % 977) as f32).collect();
            let after: Vec<f32> = before.iter().zip(0..).map(|(x, i)| x + [0.0, 0.5, -3.0][i % 3]).collect();
            assert_eq!(compared(&before, &after), defined(&before, &after));
        }
    }

    /// Only the block that is taken of a group has the exponent of the group. The rest has unchanged
    /// values.
    #[test]
    fn of_a_large_array_one_block_of_each_group_stands_for_the_others() {
        const EXPONENTS: usize = 100;
        let (length, blocks, groups) = (5 * ENOUGH - 2 * BLOCK, 5, ENOUGH / BLOCK - 1);
        let sample = Sample::of(length);
        assert_eq!((sample.blocks, sample.groups), (blocks, groups));
        let mut before = vec![f32::MAX; length];
        let mut due = [0; EXPONENTS];
        for (group, start) in sample.starts().enumerate() {
            assert_eq!(start / BLOCK / blocks, group);
            before[start..start + BLOCK].fill(2f32.powi((group % EXPONENTS) as i32));
            due[group % EXPONENTS] += (blocks * BLOCK) as u64;
        }
        let behind = groups * blocks * BLOCK;
        let rest = (length - behind) as u64;
        let mut after: Vec<f32> = before.iter().map(|x| x * 1.5).collect();
        after[behind..].fill(f32::MAX);
        let [weights, changes, ratios] = compared(&before, &after);
        let due: Vec<(i32, u64)> = (0..).zip(due).chain([(127, rest)]).collect();
        assert_eq!(weights.exponents().collect::<Vec<_>>(), due);
        assert_eq!((changes.zeros(), ratios.not_finite()), (rest, rest));
        assert_eq!(ratios.exponents().collect::<Vec<_>>(), [(1, behind as u64)]);
        for found in [weights, changes, ratios] {
            assert_eq!(found.values(), length as u64);
        }
    }

    /// Rows of powers of two, and others. A column is a sixteenth of a row.
    #[test]
    fn all_columns_of_a_row_are_counted() {
        const COLUMNS: usize = 16;
        for row in [512, 3 * 1024, 1 << 13, 1 << 15, 1 << 16, 100_003] {
            let length = 64 * row.max(1 << 14);
            let before: Vec<f32> = (0..length).map(|i| 2f32.powi((i % row * COLUMNS / row) as i32)).collect();
            let [weights, ..] = compared(&before, &before);
            let due = length as f64 / COLUMNS as f64;
            for (exponent, count) in weights.exponents() {
                assert!((count as f64 / due - 1.0).abs() < 0.15, "row {row}: {exponent} {count} {due}");
            }
            assert_eq!(weights.exponents().count(), COLUMNS, "{row}");
        }
    }

    #[test]
    fn the_shares_of_a_large_array_are_nearly_those_of_all_values() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let before: Vec<f32> = (0..7 * ENOUGH + 12_345).map(|_| draw() - 0.5).collect();
        let after: Vec<f32> = before.iter().map(|x| x + 1e-3 * draw() * draw()).collect();
        for (found, all) in compared(&before, &after).iter().zip(defined(&before, &after)) {
            assert_eq!(found.values(), all.values());
            for exponent in -30..30 {
                let share = |of: &ExponentHistogram| of.below(exponent) as f64 / of.values() as f64;
                assert!((share(found) - share(&all)).abs() < 0.008, "{exponent}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "an update keeps the number of weights")]
    fn another_number_of_weights_is_a_fault() {
        let _ = compared(&[1.0], &[1.0, 2.0]);
    }
}
