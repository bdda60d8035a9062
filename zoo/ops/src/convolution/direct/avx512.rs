//! Tiles of a convolution in AVX-512 registers, with values read in place.

use std::arch::asm;
use std::arch::x86_64::*;

use super::Piece;
use crate::fp32::Tile;
use crate::fp32::avx512::{COLUMNS, ROWS, Sums, store};

/// For each of these rows that a tile of N has, adds one value times 32 values. Without inline
/// assembly, the compiler loads the values of all rows at once and keeps an address for each, which
/// exceeds the registers. Without `pure`, the rows stay in order.
macro_rules! multiply_add {
    ($sums:ident, $left:ident, $right:ident: $($row:literal [$from:ident + $index:ident * $scale:literal])*) => {$(
        if $row < N {
            asm!(
                concat!("vbroadcastss {x}, dword ptr [{from} + {index}*", $scale, "]"),
                "vfmadd231ps {left_sum}, {x}, {left}",
                "vfmadd231ps {right_sum}, {x}, {right}",
                x = out(zmm_reg) _,
                from = in(reg) $from,
                index = in(reg) $index,
                left = in(zmm_reg) $left,
                right = in(zmm_reg) $right,
                left_sum = inout(zmm_reg) $sums[$row][0],
                right_sum = inout(zmm_reg) $sums[$row][1],
                options(readonly, nostack, preserves_flags),
            );
        }
    )*};
}

/// A tile of outputs: the values that they read, from `x` on and `step` elements from one output to
/// the next, times a panel of weights.
///
/// # Safety
/// The CPU has AVX-512 F; the tile may be written; x has all pieces for all outputs, and the panel
/// has their depths.
pub unsafe fn outputs(tile: &Tile, x: *const f32, step: usize, pieces: &[Piece], weight: *const f32) {
    type Kernel = unsafe fn(&Tile, *const f32, usize, &[Piece], *const f32);
    const KERNELS: [Kernel; ROWS] = [
        outputs_of::<1>,
        outputs_of::<2>,
        outputs_of::<3>,
        outputs_of::<4>,
        outputs_of::<5>,
        outputs_of::<6>,
        outputs_of::<7>,
        outputs_of::<8>,
        outputs_of::<9>,
        outputs_of::<10>,
        outputs_of::<11>,
        outputs_of::<12>,
        outputs_of::<13>,
        outputs_of::<14>,
    ];
    // SAFETY: the caller guarantees the requirements.
    unsafe { KERNELS[tile.rows - 1](tile, x, step, pieces, weight) }
}

#[target_feature(enable = "avx512f")]
unsafe fn outputs_of<const N: usize>(
    tile: &Tile,
    x: *const f32,
    step: usize,
    pieces: &[Piece],
    weight: *const f32,
) {
    let mut sums: Sums<N> = [[_mm512_setzero_ps(); 2]; N];
    // Indices, scaled by 1, 2 or 4, that reach seven rows from the place before the first.
    let [one, three, five, seven] = [1, 3, 5, 7].map(|n| n * step * size_of::<f32>());
    // SAFETY: the caller guarantees all pieces and weights, and prefetching is harmless.
    unsafe {
        for row in 0..N {
            _mm_prefetch::<_MM_HINT_T0>(tile.to.wrapping_add(row * tile.stride).cast());
            _mm_prefetch::<_MM_HINT_T0>(tile.to.wrapping_add(row * tile.stride + 16).cast());
        }
        let mut pieces = pieces.iter();
        let (mut low, mut high, mut panel, mut left_over) = (x, x, weight, 0);
        loop {
            if left_over == 0 {
                let Some(piece) = pieces.next() else { break };
                low = x.wrapping_offset(piece.offset).wrapping_byte_sub(one);
                high = low.wrapping_byte_add(seven);
                panel = weight.add(piece.depth * COLUMNS);
                left_over = piece.len;
            }
            let (left, right) = (_mm512_loadu_ps(panel), _mm512_loadu_ps(panel.add(16)));
            multiply_add!(sums, left, right:
                0 [low + one * 1] 1 [low + one * 2] 2 [low + three * 1] 3 [low + one * 4]
                4 [low + five * 1] 5 [low + three * 2] 6 [low + seven * 1]
                7 [high + one * 1] 8 [high + one * 2] 9 [high + three * 1] 10 [high + one * 4]
                11 [high + five * 1] 12 [high + three * 2] 13 [high + seven * 1]
            );
            (low, high) = (low.wrapping_add(1), high.wrapping_add(1));
            panel = panel.add(COLUMNS);
            left_over -= 1;
        }
        // A copy, because sums with a known address would be stored at every step.
        let found = sums;
        store(tile, &found);
    }
}

