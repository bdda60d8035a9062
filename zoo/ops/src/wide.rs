//! Loops of other crates over many numbers, compiled for AVX2 where the processor has it.
//!
//! Multiplications and additions are not fused, and divisions and roots are exact at every width,
//! so a loop gives the same bits for every instruction set.
//!
//! AVX-512 is not used. An update by Adam on a million weights took 0.37 to 0.53 ms on one core of
//! an AMD EPYC with AVX2 and 0.42 to 0.91 ms with AVX-512 (1.7 ms with SSE2). The loop waits for
//! memory, and at most addresses a load of 64 bytes touches two cache lines.

#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// Runs a closure whose loops are to be vectorized. The closure and the functions that it calls
/// must be `#[inline(always)]`: a function that is called keeps the instructions of the target.
#[inline(always)]
pub fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: `level` has checked the CPU; both levels have AVX2.
        Level::V4 | Level::V3 => return unsafe { with_avx2(work) },
        Level::Base => {}
    }
    work()
}

/// Without `fma`: no compiler can fuse what the source does not.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation of an update rule: products, sums, a root and two divisions.
    #[inline(always)]
    fn update(w: &mut [f32], g: &[f32], add_product: impl Fn(f32, f32, f32) -> f32) {
        for (w, g) in w.iter_mut().zip(g) {
            let square = add_product(*g, *g, *w * 0.3);
            *w = add_product(square.abs().sqrt() / (g + 0.7), -0.01, *w) / 1.3;
        }
    }

    fn values(n: usize, stream: usize) -> Vec<f32> {
        let draw = |i: usize| ((i * 7919 + stream * 104_729) % 10_007) as f32 / 10_007.0 - 0.5;
        // Also numbers whose squares are subnormal or 0, and both zeros.
        (0..n).map(|i| draw(i) * [1.0, 1e-20, 1e-30, 0.0, 1e10][i % 5]).collect()
    }

    fn bits(n: usize, run: impl Fn(&mut [f32], &[f32])) -> Vec<u32> {
        let mut w = values(n, 1);
        run(&mut w, &values(n, 2));
        w.into_iter().map(f32::to_bits).collect()
    }

    #[inline(always)]
    fn unfused(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[test]
    fn vectors_give_the_bits_of_the_plain_loop() {
        for n in [0, 1, 15, 16, 17, 1000] {
            let plain = bits(n, |w, g| update(w, g, unfused));
            let best = bits(n, |w, g| {
                wide(
                    #[inline(always)]
                    || update(w, g, unfused),
                );
            });
            assert_eq!(best, plain, "{n} values");
        }
    }

    #[test]
    fn a_fused_product_would_be_seen() {
        let fused = bits(1000, |w, g| update(w, g, f32::mul_add));
        assert_ne!(fused, bits(1000, |w, g| update(w, g, unfused)));
    }
}
