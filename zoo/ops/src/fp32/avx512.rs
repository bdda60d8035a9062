//! Tiles of up to 14 rows by 32 columns in AVX-512 registers.

use std::arch::x86_64::*;

use super::Tile;
use crate::simd::transpose_16x16;

/// Maximum number of rows of a tile: 28 registers of sums, two of B, one of A.
pub const ROWS: usize = 14;
/// Number of columns of a tile.
pub const COLUMNS: usize = 32;

/// Mask of the lowest n of 16 bits.
#[inline(always)]
fn lowest(n: usize) -> u16 {
    if n >= 16 { u16::MAX } else { (1 << n) - 1 }
}

/// A tile of the product of two panels.
///
/// # Safety
/// The CPU has AVX-512 F; the tile may be written.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn multiply(width: usize, tile: &Tile, a: &[f32], b: &[f32]) {
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        match width {
            1 => rows::<1>(tile, a, b),
            2 => rows::<2>(tile, a, b),
            3 => rows::<3>(tile, a, b),
            4 => rows::<4>(tile, a, b),
            5 => rows::<5>(tile, a, b),
            6 => rows::<6>(tile, a, b),
            7 => rows::<7>(tile, a, b),
            8 => rows::<8>(tile, a, b),
            9 => rows::<9>(tile, a, b),
            10 => rows::<10>(tile, a, b),
            11 => rows::<11>(tile, a, b),
            12 => rows::<12>(tile, a, b),
            13 => rows::<13>(tile, a, b),
            _ => rows::<14>(tile, a, b),
        }
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn rows<const ROWS: usize>(tile: &Tile, a: &[f32], b: &[f32]) {
    let mut sums: Sums<ROWS> = [[_mm512_setzero_ps(); 2]; ROWS];
    let depth = b.len() / COLUMNS;
    let (mut a, mut b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: panels have `depth` rows of ROWS and of 32; prefetching is harmless; the tile is the
    // caller's.
    unsafe {
        if tile.add {
            for row in 0..tile.rows {
                _mm_prefetch::<_MM_HINT_T0>(tile.to.wrapping_add(row * tile.stride).cast());
                _mm_prefetch::<_MM_HINT_T0>(tile.to.wrapping_add(row * tile.stride + 16).cast());
            }
        }
        for _ in 0..depth {
            let (left, right) = (_mm512_loadu_ps(b), _mm512_loadu_ps(b.add(16)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = _mm512_set1_ps(*a.add(row));
                sums[0] = _mm512_fmadd_ps(a, left, sums[0]);
                sums[1] = _mm512_fmadd_ps(a, right, sums[1]);
            }
            a = a.add(ROWS);
            b = b.add(COLUMNS);
        }
        // A copy, because sums with a known address would be stored at every step.
        let found = sums;
        store(tile, &found);
    }
}

/// Sums of a tile.
pub type Sums<const ROWS: usize> = [[__m512; 2]; ROWS];

/// Writes or adds the sums of a tile, and its bias.
///
/// # Safety
/// The CPU has AVX-512 F; the tile may be written.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn store<const ROWS: usize>(tile: &Tile, sums: &Sums<ROWS>) {
    let masks = [lowest(tile.columns), lowest(tile.columns.saturating_sub(16))];
    // SAFETY: only rows and columns of the tile are read and written.
    unsafe {
        let bias = match tile.bias {
            [] => [_mm512_setzero_ps(); 2],
            bias => {
                [0, 1].map(|half| _mm512_maskz_loadu_ps(masks[half], bias.as_ptr().wrapping_add(16 * half)))
            }
        };
        for (row, sums) in sums.iter().enumerate().take(tile.rows) {
            for half in 0..2 {
                let to = tile.to.wrapping_add(row * tile.stride + 16 * half);
                let sum = _mm512_add_ps(sums[half], bias[half]);
                let sum = match tile.add {
                    true => _mm512_add_ps(_mm512_maskz_loadu_ps(masks[half], to), sum),
                    false => sum,
                };
                _mm512_mask_storeu_ps(to, masks[half], sum);
            }
        }
    }
}

/// Packs values that are contiguous along the lanes.
///
/// # Safety
/// The CPU has AVX-512 F; `values` reaches to the last lane at the last depth, `to` has room for
/// `width * depth`.
#[target_feature(enable = "avx512f")]
pub unsafe fn pack_across(
    to: &mut [f32],
    width: usize,
    values: &[f32],
    stride: usize,
    lanes: usize,
    depth: usize,
) {
    for first in (0..width).step_by(16) {
        let (read, write) = (lowest(lanes.saturating_sub(first)), lowest(width - first));
        let (mut from, mut to) = (values.as_ptr().wrapping_add(first), to.as_mut_ptr().wrapping_add(first));
        for _ in 0..depth {
            // SAFETY: the masks exclude lanes outside the values and the panel.
            unsafe { _mm512_mask_storeu_ps(to, write, _mm512_maskz_loadu_ps(read, from)) };
            (from, to) = (from.wrapping_add(stride), to.wrapping_add(width));
        }
    }
}

/// Packs values that are contiguous along the depth.
///
/// # Safety
/// As for `pack_across`.
#[target_feature(enable = "avx512f")]
pub unsafe fn pack_along(
    to: &mut [f32],
    width: usize,
    values: &[f32],
    stride: usize,
    lanes: usize,
    depth: usize,
) {
    for first in (0..width).step_by(16) {
        let there = lanes.saturating_sub(first).min(16);
        let write = lowest(width - first);
        for from in (0..depth).step_by(16) {
            let depths = (depth - from).min(16);
            let mut vectors = [_mm512_setzero_si512(); 16];
            for (lane, vector) in vectors.iter_mut().enumerate().take(there) {
                let place = values.as_ptr().wrapping_add((first + lane) * stride + from);
                // SAFETY: the mask excludes depths outside the values.
                *vector = _mm512_castps_si512(unsafe { _mm512_maskz_loadu_ps(lowest(depths), place) });
            }
            let vectors = transpose_16x16(vectors);
            for (i, vector) in vectors.iter().enumerate().take(depths) {
                let place = to.as_mut_ptr().wrapping_add((from + i) * width + first);
                // SAFETY: the mask excludes places outside the panel.
                unsafe { _mm512_mask_storeu_ps(place, write, _mm512_castsi512_ps(*vector)) };
            }
        }
    }
}
