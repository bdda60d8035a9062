//! Packs operands into tiles of 16 lanes by 32 of the depth, with pairs along the depth side by
//! side. Zero beyond the edges.
//!
//! A tile of A is `[lane][pair]`, a tile of B `[pair][lane]`. Memory is contiguous along the depth
//! or along the lanes. Sixteen vectors hold a tile in both cases, and a transposition of 16 x 16
//! pairs converts one layout to the other.

use std::arch::x86_64::*;

use super::{Operand, PANEL, STEP, TILE, Values};
use crate::simd::transpose_16x16;

/// Packs a panel of A, whose lanes are the rows `first..first + 32`.
///
/// # Safety
/// The CPU has AVX512 F, BW, VL and BF16.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn rows(to: &mut [u16], a: &Operand, first: usize) {
    let source = Source { values: a.values, stride: a.stride, lanes: a.rows, depth: a.columns };
    // SAFETY: the caller guarantees the requirements.
    unsafe { panel(to, source, first, !a.transposed, true) }
}

/// Packs a panel of B, whose lanes are the columns `first..first + 32`.
///
/// # Safety
/// As for `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn columns(to: &mut [u16], b: &Operand, first: usize) {
    let source = Source { values: b.values, stride: b.stride, lanes: b.columns, depth: b.rows };
    // SAFETY: the caller guarantees the requirements.
    unsafe { panel(to, source, first, b.transposed, false) }
}

#[derive(Clone, Copy)]
struct Source<'a> {
    values: Values<'a>,
    stride: usize,
    lanes: usize,
    depth: usize,
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn panel(to: &mut [u16], source: Source, first: usize, along_depth: bool, lanes_first: bool) {
    for (i, tile) in to.chunks_exact_mut(TILE).enumerate() {
        let (depth, lane) = (i / 2 * STEP, first + i % 2 * (PANEL / 2));
        let lanes = source.lanes.saturating_sub(lane).min(16);
        let depths = (source.depth - depth).min(STEP);
        let mut vectors = [_mm512_setzero_si512(); 16];
        if lanes > 0 {
            // SAFETY: `lanes` and `depths` end inside the matrix, and they mask the loads.
            unsafe {
                if along_depth {
                    let start = lane * source.stride + depth;
                    for (i, vector) in vectors.iter_mut().enumerate().take(lanes) {
                        *vector = along(source.values, start + i * source.stride, depths);
                    }
                } else {
                    let start = depth * source.stride + lane;
                    for (i, vector) in vectors.iter_mut().enumerate().take(depths.div_ceil(2)) {
                        let at = start + 2 * i * source.stride;
                        let second = (2 * i + 1 < depths).then_some(at + source.stride);
                        *vector = across(source.values, at, second, lanes);
                    }
                }
            }
            if along_depth != lanes_first {
                vectors = transpose_16x16(vectors);
            }
        }
        for (vector, to) in vectors.iter().zip(tile.chunks_exact_mut(32)) {
            // SAFETY: the tile has 32 values of 16 bits at this place.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), *vector) };
        }
    }
}

/// Mask of the lowest n bits.
#[inline(always)]
fn lowest(n: usize) -> u32 {
    if n >= 32 { u32::MAX } else { (1 << n) - 1 }
}

/// Loads up to 32 adjacent values.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn along(values: Values, at: usize, n: usize) -> __m512i {
    let mask = lowest(n);
    // SAFETY: the caller guarantees n values at this place.
    unsafe {
        match values {
            Values::Bf16(values) => _mm512_maskz_loadu_epi16(mask, values.as_ptr().add(at).cast()),
            Values::Fp16(_) => unreachable!("the instructions here multiply bf16"),
            Values::F32(values) => {
                let from = values.as_ptr().wrapping_add(at);
                let low = _mm512_maskz_loadu_ps(mask as u16, from);
                let high = _mm512_maskz_loadu_ps((mask >> 16) as u16, from.wrapping_add(16));
                std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low))
            }
        }
    }
}

/// Loads pairs of up to 16 values each of two rows; the second may be beyond the edge.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn across(values: Values, first: usize, second: Option<usize>, n: usize) -> __m512i {
    let mask = lowest(n) as u16;
    // SAFETY: the caller guarantees n values at both places.
    unsafe {
        match values {
            Values::Bf16(values) => {
                let load = |at: usize| _mm256_maskz_loadu_epi16(mask, values.as_ptr().add(at).cast());
                interleaved(load(first), second.map_or(_mm256_setzero_si256(), load))
            }
            Values::Fp16(_) => unreachable!("the instructions here multiply bf16"),
            Values::F32(values) => {
                let load = |at: usize| _mm512_maskz_loadu_ps(mask, values.as_ptr().add(at));
                let high = second.map_or(_mm512_setzero_ps(), load);
                let both = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, load(first)));
                interleaved(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64::<1>(both))
            }
        }
    }
}

/// Interleaves the values of two rows as pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub fn interleaved(first: __m256i, second: __m256i) -> __m512i {
    let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second);
    let order = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18,
        2, 17, 1, 16, 0,
    );
    _mm512_permutexvar_epi16(order, both)
}
