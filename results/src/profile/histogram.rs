//! Histograms of FP32 values by binary exponent.

use std::fmt;

use rayon::prelude::*;
use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of values of FP32's exponent field.
const FIELDS: usize = 256;
/// Exponent field of 2^0.
const BIAS: i32 = 127;
/// Exponent field of infinities and NaN.
const NOT_FINITE: usize = FIELDS - 1;
/// Exponent under which the subnormal values of FP32 are counted.
pub const BELOW_NORMAL: i32 = -BIAS;
/// Bits of a value without its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Number of mantissa bits.
const MANTISSA: u32 = 23;
/// Number of values that are read at a time.
const PART: usize = 1 << 10;
/// Number of values that one thread counts at a time.
const BLOCK: usize = 1 << 15;
/// Number of zeros that are counted together.
const LANES: usize = 8;
/// Number of tables that take turns. Equal exponents often follow each other, and a counter cannot
/// be read before the last write to it is done.
const TABLES: usize = 4;

/// Numbers of FP32 values by exponent. The exponent of x is floor(log2 |x|), so the values with
/// exponent e lie in [2^e, 2^(e + 1)). Zeros, and values that are not finite, have no exponent.
#[derive(Clone, PartialEq, Eq)]
pub struct ExponentHistogram {
    /// Numbers by exponent field. Field 0 counts the subnormal values of FP32 without the zeros.
    fields: Box<[u64; FIELDS]>,
    zeros: u64,
}

impl Default for ExponentHistogram {
    fn default() -> Self {
        Self { fields: Box::new([0; FIELDS]), zeros: 0 }
    }
}

impl ExponentHistogram {
    /// Counts values.
    #[must_use]
    pub fn of(values: &[f32]) -> Self {
        Self::read(values.len(), |first, part| part.copy_from_slice(&values[first..][..part.len()]))
    }

    /// Counts values times a factor.
    #[must_use]
    pub fn of_scaled(values: &[f32], factor: f32) -> Self {
        if factor == 1.0 {
            return Self::of(values);
        }
        Self::read(values.len(), |first, part| {
            part.iter_mut().zip(&values[first..]).for_each(|(to, x)| *to = x * factor);
        })
    }

    /// Counts what one update did to an array, in one pass: the values before, the differences, and
    /// the ratios |before| / |difference|. The ratio of an unchanged value is not finite.
    ///
    /// # Panics
    /// If the arrays have different lengths.
    #[must_use]
    pub fn of_update(before: &[f32], after: &[f32]) -> [Self; 3] {
        assert_eq!(before.len(), after.len(), "an update keeps the number of weights");
        Self::read_all(before.len(), |first, [weights, changes, ratios]| {
            weights.copy_from_slice(&before[first..][..weights.len()]);
            let pairs = weights.iter().zip(&after[first..]);
            changes.iter_mut().zip(pairs).for_each(|(change, (before, after))| *change = after - before);
            let pairs = weights.iter().zip(changes.iter());
            ratios.iter_mut().zip(pairs).for_each(|(ratio, (before, change))| *ratio = before / change);
        })
    }

    /// Counts `length` values. `read` writes the values from an index on into a part.
    fn read(length: usize, read: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        let [found] = Self::read_all(length, |first, [part]: &mut [&mut [f32]; 1]| read(first, part));
        found
    }

