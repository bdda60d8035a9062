//! Gathered matrices as sides of a bf16 product: tiles of 16 lanes by 32 of the depth, with pairs
//! along the depth side by side.

use std::arch::x86_64::*;
use std::ops::Range;

use burn::tensor::bf16;

use super::patches::{Gathered, Side};
use crate::halves::{PANEL, STEP, Source, TILE, interleaved};
use crate::simd::transpose_16x16;

impl Source for Side<'_, bf16> {
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

    unsafe fn pack(&self, to: &mut [u16], first: usize, steps: Range<usize>, lanes_first: bool) {
        let depth = steps.start * STEP;
        // SAFETY: the caller guarantees the requirements of both functions.
        unsafe {
            match self {
                Self::Rows(of) => rows(to, of, first, depth, lanes_first),
                Self::Columns(of) => columns(to, of, first, depth, lanes_first),
            }
        }
    }
}

/// Loads of up to 32 values in a row of a gathered matrix. Each has an offset from the row's start
/// and a mask of the lanes that it fills.
struct Pieces {
    all: [(isize, u32); STEP],
    n: usize,
}

impl Pieces {
    /// Pieces of the columns from `first` to `end`, at most 32.
    fn new(of: &Gathered<bf16>, first: usize, end: usize) -> Self {
        let mut pieces = Self { all: [(0, 0); STEP], n: 0 };
        for (at, offset, n) in of.pieces(first, end) {
            let lane = at - first;
            let mask = ((1u64 << n) - 1) as u32;
            pieces.all[pieces.n] = (offset as isize - lane as isize, mask << lane);
            pieces.n += 1;
        }
        pieces
    }

    /// Loads one row.
    ///
    /// # Safety
    /// `start` must be one of the starts of the matrix that the pieces belong to.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(&self, values: *const bf16, start: usize) -> __m512i {
        let mut vector = _mm512_setzero_si512();
        for (place, mask) in &self.all[..self.n] {
            let from = values.wrapping_offset(start as isize + place);
            // SAFETY: the mask excludes values outside the matrix.
            vector = _mm512_or_si512(vector, unsafe { _mm512_maskz_loadu_epi16(*mask, from.cast()) });
        }
        vector
    }
}

/// Packs rows as lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn rows(to: &mut [u16], of: &Gathered<bf16>, first: usize, depth: usize, lanes_first: bool) {
    let width = of.width();
    for (i, tiles) in to.chunks_exact_mut(2 * TILE).enumerate() {
        let depth = depth + i * STEP;
        let pieces = Pieces::new(of, depth, width.min(depth + STEP));
        for (half, tile) in tiles.chunks_exact_mut(TILE).enumerate() {
            let lanes = of.starts.get(first + half * PANEL / 2..).unwrap_or(&[]);
            let mut vectors = [_mm512_setzero_si512(); 16];
            for (vector, start) in vectors.iter_mut().zip(lanes) {
                // SAFETY: `Gathered::new` checks that every run is inside the values.
                *vector = unsafe { pieces.load(of.values.as_ptr(), *start) };
            }
            if !lanes_first {
                vectors = transpose_16x16(vectors);
            }
            store(tile, &vectors);
        }
    }
}

/// Packs columns as lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn columns(to: &mut [u16], of: &Gathered<bf16>, first: usize, depth: usize, lanes_first: bool) {
    let width = of.width();
    let pieces =
        [first, first + PANEL / 2].map(|lane| Pieces::new(of, lane.min(width), width.min(lane + PANEL / 2)));
    for (i, tiles) in to.chunks_exact_mut(2 * TILE).enumerate() {
        let starts = of.starts.get(depth + i * STEP..).unwrap_or(&[]);
        let starts = &starts[..starts.len().min(STEP)];
        for (pieces, tile) in pieces.iter().zip(tiles.chunks_exact_mut(TILE)) {
            let mut vectors = [_mm512_setzero_si512(); 16];
            for (vector, pair) in vectors.iter_mut().zip(starts.chunks(2)) {
                // SAFETY: `Gathered::new` checks that every run is inside the values.
                let half =
                    |start: usize| unsafe { _mm512_castsi512_si256(pieces.load(of.values.as_ptr(), start)) };
                let second = pair.get(1).map_or(_mm256_setzero_si256(), |start| half(*start));
                *vector = interleaved(half(pair[0]), second);
            }
            if lanes_first {
                vectors = transpose_16x16(vectors);
            }
            store(tile, &vectors);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(tile: &mut [u16], vectors: &[__m512i; 16]) {
    for (vector, to) in vectors.iter().zip(tile.chunks_exact_mut(32)) {
        // SAFETY: the tile has 32 values of 16 bits at this place.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), *vector) };
    }
}
