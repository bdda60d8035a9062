//! What FP16 makes of values, and the static loss scale that suits gradients.
//!
//! The limits are those of the paper, by exponent: FP16's normal values have the exponents -14 to
//! 15, and its smallest subnormal is 2^-24. A conversion that rounds to nearest keeps the upper half
//! of the exponent -25 as 2^-24; these values count as lost here, too.

use std::fmt;

use serde::Serialize;

use super::histogram::ExponentHistogram;

/// Exponent of FP16's smallest subnormal value.
pub(crate) const SMALLEST_SUBNORMAL: i32 = -24;
/// Exponent of FP16's smallest normal value.
pub(crate) const SMALLEST_NORMAL: i32 = -14;
/// Exponent of the first power of two above FP16.
pub(crate) const ABOVE: i32 = 16;
/// Powers of two between the largest gradient times the suggested scale and the end of FP16's range.
/// Later updates may have larger gradients than the profiled ones.
pub const HEADROOM: i32 = 3;
/// Share of the nonzero gradients that may be lost with the suggested scale. NVIDIA's guide to mixed
/// precision says of the paper's SSD network that the scale 32,768 keeps all but 0.1 % of the values.
pub const LOST_LIMIT: f64 = 1e-3;

/// Numbers of values outside of FP16's normal range, after multiplication by a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fp16Shares {
    /// Number of all values, including zeros.
    pub values: u64,
    /// Nonzero values below 2^-24, which FP16 does not have.
    pub lost: u64,
    /// Values from 2^-24 to 2^-14, which have less than 11 significant bits.
    pub subnormal: u64,
    /// Finite values of 2^16 and more, which become infinite.
    pub above: u64,
}

impl Fp16Shares {
    /// Numbers of the values times 2^`log2_scale`.
    #[must_use]
    pub fn of(histogram: &ExponentHistogram, log2_scale: i32) -> Self {
        let lost = histogram.below(SMALLEST_SUBNORMAL - log2_scale);
        Self {
            values: histogram.values(),
            lost,
            subnormal: histogram.below(SMALLEST_NORMAL - log2_scale) - lost,
            above: histogram.at_least(ABOVE - log2_scale),
        }
    }
}

/// A static loss scale, and the reason for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuggestedScale {
    /// The scale, a power of two from 1 up.
    pub scale: f64,
    /// Its exponent.
    pub log2: i32,
    /// The reason.
    pub reason: Reason,
    /// Share of the nonzero activation gradients that FP16 loses without a scale.
    pub lost_before: f64,
    /// Share of the nonzero activation gradients that FP16 loses with this scale.
    pub lost_after: f64,
    /// Exponent of the largest gradient; `None` without a nonzero gradient.
    pub highest: Option<i32>,
}

/// Reason for a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No gradient has a nonzero, finite value.
    NoGradients,
    /// FP16 keeps enough gradients without a scale.
    NothingLost,
    /// The smallest scale with which FP16 keeps enough gradients.
    KeepsEnough,
    /// The largest scale that the largest gradient allows. FP16 loses more than the limit.
    LargestThatFits,
}

/// The smallest power of two with which FP16 loses at most [`LOST_LIMIT`] of the nonzero activation
/// gradients, but no larger than the largest gradient of all allows, whose exponent is `highest`.
#[must_use]
pub fn suggest(activation_gradients: &ExponentHistogram, highest: Option<i32>) -> SuggestedScale {
    let nonzero = activation_gradients.nonzero();
    let lost = |log2: i32| match nonzero {
        0 => 0.0,
        _ => Fp16Shares::of(activation_gradients, log2).lost as f64 / nonzero as f64,
    };
    // A value with exponent e is below 2^(e + 1).
    let most = highest.map_or(0, |highest| (ABOVE - HEADROOM - (highest + 1)).max(0));
    let needed = (0..=149).find(|log2| lost(*log2) <= LOST_LIMIT).unwrap_or(149);
    let (log2, reason) = match needed {
        _ if nonzero == 0 => (0, Reason::NoGradients),
        0 => (0, Reason::NothingLost),
        needed if needed <= most => (needed, Reason::KeepsEnough),
        _ => (most, Reason::LargestThatFits),
    };
    SuggestedScale {
        scale: f64::from(log2).exp2(),
        log2,
        reason,
        lost_before: lost(0),
        lost_after: lost(log2),
        highest,
    }
}