    /// Counts `length` values of each of `N` quantities. `read` writes the values from an index on
    /// into a part of each.
    fn read_all<const N: usize>(
        length: usize,
        read: impl Fn(usize, &mut [&mut [f32]; N]) + Sync,
    ) -> [Self; N] {
        let count = |mut sums: [Self; N], block: usize| {
            let (mut parts, end) = ([[0f32; PART]; N], length.min((block + 1) * BLOCK));
            let mut tables = [[[0; FIELDS]; TABLES]; N];
            for first in (block * BLOCK..end).step_by(PART) {
                let mut parts = parts.each_mut().map(|part| &mut part[..PART.min(end - first)]);
                read(first, &mut parts);
                for ((part, tables), sum) in parts.iter().zip(&mut tables).zip(&mut sums) {
                    let of_zeros = field_zero(tables);
                    count_fields(tables, part);
                    // Most parts have no zero, and their values need not be read again.
                    if field_zero(tables) > of_zeros {
                        sum.zeros += u64::from(zeros(part));
                    }
                }
            }
            for (tables, sum) in tables.iter().zip(&mut sums) {
                for table in tables {
                    sum.fields.iter_mut().zip(table).for_each(|(sum, count)| *sum += u64::from(*count));
                }
            }
            sums
        };
        let nothing = || std::array::from_fn(|_| Self::default());
        // Other threads take longer to start than this one to count.
        let mut sums = match length <= BLOCK {
            true => count(nothing(), 0),
            false => (0..length.div_ceil(BLOCK)).into_par_iter().fold(nothing, count).reduce(
                nothing,
                |mut all, more| {
                    all.iter_mut().zip(&more).for_each(|(sum, more)| sum.merge(more));
                    all
                },
            ),
        };
        sums.iter_mut().for_each(|sum| sum.fields[0] -= sum.zeros);
        sums
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.fields.iter_mut().zip(other.fields.iter()).for_each(|(a, b)| *a += b);
        self.zeros += other.zeros;
    }

    /// Number of all values, including zeros and values that are not finite.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.zeros + self.fields.iter().sum::<u64>()
    }

    /// Number of values that are exactly 0.
    #[must_use]
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// Number of infinities and NaN.
    #[must_use]
    pub fn not_finite(&self) -> u64 {
        self.fields[NOT_FINITE]
    }

    /// Number of values that have an exponent.
    #[must_use]
    pub fn nonzero(&self) -> u64 {
        self.fields[..NOT_FINITE].iter().sum()
    }

    /// Number of values whose exponent is below this one.
    #[must_use]
    pub fn below(&self, exponent: i32) -> u64 {
        let end = (exponent + BIAS).clamp(0, NOT_FINITE as i32) as usize;
        self.fields[..end].iter().sum()
    }

    /// Number of finite values whose exponent is this one or larger.
    #[must_use]
    pub fn at_least(&self, exponent: i32) -> u64 {
        self.nonzero() - self.below(exponent)
    }

    /// The exponents that occur, in rising order, with their numbers of values. Subnormal values of
    /// FP32 have the exponent [`BELOW_NORMAL`].
    pub fn exponents(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        let all = (BELOW_NORMAL..).zip(&self.fields[..NOT_FINITE]);
        all.filter(|(_, count)| **count > 0).map(|(exponent, count)| (exponent, *count))
    }

    /// Lowest and highest exponent that occur; `None` if no value has an exponent.
    #[must_use]
    pub fn ends(&self) -> Option<(i32, i32)> {
        let first = self.exponents().next()?.0;
        Some((first, self.exponents().last()?.0))
    }
}

impl fmt::Debug for ExponentHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExponentHistogram")
            .field("zeros", &self.zeros)
            .field("not_finite", &self.not_finite())
            .field("exponents", &self.exponents().collect::<Vec<_>>())
            .finish()
    }
}

/// `{"values", "zeros", "not_finite", "exponents": [[exponent, number], …]}`.
impl Serialize for ExponentHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ExponentHistogram", 4)?;
        fields.serialize_field("values", &self.values())?;
        fields.serialize_field("zeros", &self.zeros)?;
        fields.serialize_field("not_finite", &self.not_finite())?;
        fields.serialize_field("exponents", &self.exponents().collect::<Vec<_>>())?;
        fields.end()
    }
}

/// As it was written. The number of all values must be that of the parts.
impl<'de> Deserialize<'de> for ExponentHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Counts {
            values: u64,
            zeros: u64,
            not_finite: u64,
            exponents: Vec<(i32, u64)>,
        }
        /// No update has more values, and sums of histograms stay in range.
        const MOST: u64 = 1 << 40;
        let Counts { values, zeros, not_finite, exponents } = Counts::deserialize(deserializer)?;
        if values > MOST {
            return Err(D::Error::custom(format!("{values} values are too many")));
        }
        let mut found = Self { zeros, ..Self::default() };
        found.fields[NOT_FINITE] = not_finite;
        let mut all = zeros.checked_add(not_finite);
        for (exponent, count) in exponents {
            let field = exponent.checked_add(BIAS).and_then(|field| usize::try_from(field).ok());
            let field = field.filter(|field| *field < NOT_FINITE && found.fields[*field] == 0);
            let field = field
                .ok_or_else(|| D::Error::custom(format!("exponent {exponent} twice, or not of FP32")))?;
            found.fields[field] = count;
            all = all.and_then(|all| all.checked_add(count));
        }
        match all == Some(values) {
            true => Ok(found),
            false => Err(D::Error::custom(format!("the parts of {values} values do not add up to them"))),
        }
    }
}

