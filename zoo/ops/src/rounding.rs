//! Conversion between FP32 and the two half types on a CPU.
//!
//! Rounding is to nearest, ties to even. fp16 keeps subnormals, and too large values become
//! infinity (IEEE 754 binary16, as a tensor core reads and writes it). F16C or AVX-512 converts
//! where the CPU supports them.

use burn::tensor::{DType, Element, bf16, f16};

use super::simd;

/// A half type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// 8 bits of exponent, 7 of fraction.
    Bf16,
    /// 5 bits of exponent, 10 of fraction.
    Fp16,
}

impl Half {
    /// The half type of a tensor's storage; `None` for other types.
    pub fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::BF16 => Some(Self::Bf16),
            DType::F16 => Some(Self::Fp16),
            _ => None,
        }
    }

    /// Rounds values in place.
    pub fn round(self, values: &mut [f32]) {
        match self {
            Self::Bf16 => bf16::round(values),
            Self::Fp16 => f16::round(values),
        }
    }
}

/// A half type as stored in memory.
pub trait HalfType: Element + bytemuck::Pod {
    /// The half type.
    const HALF: Half;

    /// Converts from FP32.
    fn narrow(to: &mut [Self], from: &[f32]);

    /// Converts to FP32, exactly.
    fn widen(to: &mut [f32], from: &[Self]);

    /// Converts from FP32 and back.
    fn through(to: &mut [f32], from: &[f32]);

    /// Converts from FP32 and back, in place.
    fn round(values: &mut [f32]);
}

impl HalfType for bf16 {
    const HALF: Half = Half::Bf16;

    fn narrow(to: &mut [Self], from: &[f32]) {
        simd::round_bf16(to, from);
    }

    fn widen(to: &mut [f32], from: &[Self]) {
        simd::widen_bf16(to, from);
    }

    fn through(to: &mut [f32], from: &[f32]) {
        simd::through_bf16(to, from);
    }

    fn round(values: &mut [f32]) {
        simd::round_in_place(values);
    }
}

impl HalfType for f16 {
    const HALF: Half = Half::Fp16;

    fn narrow(to: &mut [Self], from: &[f32]) {
        let done = vectors::narrow(to, from);
        to.iter_mut().zip(from).skip(done).for_each(|(to, from)| *to = Self::from_f32(*from));
    }

    fn widen(to: &mut [f32], from: &[Self]) {
        let done = vectors::widen(to, from);
        to.iter_mut().zip(from).skip(done).for_each(|(to, from)| *to = from.to_f32());
    }

    fn through(to: &mut [f32], from: &[f32]) {
        let n = to.len().min(from.len());
        to[..n].copy_from_slice(&from[..n]);
        Self::round(&mut to[..n]);
    }

    fn round(values: &mut [f32]) {
        let done = vectors::round(values);
        values[done..].iter_mut().for_each(|x| *x = Self::from_f32(*x).to_f32());
    }
}