/// A sentence with the scale and its reason.
impl fmt::Display for SuggestedScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scale, reason, lost_before, lost_after, highest, .. } = self;
        let percent = |share: &f64| format!("{:.3} %", 100.0 * share);
        let (before, after, limit) = (percent(lost_before), percent(lost_after), percent(&LOST_LIMIT));
        write!(f, "suggested static loss scale: {scale}, because ")?;
        match reason {
            Reason::NoGradients => f.write_str("no gradient has a nonzero value"),
            Reason::NothingLost => write!(
                f,
                "without a scale FP16 loses {before} of the nonzero activation gradients (limit {limit})"
            ),
            Reason::KeepsEnough => write!(
                f,
                "it is the smallest with which FP16 loses at most {limit} of the nonzero activation gradients: \
                 {before} without it, {after} with it"
            ),
            Reason::LargestThatFits => write!(
                f,
                "a larger one could bring the largest gradient, of exponent {}, above 2^{}, and gradients may \
                 grow; FP16 loses {before} of the nonzero activation gradients without it, {after} with it",
                highest.unwrap_or_default(),
                ABOVE - HEADROOM
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(exponent: i32) -> f32 {
        2f32.powi(exponent)
    }

    /// `count` values of each power of two.
    fn powers(counts: &[(i32, usize)]) -> ExponentHistogram {
        let values: Vec<f32> =
            counts.iter().flat_map(|(exponent, count)| vec![power(*exponent); *count]).collect();
        ExponentHistogram::of(&values)
    }

    #[test]
    fn the_limits_are_those_of_fp16() {
        let below = |x: f32| x * (1.0 - f32::EPSILON);
        let values = [
            below(power(-24)),
            power(-24),
            below(power(-14)),
            power(-14),
            1.0,
            65504.0,
            65536.0,
            0.0,
            f32::INFINITY,
        ];
        let found = Fp16Shares::of(&ExponentHistogram::of(&values), 0);
        assert_eq!(found, Fp16Shares { values: 9, lost: 1, subnormal: 2, above: 1 });
        // Times 4: one more power fits at the lower end, one value more overflows.
        let found = Fp16Shares::of(&ExponentHistogram::of(&values), 2);
        assert_eq!(found, Fp16Shares { values: 9, lost: 0, subnormal: 2, above: 2 });
    }

    /// With a scale of 8, values below 2^-27 stay lost, as in the paper.
    #[test]
    fn a_scale_of_eight_keeps_three_more_exponents() {
        let found = powers(&[(-28, 1), (-27, 2), (-26, 4), (-25, 8), (-24, 16)]);
        assert_eq!(Fp16Shares::of(&found, 0).lost, 15);
        assert_eq!(Fp16Shares::of(&found, 3).lost, 1);
    }

    #[test]
    fn the_suggested_scale_is_the_smallest_that_loses_at_most_a_thousandth() {
        // 1 of 1,000 lies at 2^-40 and may be lost; 9 at 2^-30 may not: 2^6 brings them to 2^-24.
        let found = suggest(&powers(&[(-40, 1), (-30, 9), (-10, 990)]), Some(-10));
        assert_eq!((found.scale, found.log2, found.reason), (64.0, 6, Reason::KeepsEnough));
        assert_eq!((found.lost_before, found.lost_after), (0.01, 0.001));
        // With 2 of 1,000 at 2^-40 the scale is 2^16.
        let found = suggest(&powers(&[(-40, 2), (-10, 998)]), Some(-10));
        assert_eq!((found.scale, found.lost_after), (65536.0, 0.0));
    }

    #[test]
    fn the_largest_gradient_limits_the_scale() {
        // A gradient in [2, 4) allows 2^11: times 2^12 it could be above 2^13.
        let found = suggest(&powers(&[(-40, 500), (-10, 500)]), Some(1));
        assert_eq!((found.scale, found.reason), (2048.0, Reason::LargestThatFits));
        assert_eq!((found.lost_before, found.lost_after), (0.5, 0.5));
        // One that leaves no room at all allows no scale.
        assert_eq!(suggest(&powers(&[(-40, 1)]), Some(15)).scale, 1.0);
    }

    #[test]
    fn without_loss_there_is_no_scale() {
        let found = suggest(&powers(&[(-24, 5), (-3, 5)]), Some(-3));
        assert_eq!((found.scale, found.reason), (1.0, Reason::NothingLost));
        let zeros = suggest(&ExponentHistogram::of(&[0.0, 0.0]), None);
        assert_eq!((zeros.scale, zeros.reason), (1.0, Reason::NoGradients));
        assert_eq!(zeros.lost_before, 0.0);
    }

    #[test]
    fn the_sentence_has_the_scale_and_the_shares() {
        let text = suggest(&powers(&[(-40, 1), (-30, 9), (-10, 990)]), Some(-10)).to_string();
        assert!(text.starts_with("suggested static loss scale: 64, because it is the smallest"), "{text}");
        assert!(text.ends_with("1.000 % without it, 0.100 % with it"), "{text}");
        let text = suggest(&powers(&[(-40, 1), (-10, 1)]), Some(1)).to_string();
        assert!(text.contains("the largest gradient, of exponent 1, above 2^13"), "{text}");
    }
}
