//! The weights before an update, kept to be compared with those after it.

use super::counting::of_update;
use super::histogram::ExponentHistogram;
use super::sample::Sample;

/// The weights of one parameter before an update. Of a parameter with 65,536 values or more, a sample
/// is kept: one block of each group of blocks, and the values behind the last group. A block stands
/// for its group, so that parameters have their weight in sums. The memory is used again for the next
/// parameter.
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
        if let Some(sample) = Sample::of(self.length) {
            sample.copy(weights, &mut self.kept);
        } else {
            self.kept.clear();
            self.kept.extend_from_slice(weights);
        }
    }

    /// Counts the kept weights, their differences from the new weights, and the ratios
    /// |weight| / |difference|. The ratio of an unchanged weight is not finite. The numbers add up to
    /// the number of values.
    ///
    /// # Panics
    /// If there are not as many new weights.
    #[must_use]
    pub fn compared_with(&self, weights: &[f32]) -> [ExponentHistogram; 3] {
        assert_eq!(self.length, weights.len(), "an update keeps the number of weights");
        let Some(sample) = Sample::of(self.length) else { return of_update(&self.kept, weights) };
        let mut new = Vec::with_capacity(self.kept.len());
        let taken = sample.copy(weights, &mut new);
        let ((before, before_behind), (after, after_behind)) =
            (self.kept.split_at(taken), new.split_at(taken));
        sample.scaled_up(of_update(before, after), of_update(before_behind, after_behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::counting::defined;
    use crate::profile::sample::{BLOCK, ENOUGH, LARGE};

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
        for length in [0, LARGE - 1] {
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
        let (length, blocks, groups) = (5 * ENOUGH + 3 * BLOCK, 5, ENOUGH / BLOCK);
        let sample = Sample::of(length).unwrap();
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

    #[test]
    fn a_sample_without_values_behind_its_groups_adds_up_to_all_values() {
        let before: Vec<f32> = (0..LARGE).map(|i| 1.0 + (i % 977) as f32).collect();
        let after: Vec<f32> = before.iter().map(|x| x + 0.5).collect();
        for (found, all) in compared(&before, &after).iter().zip(defined(&before, &after)) {
            assert_eq!(found.values(), LARGE as u64);
            assert_eq!(found.ends(), all.ends());
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
