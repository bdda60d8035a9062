//! The weights before an update, kept to be compared with those after it.

use std::ops::Range;

use super::counting::{self, of_update};
use super::histogram::ExponentHistogram;

/// Largest number of values of a parameter all of which are kept and counted. With two parameters of
/// twice the number, that took a twentieth of an update of an LSTM. The share that a quarter of so many
/// values gives has a standard error of at most 0.1 points, if they are independent.
const LARGE: usize = 1 << 20;
/// Number of values of a block.
const BLOCK: usize = 1 << 12;
/// Number of blocks that one counted block stands for.
const BLOCKS: usize = 4;
/// Number of values of these blocks.
const GROUP: usize = BLOCKS * BLOCK;

/// The weights of one parameter before an update. Of a large parameter, one block of 4,096 values in
/// four is kept, each time another one of the four. It stands for all of them, so that parameters
/// have their weight in sums. The memory is used again for the next parameter.
#[derive(Debug, Default)]
pub struct WeightsBefore {
    kept: Vec<f32>,
    /// Number of all values.
    length: usize,
}

impl WeightsBefore {
    /// Keeps weights in place of those that were kept.
    pub fn keep(&mut self, weights: &[f32]) {
        self.length = weights.len();
        self.kept.clear();
        // On this thread: others take longer to start than it takes to copy.
        sampled(self.length).for_each(|block| self.kept.extend_from_slice(&weights[block]));
        self.kept.extend_from_slice(&weights[rest(self.length)]);
    }

    /// Counts the kept weights, their differences from the new weights, and the ratios
    /// |weight| / |difference|. The ratio of an unchanged weight is not finite. The numbers add up to
    /// the number of values.
    ///
    /// # Panics
    /// If there are not as many new weights.
    #[must_use]
    pub fn compared_with(&self, after: &[f32]) -> [ExponentHistogram; 3] {
        assert_eq!(self.length, after.len(), "an update keeps the number of weights");
        let rest = rest(self.length);
        let (of_groups, of_rest) = self.kept.split_at(self.kept.len() - rest.len());
        let blocks = of_groups.chunks(BLOCK).zip(sampled(self.length).map(|block| &after[block]));
        let mut sums = of_update(blocks).map(|found| found.times(BLOCKS as u64));
        let blocks = of_rest.chunks(counting::BLOCK).zip(after[rest].chunks(counting::BLOCK));
        sums.iter_mut().zip(of_update(blocks)).for_each(|(sum, more)| sum.merge(&more));
        sums
    }
}

/// Number of groups of blocks of an array of this length.
fn groups(length: usize) -> usize {
    if length > LARGE { length / GROUP } else { 0 }
}

/// The blocks that are kept of the groups. The place within a group changes from one to the next, so
/// that rows of every length are kept in all columns.
fn sampled(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..groups(length)).map(|group| {
        let first = group * GROUP + group % BLOCKS * BLOCK;
        first..first + BLOCK
    })
}

/// The values behind the groups, all of which are kept.
fn rest(length: usize) -> Range<usize> {
    groups(length) * GROUP..length
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
        let before: Vec<f32> = (0..LARGE).map(|i| 1.0 + (i % 977) as f32).collect();
        let after: Vec<f32> = before.iter().zip(0..).map(|(x, i)| x + [0.0, 0.5, -3.0][i % 3]).collect();
        assert_eq!(compared(&before, &after), defined(&before, &after));
    }

    /// Each group has values with an exponent of its own in the block that is kept. The rest has one
    /// unchanged value.
    #[test]
    fn of_a_large_array_one_block_in_four_stands_for_the_others() {
        let groups = LARGE / GROUP + 3;
        let mut before = vec![f32::MAX; groups * GROUP + 1];
        for group in 0..groups {
            let value = 2f32.powi(group as i32 - 100);
            before[group * GROUP + group % BLOCKS * BLOCK..][..BLOCK].fill(value);
        }
        let mut after: Vec<f32> = before.iter().map(|x| x * 1.5).collect();
        *after.last_mut().unwrap() = f32::MAX;
        let [weights, changes, ratios] = compared(&before, &after);
        let each = (0..groups as i32).map(|group| (group - 100, GROUP as u64));
        assert_eq!(weights.exponents().collect::<Vec<_>>(), each.chain([(127, 1)]).collect::<Vec<_>>());
        assert_eq!((changes.zeros(), ratios.not_finite()), (1, 1));
        assert_eq!(ratios.exponents().collect::<Vec<_>>(), [(1, (groups * GROUP) as u64)]);
        for found in [weights, changes, ratios] {
            assert_eq!(found.values(), before.len() as u64);
        }
    }

    #[test]
    fn the_shares_of_a_large_array_are_nearly_those_of_all_values() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let before: Vec<f32> = (0..LARGE + 12_345).map(|_| draw() - 0.5).collect();
        let after: Vec<f32> = before.iter().map(|x| x + 1e-3 * draw() * draw()).collect();
        for (found, all) in compared(&before, &after).iter().zip(defined(&before, &after)) {
            assert_eq!(found.values(), all.values());
            for exponent in -30..30 {
                let share = |of: &ExponentHistogram| of.below(exponent) as f64 / of.values() as f64;
                assert!((share(found) - share(&all)).abs() < 0.003, "{exponent}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "an update keeps the number of weights")]
    fn another_number_of_weights_is_a_fault() {
        let _ = compared(&[1.0], &[1.0, 2.0]);
    }
}
