//! Tiles of a convolution in AVX-512 registers, with values read in place.

use std::arch::asm;
use std::arch::x86_64::*;

use super::Piece;
use crate::fp32::Tile;
use crate::fp32::avx512::{ROWS, Sums, store};

/// Numbers of one register.
pub const LANES: usize = 16;

/// For each row that a tile of N has, adds one value times the values of W registers. The rows'
/// values are `step` bytes apart, from `low` + `step` on; `high` is seven rows behind `low`.
///
/// Without inline assembly, the compiler loads the values of all rows at once and keeps an address
/// for each, which exceeds the registers, or keeps the sums in memory. Without `pure`, the rows stay
/// in order.
macro_rules! multiply_add {
    ($sums:ident, $left:ident, $right:ident, $low:ident, $high:ident, $steps:ident) => {{
        // Indices, scaled by 1, 2 or 4, that reach seven rows.
        let [one, three, five, seven] = $steps;
        multiply_add!($sums, $left, $right:
            0 [$low + one * 1] 1 [$low + one * 2] 2 [$low + three * 1] 3 [$low + one * 4]
            4 [$low + five * 1] 5 [$low + three * 2] 6 [$low + seven * 1]
            7 [$high + one * 1] 8 [$high + one * 2] 9 [$high + three * 1] 10 [$high + one * 4]
            11 [$high + five * 1] 12 [$high + three * 2] 13 [$high + seven * 1]
        );
    }};
    ($sums:ident, $left:ident, $right:ident: $($row:literal [$from:ident + $index:ident * $scale:literal])*) => {$(
        if $row < N && W == 1 {
            asm!(
                concat!("vfmadd231ps {sum}, {left}, dword ptr [{from} + {index}*", $scale, "]{{1to16}}"),
                from = in(reg) $from,
                index = in(reg) $index,
                left = in(zmm_reg) $left,
                sum = inout(zmm_reg) $sums[$row][0],
                options(readonly, nostack, preserves_flags),
            );
        } else if $row < N {
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

/// Multiples of a step that [`multiply_add`] adds to addresses.
fn steps(bytes: usize) -> [usize; 4] {
    [1, 3, 5, 7].map(|n| n * bytes)
}

/// The kernels for tiles of 1 to [`ROWS`] rows.
macro_rules! by_rows {
    ($kernel:ident, $registers:literal) => {
        [
            $kernel::<1, $registers>,
            $kernel::<2, $registers>,
            $kernel::<3, $registers>,
            $kernel::<4, $registers>,
            $kernel::<5, $registers>,
            $kernel::<6, $registers>,
            $kernel::<7, $registers>,
            $kernel::<8, $registers>,
            $kernel::<9, $registers>,
            $kernel::<10, $registers>,
            $kernel::<11, $registers>,
            $kernel::<12, $registers>,
            $kernel::<13, $registers>,
            $kernel::<14, $registers>,
        ]
    };
}

/// A tile of outputs: the values that they read, from `x` on and `step` elements from one output to
/// the next, times a panel of weights `[depth, width]`; `width` is that of one or two registers.
///
/// # Safety
/// The CPU has AVX-512 F; the tile may be written; x has all pieces for all outputs, and the panel
/// has their depths.
pub unsafe fn outputs(
    tile: &Tile,
    x: *const f32,
    step: usize,
    pieces: &[Piece],
    weight: *const f32,
    width: usize,
) {
    type Kernel = unsafe fn(&Tile, *const f32, usize, &[Piece], *const f32);
    const KERNELS: [[Kernel; ROWS]; 2] = [by_rows!(outputs_of, 1), by_rows!(outputs_of, 2)];
    // SAFETY: the caller guarantees the requirements.
    unsafe { KERNELS[width / LANES - 1][tile.rows - 1](tile, x, step, pieces, weight) }
}

#[target_feature(enable = "avx512f")]
unsafe fn outputs_of<const N: usize, const W: usize>(
    tile: &Tile,
    x: *const f32,
    step: usize,
    pieces: &[Piece],
    weight: *const f32,
) {
    let mut sums: Sums<N> = [[_mm512_setzero_ps(); 2]; N];
    let steps @ [one, .., seven] = steps(step * size_of::<f32>());
    // SAFETY: the caller guarantees all pieces and weights, and prefetching is harmless.
    unsafe {
        for row in 0..N {
            for register in 0..W {
                let to = tile.to.wrapping_add(row * tile.stride + register * LANES);
                _mm_prefetch::<_MM_HINT_T0>(to.cast());
            }
        }
        let mut pieces = pieces.iter();
        let (mut low, mut high, mut panel, mut left_over) = (x, x, weight, 0);
        loop {
            if left_over == 0 {
                let Some(piece) = pieces.next() else { break };
                low = x.wrapping_offset(piece.offset).wrapping_byte_sub(one);
                high = low.wrapping_byte_add(seven);
                panel = weight.add(piece.depth * W * LANES);
                left_over = piece.len;
            }
            // With one register, the second one is the first and is not used.
            let (left, right) = (_mm512_loadu_ps(panel), _mm512_loadu_ps(panel.add((W - 1) * LANES)));
            multiply_add!(sums, left, right, low, high, steps);
            (low, high) = (low.wrapping_add(1), high.wrapping_add(1));
            panel = panel.add(W * LANES);
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

/// sums `[rows, width]` += for all positions, the outer product of `rows` values of x, `step`
/// elements from one position to the next, and a packed panel of gradients `[position, width]`;
/// `width` is that of one or two registers.
///
/// # Safety
/// The CPU has AVX-512 F; x and the gradients have all positions of the segments.
pub unsafe fn weights(
    sums: &mut [f32],
    rows: usize,
    x: *const f32,
    step: usize,
    gradient: (*const f32, usize),
    segments: &[Segment],
) {
    type Kernel = unsafe fn(&mut [f32], *const f32, usize, *const f32, &[Segment]);
    const KERNELS: [[Kernel; ROWS]; 2] = [by_rows!(weights_of, 1), by_rows!(weights_of, 2)];
    let (gradient, width) = gradient;
    assert!(sums.len() >= rows * width);
    // SAFETY: the caller guarantees the requirements.
    unsafe { KERNELS[width / LANES - 1][rows - 1](sums, x, step, gradient, segments) }
}

/// Distance in positions between the multiplied and the prefetched values.
const AHEAD: usize = 16;

#[target_feature(enable = "avx512f")]
unsafe fn weights_of<const N: usize, const W: usize>(
    to: &mut [f32],
    x: *const f32,
    step: usize,
    gradient: *const f32,
    segments: &[Segment],
) {
    let mut sums: Sums<N> = [[_mm512_setzero_ps(); 2]; N];
    // The rows' values are adjacent.
    let steps @ [one, .., seven] = steps(size_of::<f32>());
    // SAFETY: the caller guarantees all positions, and prefetching is harmless.
    unsafe {
        for segment in segments {
            let (mut x, mut gradient) =
                (x.wrapping_add(segment.x), gradient.add(segment.gradient * W * LANES));
            for _ in 0..segment.len {
                let (left, right) =
                    (_mm512_loadu_ps(gradient), _mm512_loadu_ps(gradient.add((W - 1) * LANES)));
                let low = x.wrapping_byte_sub(one);
                let high = low.wrapping_byte_add(seven);
                multiply_add!(sums, left, right, low, high, steps);
                _mm_prefetch::<_MM_HINT_T0>(x.wrapping_add(AHEAD * step).cast());
                _mm_prefetch::<_MM_HINT_T0>(x.wrapping_add(AHEAD * step + N - 1).cast());
                x = x.wrapping_add(step);
                gradient = gradient.wrapping_add(W * LANES);
            }
        }
    }
    let width = W * LANES;
    let tile = Tile { to: to.as_mut_ptr(), stride: width, rows: N, columns: width, add: true, bias: &[] };
    // A copy, because sums with a known address would be stored at every step.
    let found = sums;
    // SAFETY: `weights` asserts the number of rows.
    unsafe { store(&tile, &found) }
}
