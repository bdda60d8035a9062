//! Tiles of up to 6 rows by 16 columns in AVX2 registers.

use std::arch::x86_64::*;

use super::Tile;

/// Most rows of a tile: twelve registers of sums, two of B, one of A.
pub const ROWS: usize = 6;
/// Columns of a tile.
pub const COLUMNS: usize = 16;

/// A tile of the product of two panels.
///
/// # Safety
/// The CPU has AVX2 and FMA; the tile may be written.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub unsafe fn multiply(width: usize, tile: &Tile, a: &[f32], b: &[f32]) {
    // SAFETY: passed on.
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
        // SAFETY: 16 values.
        let (left, right) = unsafe { (_mm256_loadu_ps(b.as_ptr()), _mm256_loadu_ps(b.as_ptr().add(8))) };
        for (a, sums) in a.iter().zip(&mut sums) {
            let a = _mm256_set1_ps(*a);
            sums[0] = _mm256_fmadd_ps(a, left, sums[0]);
            sums[1] = _mm256_fmadd_ps(a, right, sums[1]);
        }
    }
    for (row, sums) in sums.iter().enumerate().take(tile.rows) {
        let mut found = [0f32; COLUMNS];
        // SAFETY: 16 values; a row of the tile.
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
