//! Histograms of FP32 values by binary exponent.

use std::fmt;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of values of FP32's exponent field.
pub(super) const FIELDS: usize = 256;
/// Number of FP32's mantissa bits.
pub(super) const MANTISSA: u32 = 23;
/// Exponent field of 2^0.
pub(super) const BIAS: i32 = 127;
/// Exponent field of infinities and NaN.
pub(super) const NOT_FINITE: usize = FIELDS - 1;
/// Exponent under which the subnormal values of FP32 are counted.
pub const BELOW_NORMAL: i32 = -BIAS;

/// Numbers of FP32 values by exponent. The exponent of x is floor(log2 |x|), so the values with
/// exponent e lie in [2^e, 2^(e + 1)). Zeros, and values that are not finite, have no exponent.
#[derive(Clone, PartialEq, Eq)]
pub struct ExponentHistogram {
    /// Numbers by exponent field. Field 0 counts the subnormal values of FP32 without the zeros.
    pub(super) fields: Box<[u64; FIELDS]>,
    pub(super) zeros: u64,
}

impl Default for ExponentHistogram {
    fn default() -> Self {
        Self { fields: Box::new([0; FIELDS]), zeros: 0 }
    }
}

impl ExponentHistogram {
    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.fields.iter_mut().zip(other.fields.iter()).for_each(|(a, b)| *a += b);
        self.zeros += other.zeros;
    }

    /// The histogram with every number multiplied.
    #[must_use]
    pub fn times(mut self, factor: u64) -> Self {
        self.fields.iter_mut().for_each(|count| *count *= factor);
        self.zeros *= factor;
        self
    }

    /// Puts a value in the place of one of the most frequent, unless it is 0 or one with its exponent
    /// is counted.
    pub(super) fn include(&mut self, value: f32) {
        let field = (value.abs().to_bits() >> MANTISSA) as usize;
        if value == 0.0 || self.fields[field] > 0 {
            return;
        }
        let most = self.fields.iter_mut().max_by_key(|count| **count);
        match most.filter(|count| **count > self.zeros) {
            Some(most) => *most -= 1,
            None => self.zeros -= 1,
        }
        self.fields[field] += 1;
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

    #[test]
    fn a_merged_histogram_is_that_of_all_values() {
        let (a, b) = ([0.0, 1.0, f32::NAN], [8.0, 1.0, 0.0, 1e-3]);
        let mut merged = ExponentHistogram::of(&a);
        merged.merge(&ExponentHistogram::of(&b));
        assert_eq!(merged, ExponentHistogram::of(&[&a[..], &b].concat()));
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
