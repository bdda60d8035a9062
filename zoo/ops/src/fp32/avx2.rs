//! Tiles of up to 6 rows by 16 columns in AVX2 registers.

use std::arch::x86_64::*;

use super::Tile;

/// Maximum number of rows of a tile: twelve registers of sums, two of B, one of A.
pub const ROWS: usize = 6;
/// Number of columns of a tile.
pub const COLUMNS: usize = 16;

/// A tile of the product of two panels.
///
/// # Safety
/// The CPU has AVX2 and FMA; the tile may be written.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub unsafe fn multiply(width: usize, tile: &Tile, a: &[f32], b: &[f32]) {
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        match width {
            1 => rows::<1>(tile, a, b),
            2 => rows::<2>(tile, a, b),
            3 => rows::<3>(tile, a, b),
            4 => rows::<4>(tile, a, b),
            5 => rows::<5>(tile, a, b),
            _ => rows::<6>(tile, a, b),
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const ROWS: usize>(tile: &Tile, a: &[f32], b: &[f32]) {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(COLUMNS)) {
        // SAFETY: the row of the panel has 16 values.
        let (left, right) = unsafe { (_mm256_loadu_ps(b.as_ptr()), _mm256_loadu_ps(b.as_ptr().add(8))) };
        for (a, sums) in a.iter().zip(&mut sums) {
            let a = _mm256_set1_ps(*a);
            sums[0] = _mm256_fmadd_ps(a, left, sums[0]);
            sums[1] = _mm256_fmadd_ps(a, right, sums[1]);
        }
    }
    for (row, sums) in sums.iter().enumerate().take(tile.rows) {
        let mut found = [0f32; COLUMNS];
        // SAFETY: `found` has 16 values; `to` is a row of the tile.
        let to = unsafe {
            _mm256_storeu_ps(found.as_mut_ptr(), sums[0]);
            _mm256_storeu_ps(found.as_mut_ptr().add(8), sums[1]);
            std::slice::from_raw_parts_mut(tile.to.add(row * tile.stride), tile.columns)
        };
        for (sum, bias) in found.iter_mut().zip(tile.bias) {
            *sum += bias;
        }
        match tile.add {
            true => to.iter_mut().zip(found).for_each(|(to, sum)| *to += sum),
            false => to.iter_mut().zip(found).for_each(|(to, sum)| *to = sum),
        }
    }
}

/// Whether panels of this width can be packed here. Other widths would overwrite neighbouring
/// values.
pub fn packs(width: usize) -> bool {
    width <= 8 || width.is_multiple_of(8)
}

/// Packs values that are contiguous along the lanes.
///
/// # Safety
/// The CPU has AVX2; `values` reaches to the last lane at the last depth, `to` has room for
/// `width * depth`, and `packs(width)`.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_across(
    to: &mut [f32],
    width: usize,
    values: &[f32],
    stride: usize,
    lanes: usize,
    depth: usize,
) {
    for first in (0..width).step_by(8) {
        let read = lowest(lanes.saturating_sub(first));
        for i in 0..depth {
            let from = values.as_ptr().wrapping_add(first + i * stride);
            // SAFETY: the mask excludes lanes outside the values.
            let vector = unsafe { _mm256_maskload_ps(from, read) };
            put(&mut to[i * width + first..], width - first, vector);
        }
    }
}

/// Packs values that are contiguous along the depth.
///
/// # Safety
/// As for `pack_across`.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_along(
    to: &mut [f32],
    width: usize,
    values: &[f32],
    stride: usize,
    lanes: usize,
    depth: usize,
) {
    for first in (0..width).step_by(8) {
        let there = lanes.saturating_sub(first).min(8);
        for from in (0..depth).step_by(8) {
            let depths = (depth - from).min(8);
            let read = lowest(depths);
            let mut vectors = [_mm256_setzero_ps(); 8];
            for (lane, vector) in vectors.iter_mut().enumerate().take(there) {
                let place = values.as_ptr().wrapping_add((first + lane) * stride + from);
                // SAFETY: the mask excludes depths outside the values.
                *vector = unsafe { _mm256_maskload_ps(place, read) };
            }
            let vectors = transpose_8x8(vectors);
            for (i, vector) in vectors.into_iter().enumerate().take(depths) {
                put(&mut to[(from + i) * width + first..], width - first, vector);
            }
        }
    }
}

/// Writes the first `width` values of a vector. The remaining ones of eight are written to the
/// panel's next row, if there is one.
#[inline]
#[target_feature(enable = "avx2")]
fn put(to: &mut [f32], width: usize, vector: __m256) {
    if to.len() >= 8 {
        // SAFETY: `to` has eight values.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), vector) };
    } else {
        let mut values = [0f32; 8];
        // SAFETY: `values` has eight values.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) };
        let width = width.min(to.len());
        to[..width].copy_from_slice(&values[..width]);
    }
}

/// Mask of the lowest n of 8 lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn lowest(n: usize) -> __m256i {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(8) as i32), places)
}

#[inline]
#[target_feature(enable = "avx2")]
fn transpose_8x8(x: [__m256; 8]) -> [__m256; 8] {
    // Pairs of lanes, then fours, in each half; then the halves.
    let [a, b, c, d, e, f, g, h] = x;
    let (a, b) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (c, d) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    let (e, f) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
    let (g, h) = (_mm256_unpacklo_ps(g, h), _mm256_unpackhi_ps(g, h));
    let (a, c) = (_mm256_shuffle_ps::<0x44>(a, c), _mm256_shuffle_ps::<0xEE>(a, c));
    let (b, d) = (_mm256_shuffle_ps::<0x44>(b, d), _mm256_shuffle_ps::<0xEE>(b, d));
    let (e, g) = (_mm256_shuffle_ps::<0x44>(e, g), _mm256_shuffle_ps::<0xEE>(e, g));
    let (f, h) = (_mm256_shuffle_ps::<0x44>(f, h), _mm256_shuffle_ps::<0xEE>(f, h));
    [
        _mm256_permute2f128_ps::<0x20>(a, e),
        _mm256_permute2f128_ps::<0x20>(c, g),
        _mm256_permute2f128_ps::<0x20>(b, f),
        _mm256_permute2f128_ps::<0x20>(d, h),
        _mm256_permute2f128_ps::<0x31>(a, e),
        _mm256_permute2f128_ps::<0x31>(c, g),
        _mm256_permute2f128_ps::<0x31>(b, f),
        _mm256_permute2f128_ps::<0x31>(d, h),
    ]
}