/// Conversions with the CPU's instructions. Each returns the number of values that it converted,
/// from the first on: whole vectors, or 0 if the CPU lacks the instruction.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    use burn::tensor::f16;

    use crate::simd::{Level, level};

    /// To nearest, ties to even.
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;

    /// `$wide` loads and stores `$lanes` FP32 values, `$half` loads and stores fp16 values.
    macro_rules! conversions {
        ($module:ident, $features:literal, $lanes:literal, $load:ident, $store:ident, $load_half:ident,
         $store_half:ident, $half:ty, $to_half:ident, $to_wide:ident) => {
            mod $module {
                use super::*;

                #[target_feature(enable = $features)]
                pub fn narrow(to: &mut [f16], from: &[f32]) -> usize {
                    let whole = to.len().min(from.len()) / $lanes * $lanes;
                    for i in (0..whole).step_by($lanes) {
                        // SAFETY: both slices have the lanes from i on.
                        unsafe {
                            let half = $to_half::<NEAREST>($load(from.as_ptr().add(i)));
                            $store_half(to.as_mut_ptr().add(i).cast::<$half>(), half);
                        }
                    }
                    whole
                }

                #[target_feature(enable = $features)]
                pub fn widen(to: &mut [f32], from: &[f16]) -> usize {
                    let whole = to.len().min(from.len()) / $lanes * $lanes;
                    for i in (0..whole).step_by($lanes) {
                        // SAFETY: both slices have the lanes from i on.
                        unsafe {
                            let half = $load_half(from.as_ptr().add(i).cast::<$half>());
                            $store(to.as_mut_ptr().add(i), $to_wide(half));
                        }
                    }
                    whole
                }

                #[target_feature(enable = $features)]
                pub fn round(values: &mut [f32]) -> usize {
                    let whole = values.len() / $lanes * $lanes;
                    for i in (0..whole).step_by($lanes) {
                        let at = values.as_mut_ptr().wrapping_add(i);
                        // SAFETY: the slice has the lanes from i on.
                        unsafe { $store(at, $to_wide($to_half::<NEAREST>($load(at)))) };
                    }
                    whole
                }
            }
        };
    }
    conversions!(
        avx512,
        "avx512f",
        16,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        __m256i,
        _mm512_cvtps_ph,
        _mm512_cvtph_ps
    );
    conversions!(
        f16c,
        "avx,f16c",
        8,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm_loadu_si128,
        _mm_storeu_si128,
        __m128i,
        _mm256_cvtps_ph,
        _mm256_cvtph_ps
    );

    macro_rules! chosen {
        ($name:ident($($arg:ident: $ty:ty),*)) => {
            pub fn $name($($arg: $ty),*) -> usize {
                if level() == Level::V4 {
                    // SAFETY: the CPU supports AVX-512 F, as checked above.
                    return unsafe { avx512::$name($($arg),*) };
                }
                if is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c") {
                    // SAFETY: the CPU supports F16C, as checked above.
                    return unsafe { f16c::$name($($arg),*) };
                }
                0
            }
        };
    }
    chosen!(narrow(to: &mut [f16], from: &[f32]));
    chosen!(widen(to: &mut [f32], from: &[f16]));
    chosen!(round(values: &mut [f32]));
}

/// Other targets have no conversion instructions.
#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    use burn::tensor::f16;

    pub fn narrow(_: &mut [f16], _: &[f32]) -> usize {
        0
    }

    pub fn widen(_: &mut [f32], _: &[f16]) -> usize {
        0
    }

    pub fn round(_: &mut [f32]) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fp16 value, its neighbours, and NaN; in slices of different lengths, so that vectors
    /// and the remainder are used.
    #[test]
    fn fp16_is_that_of_ieee_754() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut values = Vec::new();
        for half in &halves {
            let x = half.to_f32();
            let bits = x.to_bits();
            // The half-way point to the next value, and its neighbours.
            let half_way = bits.wrapping_add(1 << 12);
            values.extend([
                x,
                f32::from_bits(half_way),
                f32::from_bits(half_way + 1),
                f32::from_bits(half_way - 1),
            ]);
        }
        values.extend([
            f32::MAX,
            -f32::MAX,
            65_519.996,
            65_520.0,
            2f32.powi(-25),
            2f32.powi(-25) * 1.001,
            1e-40,
        ]);
        for n in [values.len(), 37, 8, 3] {
            let values = &values[values.len() - n..];
            let (mut narrow, mut through) = (vec![f16::ZERO; n], vec![0f32; n]);
            f16::narrow(&mut narrow, values);
            f16::through(&mut through, values);
            let mut wide = vec![0f32; n];
            f16::widen(&mut wide, &narrow);
            for (((x, half), through), wide) in values.iter().zip(&narrow).zip(&through).zip(&wide) {
                let due = f16::from_f32_const(*x);
                assert!(
                    half.to_bits() == due.to_bits() || x.is_nan() && half.is_nan(),
                    "{x}: {half}, not {due}"
                );
                assert!(
                    through.to_bits() == wide.to_bits() && (wide.is_nan() || *wide == half.to_f32_const())
                );
            }
        }
        // Too large, half of the smallest value, and slightly more than that.
        let mut few = [65_520.0, 65_519.0, 2f32.powi(-25), 2f32.powi(-25) * 1.001, -2f32.powi(-24)];
        f16::round(&mut few);
        assert_eq!(few, [f32::INFINITY, 65_504.0, 0.0, 2f32.powi(-24), -2f32.powi(-24)]);
    }
}
