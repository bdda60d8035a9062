//! Loops over many numbers, compiled for the widest vector instructions of the processor.
//!
//! Multiplications and additions are not fused, so a loop gives the same bits for every instruction
//! set.

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::OnceLock;

use pulp::Arch;

/// Runs a closure whose loops are to be vectorised. The closure and the functions that it calls
/// must be `#[inline(always)]`.
#[inline(always)]
pub(super) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    static ARCH: OnceLock<Arch> = OnceLock::new();
    ARCH.get_or_init(Arch::new).dispatch(work)
}

/// Sum of all values, in eight lanes.
#[inline(always)]
pub(super) fn sum(values: &[f64]) -> f64 {
    sum_of(values, |value| value)
}

/// Sum of the squares of all values, in eight lanes.
#[inline(always)]
pub(super) fn squares(values: &[f64]) -> f64 {
    sum_of(values, |value| value * value)
}

#[inline(always)]
fn sum_of(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let (eights, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for eight in eights {
        for (lane, value) in lanes.iter_mut().zip(eight) {
            *lane += term(*value);
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|value| term(*value)).sum::<f64>()
}

/// The largest value, but not less than `least`.
pub(super) fn largest(values: &[f64], least: f64) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let (eights, rest) = values.as_chunks::<8>();
            let mut lanes = [least; 8];
            for eight in eights {
                for (lane, value) in lanes.iter_mut().zip(eight) {
                    *lane = if *value > *lane { *value } else { *lane };
                }
            }
            lanes.iter().chain(rest).fold(least, |most, value| most.max(*value))
        },
    )
}

/// Computes natural logarithms in place, to within one unit in the last place. Zero, negative
/// numbers, infinity and NaN are handled as by [`f64::ln`].
pub(super) fn logarithms(values: &mut [f64]) {
    vectorised(
        #[inline(always)]
        || {
            let (sixteens, rest) = values.as_chunks_mut::<16>();
            for sixteen in sixteens {
                // Almost no block has unusual numbers; skipping their handling saves a third of the
                // work.
                let unusual = sixteen
                    .iter()
                    .fold(0, |any, x| any | u64::from(x.to_bits().wrapping_sub(NORMAL) >= NORMALS));
                match unusual {
                    0 => sixteen.iter_mut().for_each(|value| *value = usual_logarithm(*value, 0.0)),
                    _ => sixteen.iter_mut().for_each(|value| *value = logarithm(*value)),
                }
            }
            rest.iter_mut().for_each(|value| *value = logarithm(*value));
        },
    );
}

/// ln 2 in two parts. The product of the first part and an exponent is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
/// 2^52. Adding a whole number below it stores that number in the last bits.
const WHOLE: f64 = (1_u64 << MANTISSA) as f64;

/// Bits of the smallest normal number. The next constant counts the numbers from there to infinity.
const NORMAL: u64 = f64::MIN_POSITIVE.to_bits();
const NORMALS: u64 = f64::INFINITY.to_bits() - NORMAL;

/// Logarithm of any number, without a branch.
#[inline(always)]
fn logarithm(x: f64) -> f64 {
    let subnormal = x < f64::MIN_POSITIVE;
    let (scaled, less) = if subnormal { (x * WHOLE, 52.0) } else { (x, 0.0) };
    let value = usual_logarithm(scaled, less);
    let special = if x == 0.0 {
        f64::NEG_INFINITY
    } else if x > 0.0 {
        x
    } else {
        f64::NAN
    };
    if x > 0.0 && x < f64::INFINITY { value } else { special }
}

/// Logarithm of x / 2^less, for normal x above 0. x = 2^e (1 + f) with 1 + f in [sqrt(1/2),
/// sqrt(2)). With s = f / (2 + f), |s| < 0.172, ln(1 + f) = 2 atanh(s) = 2 s + s r, r = 2/3 s^2 +
/// 2/5 s^4 + ...; the form 2 s = f - f^2/2 + s f^2/2 keeps its precision where f is small.
#[inline(always)]
fn usual_logarithm(x: f64, less: f64) -> f64 {
    let moved = x.to_bits().wrapping_add(1.0_f64.to_bits() - FRAC_1_SQRT_2.to_bits());
    let exponent = f64::from_bits((moved >> MANTISSA) | WHOLE.to_bits()) - (WHOLE + 1023.0) - less;
    let mantissa = (moved & ((1 << MANTISSA) - 1)).wrapping_add(FRAC_1_SQRT_2.to_bits());
    let f = f64::from_bits(mantissa) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    // Terms up to 2/23 s^22, in two independent chains.
    let w = z * z;
    let odd = w * (2.0 / 5.0 + w * (2.0 / 9.0 + w * (2.0 / 13.0 + w * (2.0 / 17.0 + w * (2.0 / 21.0)))));
    let even = z
        * (2.0 / 3.0
            + w * (2.0 / 7.0 + w * (2.0 / 11.0 + w * (2.0 / 15.0 + w * (2.0 / 19.0 + w * (2.0 / 23.0))))));
    let half = 0.5 * f * f;
    exponent * LN_2_HIGH + (f - (half - (s * (half + (odd + even)) + exponent * LN_2_LOW)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_within_one_unit_in_the_last_place() {
        let mut values: Vec<f64> = (1..200_000).map(|at| f64::from(at) * 1e-5).collect();
        values.extend((-1022..1024).flat_map(|e| [1.0, 1.2, 1.5, 1.9].map(|m| m * 2_f64.powi(e))));
        values.extend((0..52).map(|bit| f64::from_bits(1 << bit)));
        values.extend([f64::MIN_POSITIVE / 3.0, f64::MAX, 1.0 - f64::EPSILON / 2.0, 1.0 + f64::EPSILON]);
        let mut made = values.clone();
        logarithms(&mut made);
        for (value, made) in values.iter().zip(&made) {
            let due = value.ln();
            assert!((made - due).abs() <= due.abs() * f64::EPSILON, "{value:e}: {made:e}, {due:e}");
        }
        let mut special = [0.0, -0.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, f64::NAN];
        logarithms(&mut special);
        assert_eq!(special[..3], [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY]);
        assert!(special[3..].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn sums_and_largest_values_leave_nothing_out() {
        for length in 0..20 {
            let values: Vec<f64> = (0..length).map(|at| f64::from(at * 7 % 11)).collect();
            assert_eq!(sum(&values), values.iter().sum::<f64>());
            assert_eq!(squares(&values), values.iter().map(|value| value * value).sum::<f64>());
            assert_eq!(largest(&values, -1.0), values.iter().fold(-1.0, |most: f64, value| most.max(*value)));
        }
    }
}
