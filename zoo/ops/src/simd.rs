//! Vector code selected at run time, and elementary loops that the kernels share.
//!
//! A function inside [`vectorized!`] is compiled three times (AVX-512, AVX2 + FMA, and the target's
//! default). The best version that the CPU supports is called, so a binary built on one machine
//! runs on an older one. Loops are plain Rust that LLVM vectorizes. A machine type always takes the
//! same path, so results depend on nothing but the machine type.

use burn::tensor::bf16;

/// Compiles each function for several instruction sets. Inside, `FMA` is true if a fused
/// multiply-add is one instruction.
macro_rules! vectorized {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<const FMA: bool>($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn v4($($arg: $ty),*) $(-> $ret)? {
                    body::<true>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn v3($($arg: $ty),*) $(-> $ret)? {
                    body::<true>($($arg),*)
                }
                match $crate::simd::level() {
                    // SAFETY: `level` has checked the CPU.
                    $crate::simd::Level::V4 => return unsafe { v4($($arg),*) },
                    // SAFETY: as above.
                    $crate::simd::Level::V3 => return unsafe { v3($($arg),*) },
                    $crate::simd::Level::Base => {}
                }
            }
            body::<false>($($arg),*)
        }
    )*};
}
pub(crate) use vectorized;

/// Instruction sets with separate code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// AVX-512 F/BW/DQ/VL.
    V4,
    /// AVX2 and FMA.
    V3,
    /// The target's default.
    Base,
}

/// The best level of this CPU.
#[cfg(target_arch = "x86_64")]
pub fn level() -> Level {
    use std::sync::OnceLock;
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let v3 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let v4 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (v3, v4) {
            (true, true) => Level::V4,
            (true, false) => Level::V3,
            _ => Level::Base,
        }
    })
}

