//! A sample of the values of a large array, which stands for all of them.

use super::counting::largest;
use super::histogram::ExponentHistogram;

/// An array with fewer values is counted as a whole.
pub const LARGE: usize = 1 << 16;
/// The least number of values of a sample's blocks. A share of independent values has a standard error
/// of at most 0.39 points. If the values of a block behave alike, it is at most 2.2 points: a sample
/// has at least 512 blocks.
pub const ENOUGH: usize = 1 << 14;
/// Number of values of a block: few, so that many rows are counted.
pub const BLOCK: usize = 1 << 5;
/// The fraction of the square root of 2, as a fraction of 2^32.
const ROOT: u32 = 0x6a09_e667;

/// Groups of blocks, of each of which one block is taken, and the values behind the last group, all
/// of which are taken.
pub struct Sample {
    /// Number of blocks of a group.
    pub blocks: usize,
    /// Number of groups.
    pub groups: usize,
}

impl Sample {
    /// The sample of an array of this length; `None` if all values are counted.
    pub fn of(length: usize) -> Option<Self> {
        let blocks = length / ENOUGH;
        (length >= LARGE).then(|| Self { blocks, groups: length / (blocks * BLOCK) })
    }

    /// Places of the first values of the taken blocks. The place within a group follows multiples of
    /// the square root of 2, which no fraction is close to, so that no length of a row leaves out
    /// columns.
    pub fn starts(&self) -> impl Iterator<Item = usize> {
        (0..self.groups).map(|group| {
            let fraction = u64::from((group as u32).wrapping_mul(ROOT));
            let block = (fraction * self.blocks as u64) >> 32;
            (group * self.blocks + block as usize) * BLOCK
        })
    }

    /// Copies the blocks of the groups, and then the values behind the last group, in place of the
    /// values of `to`. Returns the number of values of the blocks.
    pub fn copy(&self, values: &[f32], to: &mut Vec<f32>) -> usize {
        to.clear();
        self.starts().for_each(|start| to.extend_from_slice(&values[start..start + BLOCK]));
        let taken = to.len();
        to.extend_from_slice(&values[taken * self.blocks..]);
        taken
    }

    /// The counts of all values: those of the taken blocks, multiplied by the number of blocks of a
    /// group, and those of the values behind the last group.
    pub fn scaled_up<const N: usize>(
        &self,
        blocks: [ExponentHistogram; N],
        behind: [ExponentHistogram; N],
    ) -> [ExponentHistogram; N] {
        let mut all = blocks.map(|found| found.times(self.blocks as u64));
        all.iter_mut().zip(&behind).for_each(|(all, behind)| all.merge(behind));
        all
    }
}

impl ExponentHistogram {
    /// Counts a sample of the values, and the largest of all, which is searched for if it is not
    /// given. The numbers add up to that of all.
    #[must_use]
    pub fn of_sample(values: &[f32], known: Option<f32>) -> Self {
        let Some(sample) = Sample::of(values.len()) else { return Self::of(values) };
        let mut copy = Vec::with_capacity(2 * ENOUGH);
        let taken = sample.copy(values, &mut copy);
        let (blocks, behind) = copy.split_at(taken);
        let [mut found] = sample.scaled_up([Self::of(blocks)], [Self::of(behind)]);
        found.include(known.unwrap_or_else(|| largest(values)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_taken_of_large_arrays() {
        assert!(Sample::of(LARGE - 1).is_none());
        let sample = Sample::of(LARGE).unwrap();
        assert_eq!((sample.blocks, sample.groups), (4, 512));
    }

    /// Rows of powers of two, and others. A column is a sixteenth of a row.
    #[test]
    fn all_columns_of_a_row_are_counted() {
        const COLUMNS: usize = 16;
        for row in [512, 3 * 1024, 1 << 13, 1 << 15, 1 << 16, 100_003] {
            let length = 64 * row.max(1 << 14);
            let values: Vec<f32> = (0..length).map(|i| 2f32.powi((i % row * COLUMNS / row) as i32)).collect();
            let found = ExponentHistogram::of_sample(&values, None);
            let due = length as f64 / COLUMNS as f64;
            for (exponent, count) in found.exponents() {
                assert!((count as f64 / due - 1.0).abs() < 0.15, "row {row}: {exponent} {count} {due}");
            }
            assert_eq!(found.exponents().count(), COLUMNS, "{row}");
        }
    }

    /// One value among zeros that are all that is taken.
    #[test]
    fn the_largest_value_is_counted_wherever_it_is() {
        let length = 5 * ENOUGH + 3;
        let sample = Sample::of(length).unwrap();
        let is_taken = |place: &usize| sample.starts().any(|start| (start..start + BLOCK).contains(place));
        let left = (0..length).filter(|place| !is_taken(place)).nth(1000).unwrap();
        for (value, exponent) in [(3.0, Some(1)), (-1e-40, Some(-127)), (f32::NAN, None)] {
            let mut values = vec![0.0; length];
            values[left] = value;
            let found = ExponentHistogram::of_sample(&values, None);
            assert_eq!(ExponentHistogram::of_sample(&values, Some(value)), found, "{value}");
            assert_eq!((found.values(), found.zeros()), (length as u64, length as u64 - 1), "{value}");
            assert_eq!(found.ends().map(|(_, highest)| highest), exponent, "{value}");
            assert_eq!(found.not_finite(), u64::from(exponent.is_none()), "{value}");
        }
        let ones = vec![1.0; length];
        assert_eq!(ExponentHistogram::of_sample(&ones, None), ExponentHistogram::of(&ones));
        assert_eq!(ExponentHistogram::of_sample(&[], None), ExponentHistogram::default());
    }
}
