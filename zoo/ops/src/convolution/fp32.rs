//! Gathered matrices as sides of an FP32 product.

use std::ops::Range;

use super::patches::{Gathered, Side};
use crate::fp32::Source;

impl Source for Side<'_, f32> {
    fn lanes(&self) -> usize {
        match self {
            Self::Rows(of) => of.starts.len(),
            Self::Columns(of) => of.width(),
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::Rows(of) => of.width(),
            Self::Columns(of) => of.starts.len(),
        }
    }

    fn pack(&self, to: &mut [f32], width: usize, first: usize, depth: Range<usize>) {
        assert!(to.len() >= width * depth.len());
        match self {
            Self::Rows(of) => {
                let starts = &of.starts[first..of.starts.len().min(first + width)];
                for (at, offset, n) in of.pieces(depth.start, depth.end) {
                    let to = &mut to[(at - depth.start) * width..][..n * width];
                    pack_rows(to, width, of, starts, offset);
                }
            }
            Self::Columns(of) => {
                let end = of.width().min(first + width);
                let starts = &of.starts[depth];
                for (at, offset, n) in of.pieces(first, end) {
                    pack_columns(to, width, of, starts, (at - first, offset, n));
                }
                if end - first < width {
                    to.chunks_exact_mut(width).take(starts.len()).for_each(|to| to[end - first..].fill(0.0));
                }
            }
        }
    }
}

/// Packs a piece of several rows, lanes first.
fn pack_rows(to: &mut [f32], width: usize, of: &Gathered<f32>, starts: &[usize], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::level() == crate::simd::Level::V4 {
        // SAFETY: the CPU supports AVX-512; `Gathered::new` checks that every run is inside the
        // values.
        return unsafe { avx512::rows(to, width, of.values, starts, offset) };
    }
    for (i, to) in to.chunks_exact_mut(width).enumerate() {
        for (lane, to) in to.iter_mut().enumerate() {
            *to = starts.get(lane).map_or(0.0, |start| of.values[start + offset + i]);
        }
    }
}

/// Packs a piece of the columns, given by its first lane, its offset in a row and its length.
fn pack_columns(
    to: &mut [f32],
    width: usize,
    of: &Gathered<f32>,
    starts: &[usize],
    (lane, offset, n): (usize, usize, usize),
) {
    for (to, start) in to.chunks_exact_mut(width).zip(starts) {
        let (to, from) = (&mut to[lane..][..n], &of.values[start + offset..][..n]);
        match n {
            // A constant length avoids a call.
            32 => to.first_chunk_mut::<32>().expect("32").copy_from_slice(from),
            16 => to.first_chunk_mut::<16>().expect("16").copy_from_slice(from),
            _ => to.copy_from_slice(from),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use crate::simd::transpose_16x16;

    /// Mask of the lowest n of 16 bits.
    #[inline(always)]
    fn lowest(n: usize) -> u16 {
        if n >= 16 { u16::MAX } else { (1 << n) - 1 }
    }

    /// Packs rows.
    ///
    /// # Safety
    /// The CPU has AVX-512 F; from every start plus `offset` there are as many values as `to` has
    /// rows of `width`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn rows(to: &mut [f32], width: usize, values: &[f32], starts: &[usize], offset: usize) {
        let n = to.len() / width;
        for first in (0..width).step_by(16) {
            let lanes = starts.get(first..).unwrap_or(&[]);
            let lanes = &lanes[..lanes.len().min(16)];
            let write = lowest(width - first);
            for from in (0..n).step_by(16) {
                let there = (n - from).min(16);
                let mask = lowest(there);
                let mut vectors = [_mm512_setzero_si512(); 16];
                for (start, vector) in lanes.iter().zip(&mut vectors) {
                    let place = values.as_ptr().wrapping_add(start + offset + from);
                    // SAFETY: the mask excludes values outside the matrix.
                    *vector = _mm512_castps_si512(unsafe { _mm512_maskz_loadu_ps(mask, place) });
                }
                let vectors = transpose_16x16(vectors);
                for (i, vector) in vectors.iter().enumerate().take(there) {
                    let place = to.as_mut_ptr().wrapping_add((from + i) * width + first);
                    // SAFETY: the mask excludes places outside the panel.
                    unsafe { _mm512_mask_storeu_ps(place, write, _mm512_castsi512_ps(*vector)) };
                }
            }
        }
    }
}