/// Transposes 16 x 16 values of 32 bits: by pairs, by fours within 128 bits, then the 128-bit
/// quarters.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
pub fn transpose_16x16(rows: [std::arch::x86_64::__m512i; 16]) -> [std::arch::x86_64::__m512i; 16] {
    use std::arch::x86_64::*;
    let mut a = rows;
    for i in (0..16).step_by(2) {
        a[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    let mut b = a;
    for i in (0..16).step_by(4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    // b[4 g + j], quarter q: column 4 q + j of rows 4 g to 4 g + 3.
    let mut out = a;
    for j in 0..4 {
        let even = _mm512_shuffle_i32x4::<0x88>(b[j], b[4 + j]);
        let odd = _mm512_shuffle_i32x4::<0xdd>(b[j], b[4 + j]);
        let even_high = _mm512_shuffle_i32x4::<0x88>(b[8 + j], b[12 + j]);
        let odd_high = _mm512_shuffle_i32x4::<0xdd>(b[8 + j], b[12 + j]);
        out[j] = _mm512_shuffle_i32x4::<0x88>(even, even_high);
        out[4 + j] = _mm512_shuffle_i32x4::<0x88>(odd, odd_high);
        out[8 + j] = _mm512_shuffle_i32x4::<0xdd>(even, even_high);
        out[12 + j] = _mm512_shuffle_i32x4::<0xdd>(odd, odd_high);
    }
    out
}

/// a * b + c, fused where that is one instruction.
#[inline(always)]
pub fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// e^x for x <= 88, within 2 units in the last place; 0 below -87.3. Cody-Waite reduction, degree-6
/// polynomial.
#[inline(always)]
pub fn exp<const FMA: bool>(x: f32) -> f32 {
    // Rounds to the nearest integer with the rounding of an addition. A conversion to an integer
    // would keep loops scalar.
    const INTEGERS: f32 = 12_582_912.0;
    let clamped = x.max(-87.3);
    let shifted = clamped * std::f32::consts::LOG2_E + INTEGERS;
    let n = shifted - INTEGERS;
    let r = fma::<FMA>(n, -0.693_359_4, clamped);
    let r = fma::<FMA>(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4f32;
    p = fma::<FMA>(p, r, 1.398_199_9e-3);
    p = fma::<FMA>(p, r, 8.333_452e-3);
    p = fma::<FMA>(p, r, 4.166_579_6e-2);
    p = fma::<FMA>(p, r, 1.666_666_5e-1);
    p = fma::<FMA>(p, r, 0.5);
    let y = fma::<FMA>(p * r, r, r) + 1.0;
    // The low bits of `shifted` are n; they move into the exponent.
    let scale = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    let value = if x < -87.3 { 0.0 } else { y * scale };
    // NaN must be kept: overflow detection relies on it.
    if x.is_nan() { x } else { value }
}

/// 1 / (1 + e^-x), within 3 units in the last place down to x = -87; at most 1e-38 below.
#[inline(always)]
pub fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let negative = if x < -88.0 { 88.0 } else { -x };
    1.0 / (1.0 + exp::<FMA>(negative))
}

/// 0.2 x + 0.5, within 0 and 1 (Keras 2's `hard_sigmoid`). Keeps NaN, which overflow detection
/// relies on.
#[inline(always)]
pub fn hard_sigmoid<const FMA: bool>(x: f32) -> f32 {
    let y = fma::<FMA>(0.2, x, 0.5);
    let y = if y < 0.0 { 0.0 } else { y };
    if y > 1.0 { 1.0 } else { y }
}

/// Hyperbolic tangent, within 3 units in the last place: a polynomial near 0 (Cephes' `tanhf`),
/// exponentials elsewhere.
#[inline(always)]
pub fn tanh<const FMA: bool>(x: f32) -> f32 {
    let square = x * x;
    let mut p = -5.704_988_7e-3f32;
    p = fma::<FMA>(p, square, 2.063_909e-2);
    p = fma::<FMA>(p, square, -5.373_971_6e-2);
    p = fma::<FMA>(p, square, 1.333_144_2e-1);
    p = fma::<FMA>(p, square, -3.333_328e-1);
    let near = fma::<FMA>(p * square, x, x);
    let size = x.abs();
    // The result is 1 in FP32 from 9.01 on.
    let size = if size > 10.0 { 10.0 } else { size };
    let far = (1.0 - 2.0 / (exp::<FMA>(2.0 * size) + 1.0)).copysign(x);
    if size < 0.625 { near } else { far }
}

vectorized! {
    /// Converts to bf16, to nearest, ties to even; NaN is kept.
    pub fn round_bf16(to: &mut [bf16], from: &[f32]) {
        let _ = FMA;
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bf16::from_bits(nearest_bf16(from));
        }
    }

    /// Converts to bf16 and back.
    pub fn through_bf16(to: &mut [f32], from: &[f32]) {
        let _ = FMA;
        for (to, &from) in to.iter_mut().zip(from) {
            *to = f32::from_bits(u32::from(nearest_bf16(from)) << 16);
        }
    }

    /// Converts to bf16 and back, in place.
    pub fn round_in_place(values: &mut [f32]) {
        let _ = FMA;
        for x in values.iter_mut() {
            *x = f32::from_bits(u32::from(nearest_bf16(*x)) << 16);
        }
    }

    /// sums += values.
    pub fn add(sums: &mut [f32], values: &[f32]) {
        let _ = FMA;
        for (sum, x) in sums.iter_mut().zip(values) {
            *sum += x;
        }
    }

    /// Converts from bf16, exactly.
    pub fn widen_bf16(to: &mut [f32], from: &[bf16]) {
        let _ = FMA;
        for (to, from) in to.iter_mut().zip(from) {
            *to = f32::from_bits(u32::from(from.to_bits()) << 16);
        }
    }
}

/// Bits of the nearest bf16. It has no branch, so that loops of it become vector code.
#[inline(always)]
pub fn nearest_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    (if x.is_nan() { quiet } else { rounded }) as u16
}

/// Number of lanes of partial sums: fixed, so that a sum does not depend on the width of the
/// instruction set.
pub const LANES: usize = 16;

/// Sum of f(x) in sixteen interleaved partial sums, added in order.
#[inline(always)]
pub fn sum_by(values: &[f32], mut f: impl FnMut(f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f(x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane += f(x);
    }
    lanes.iter().sum()
}

/// Largest value; negative infinity for an empty slice.
#[inline(always)]
pub fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = if x > *lane { x } else { *lane };
    }
    lanes.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        for i in -8700..8800 {
            let x = i as f32 * 0.01;
            let exact = f64::from(x).exp();
            let got = f64::from(exp::<false>(x));
            assert!(((got - exact) / exact).abs() < 2.4e-7, "exp({x}) = {got}, not {exact}");
            let fused = f64::from(exp::<true>(x));
            assert!(((fused - exact) / exact).abs() < 2.4e-7);
        }
        assert_eq!(exp::<true>(-200.0), 0.0);
        assert_eq!(exp::<true>(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp::<true>(0.0), 1.0);
        assert!(exp::<true>(f32::NAN).is_nan());
    }

    #[test]
    fn sigmoid_and_tanh_are_within_three_units_in_the_last_place() {
        let unit = |exact: f64| f64::from(exact.abs() as f32) * f64::from(f32::EPSILON) / 2.0;
        let near = |got: f32, exact: f64, x: f32| {
            // A unit in the last place is between half of epsilon and epsilon, relative to the
            // value.
            let wrong = (f64::from(got) - exact).abs() / unit(exact);
            assert!(exact == 0.0 && got == 0.0 || wrong <= 6.0, "at {x}: {got}, not {exact}: {wrong}");
        };
        let small = (0..200).map(|i| 1.3f32.powi(i - 180));
        for x in small.flat_map(|x| [x, -x]).chain((-8700..8700).map(|i| i as f32 * 0.01)) {
            if x.abs() < 87.0 {
                let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
                near(sigmoid::<false>(x), exact, x);
                near(sigmoid::<true>(x), exact, x);
            }
            near(tanh::<false>(x), f64::from(x).tanh(), x);
            near(tanh::<true>(x), f64::from(x).tanh(), x);
        }
        for x in [f32::INFINITY, 1e30, 100.0] {
            assert_eq!((sigmoid::<true>(x), tanh::<true>(x), tanh::<true>(-x)), (1.0, 1.0, -1.0));
            assert!(sigmoid::<true>(-x) <= 1e-38);
        }
        assert!(sigmoid::<true>(f32::NAN).is_nan() && tanh::<true>(f32::NAN).is_nan());
    }

    #[test]
    fn rounding_to_bf16_is_that_of_the_half_crate() {
        let mut bits = 0x1234_5678u32;
        let mut values = vec![
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            1e-40,
            1.0 + 1.0 / 256.0,
            1.0 + 3.0 / 256.0,
        ];
        values.extend((0..10_000).map(|_| {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(bits)
        }));
        let mut rounded = vec![bf16::ZERO; values.len()];
        round_bf16(&mut rounded, &values);
        let mut through = vec![0.0; values.len()];
        through_bf16(&mut through, &values);
        let mut wide = vec![0.0; values.len()];
        widen_bf16(&mut wide, &rounded);
        for (((x, r), t), w) in values.iter().zip(&rounded).zip(&through).zip(&wide) {
            assert_eq!(r.to_bits(), bf16::from_f32(*x).to_bits(), "{x}");
            assert!(t.to_bits() == w.to_bits() && (w.is_nan() || *w == r.to_f32()));
        }
    }

    #[test]
    fn sums_and_maxima_of_any_length() {
        for n in 0..70usize {
            let values: Vec<f32> = (0..n).map(|i| ((i * 37) % 11) as f32 - 3.0).collect();
            assert_eq!(sum_by(&values, |x| x), values.iter().sum::<f32>());
            assert_eq!(max(&values), values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}