/// Adds the numbers of values by exponent field to the sum of the tables. A block has fewer values
/// than a counter can hold.
// Inlined, this loop and the next take twice as long.
#[inline(never)]
fn count_fields(tables: &mut [[u32; FIELDS]; TABLES], values: &[f32]) {
    let field = |x: &f32| ((x.to_bits() & MAGNITUDE) >> MANTISSA) as usize;
    let (groups, rest) = values.as_chunks::<TABLES>();
    for group in groups {
        tables.iter_mut().zip(group).for_each(|(table, x)| table[field(x)] += 1);
    }
    rest.iter().for_each(|x| tables[0][field(x)] += 1);
}

/// Number of values with the exponent field 0: the zeros and the subnormal values of FP32.
fn field_zero(tables: &[[u32; FIELDS]; TABLES]) -> u32 {
    tables.iter().map(|table| table[0]).sum()
}

/// Number of zeros.
#[inline(never)]
fn zeros(values: &[f32]) -> u32 {
    let mut lanes = [0; LANES];
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        lanes.iter_mut().zip(group).for_each(|(lane, x)| *lane += u32::from(*x == 0.0));
    }
    lanes.iter().sum::<u32>() + rest.iter().map(|x| u32::from(*x == 0.0)).sum::<u32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: f32 = 1e-45;

    #[test]
    fn a_value_is_counted_under_the_exponent_of_its_power_of_two() {
        let values = [1.0, -1.5, 1.999_999_9, 2.0, -0.5, 65504.0, 0.0, -0.0, TINY, f32::MIN_POSITIVE];
        let found = ExponentHistogram::of(&values);
        let due = [(BELOW_NORMAL, 1), (-126, 1), (-1, 1), (0, 3), (1, 1), (15, 1)];
        assert_eq!(found.exponents().collect::<Vec<_>>(), due);
        assert_eq!((found.values(), found.zeros(), found.nonzero(), found.not_finite()), (10, 2, 8, 0));
        assert_eq!(found.ends(), Some((BELOW_NORMAL, 15)));
        // [2^-1, 2^0) and lower; 2^0 and higher.
        assert_eq!((found.below(0), found.at_least(0)), (3, 5));
        assert_eq!((found.below(-1000), found.below(1000)), (0, 8));
    }

    #[test]
    fn infinities_and_nan_have_no_exponent() {
        let found = ExponentHistogram::of(&[f32::INFINITY, -f32::NAN, f32::NEG_INFINITY, 3.0]);
        assert_eq!((found.values(), found.not_finite(), found.nonzero()), (4, 3, 1));
        assert_eq!(found.ends(), Some((1, 1)));
        assert_eq!(ExponentHistogram::of(&[0.0, f32::NAN]).ends(), None);
    }

    /// More values than a thread counts at a time, and an odd rest.
    #[test]
    fn many_values_are_each_counted_once_by_every_number_of_threads() {
        let values: Vec<f32> = (0..3 * BLOCK + 7).map(|i| [0.0, 1.0, 4.0, -0.25, 1.5][i % 5]).collect();
        let of = |x: f32| values.iter().filter(|y| **y == x).count() as u64;
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| ExponentHistogram::of(&values));
            assert_eq!((found.values(), found.zeros()), (values.len() as u64, of(0.0)));
            let due = [(-2, of(-0.25)), (0, of(1.0) + of(1.5)), (2, of(4.0))];
            assert_eq!(found.exponents().collect::<Vec<_>>(), due);
        }
    }

    #[test]
    fn a_merged_histogram_is_that_of_all_values() {
        let (a, b) = ([0.0, 1.0, f32::NAN], [8.0, 1.0, 0.0, 1e-3]);
        let mut merged = ExponentHistogram::of(&a);
        merged.merge(&ExponentHistogram::of(&b));
        assert_eq!(merged, ExponentHistogram::of(&[&a[..], &b].concat()));
    }

    #[test]
    fn a_factor_moves_the_exponents() {
        let values = [1.0, 3.0, 0.0, -1e-3];
        let by = |factor: f32| ExponentHistogram::of_scaled(&values, factor);
        assert_eq!(by(1.0), ExponentHistogram::of(&values));
        assert_eq!(by(0.125), ExponentHistogram::of(&[0.125, 0.375, 0.0, -1.25e-4]));
    }

    #[test]
    fn an_update_has_the_histograms_of_weights_changes_and_ratios() {
        let (before, after) = ([1.0, 4096.0, 2.0, 0.0], [1.5, 4095.0, 2.0, 0.25]);
        let [weights, changes, ratios] = ExponentHistogram::of_update(&before, &after);
        assert_eq!(weights, ExponentHistogram::of(&before));
        assert_eq!(changes, ExponentHistogram::of(&[0.5, -1.0, 0.0, 0.25]));
        // 1 / 0.5, 4096 / 1, 2 / 0, 0 / 0.25.
        assert_eq!(ratios.exponents().collect::<Vec<_>>(), [(1, 1), (12, 1)]);
        assert_eq!((ratios.not_finite(), ratios.zeros(), ratios.at_least(11)), (1, 1, 1));
    }

    /// Zeros in some parts only, and subnormal values in a part without a zero.
    #[test]
    fn a_long_update_has_the_same_histograms_as_its_values() {
        let length = 2 * BLOCK + 2 * PART + 5;
        let before: Vec<f32> =
            (0..length).map(|i| if (i / PART).is_multiple_of(3) { TINY } else { (i % 7) as f32 }).collect();
        let after: Vec<f32> = before.iter().zip(0..).map(|(x, i)| x + [0.0, 0.5, -3.0][i % 3]).collect();
        let changes: Vec<f32> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
        let ratios: Vec<f32> = before.iter().zip(&changes).map(|(weight, change)| weight / change).collect();
        let due = [&before, &changes, &ratios].map(|values| ExponentHistogram::of(values));
        assert_eq!(ExponentHistogram::of_update(&before, &after), due);
        let zeros = |values: &[f32]| values.iter().filter(|x| **x == 0.0).count() as u64;
        assert_eq!(due.map(|found| found.zeros()), [&before, &changes, &ratios].map(|values| zeros(values)));
    }

    #[test]
    fn json_has_the_exponents_that_occur() {
        let json = serde_json::to_value(ExponentHistogram::of(&[0.0, 0.5, -3.0, 2.0])).unwrap();
        let due = serde_json::json!({
            "values": 4, "zeros": 1, "not_finite": 0, "exponents": [[-1, 1], [1, 2]]
        });
        assert_eq!(json, due);
    }

    #[test]
    fn a_histogram_is_read_as_it_was_written() {
        let written = ExponentHistogram::of(&[0.0, 0.5, -3.0, f32::NAN, TINY, f32::MAX]);
        let json = serde_json::to_value(&written).unwrap();
        assert_eq!(serde_json::from_value::<ExponentHistogram>(json.clone()).unwrap(), written);
        let error = |key: &str, value: serde_json::Value| {
            let mut json = json.clone();
            json[key] = value;
            serde_json::from_value::<ExponentHistogram>(json).unwrap_err().to_string()
        };
        assert!(error("values", 7.into()).contains("do not add up"));
        assert!(error("zeros", u64::MAX.into()).contains("do not add up"));
        for exponents in [
            serde_json::json!([[128, 1]]),
            serde_json::json!([[-128, 1]]),
            serde_json::json!([[i32::MAX, 1]]),
        ] {
            assert!(error("exponents", exponents).contains("not of FP32"));
        }
        assert!(error("exponents", serde_json::json!([[0, 1], [0, 1]])).contains("twice"));
    }
}