/// A run of positions in a row: index of the first one in the image, its index among the packed
/// gradients, and the length.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub x: usize,
    pub gradient: usize,
    pub len: usize,
}

/// sums `[rows, 32]` += for all positions, the outer product of `rows` values of x, `step` elements
/// from one position to the next, and a packed panel of gradients `[position, 32]`.
///
/// # Safety
/// The CPU has AVX-512 F; x and the gradients have all positions of the segments.
pub unsafe fn weights(
    sums: &mut [f32],
    rows: usize,
    x: *const f32,
    step: usize,
    gradient: *const f32,
    segments: &[Segment],
) {
    type Kernel = unsafe fn(&mut [f32], *const f32, usize, *const f32, &[Segment]);
    const KERNELS: [Kernel; ROWS] = [
        weights_of::<1>,
        weights_of::<2>,
        weights_of::<3>,
        weights_of::<4>,
        weights_of::<5>,
        weights_of::<6>,
        weights_of::<7>,
        weights_of::<8>,
        weights_of::<9>,
        weights_of::<10>,
        weights_of::<11>,
        weights_of::<12>,
        weights_of::<13>,
        weights_of::<14>,
    ];
    assert!(sums.len() >= rows * COLUMNS);
    // SAFETY: the caller guarantees the requirements.
    unsafe { KERNELS[rows - 1](sums, x, step, gradient, segments) }
}

/// Distance in positions between the multiplied and the prefetched values.
const AHEAD: usize = 16;

#[target_feature(enable = "avx512f")]
unsafe fn weights_of<const N: usize>(
    to: &mut [f32],
    x: *const f32,
    step: usize,
    gradient: *const f32,
    segments: &[Segment],
) {
    let mut sums: Sums<N> = [[_mm512_setzero_ps(); 2]; N];
    // SAFETY: the caller guarantees all positions, and prefetching is harmless.
    unsafe {
        for segment in segments {
            let (mut x, mut gradient) = (x.wrapping_add(segment.x), gradient.add(segment.gradient * COLUMNS));
            for _ in 0..segment.len {
                let (left, right) = (_mm512_loadu_ps(gradient), _mm512_loadu_ps(gradient.add(16)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*x.add(row));
                    sums[0] = _mm512_fmadd_ps(x, left, sums[0]);
                    sums[1] = _mm512_fmadd_ps(x, right, sums[1]);
                }
                _mm_prefetch::<_MM_HINT_T0>(x.wrapping_add(AHEAD * step).cast());
                _mm_prefetch::<_MM_HINT_T0>(x.wrapping_add(AHEAD * step + N - 1).cast());
                x = x.wrapping_add(step);
                gradient = gradient.wrapping_add(COLUMNS);
            }
        }
    }
    let tile = Tile { to: to.as_mut_ptr(), stride: COLUMNS, rows: N, columns: COLUMNS, add: true, bias: &[] };
    // A copy, because sums with a known address would be stored at every step.
    let found = sums;
    // SAFETY: `weights` asserts the number of rows.
    unsafe { store(&tile, &found) }
}
