//! Tiles of a convolution in AVX-512 registers, with values read in place.

use std::arch::asm;
use std::arch::x86_64::*;

use super::Piece;
use crate::fp32::Tile;
use crate::fp32::avx512::{ROWS, Sums, store};

/// Numbers of half a register.
pub const HALF: usize = 8;

/// For each row that a tile of N has, adds one value times the values of H halves of registers. The
/// rows' values are `step` bytes apart, from `low` + `step` on; `high` is seven rows behind `low`.
///
/// Without inline assembly, the compiler loads the values of all rows at once and keeps an address
/// for each, which exceeds the registers, or keeps the sums in memory. Without `pure`, the rows
/// stay in order. The broadcast value has a type, because the compiler finds no register for an
/// output without one.
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
        if $row < N && (H == 2 || H == 3) {
            asm!(
                concat!("vfmadd231ps {sum}, {left}, dword ptr [{from} + {index}*", $scale, "]{{1to16}}"),
                from = in(reg) $from,
                index = in(reg) $index,
                left = in(zmm_reg) $left,
                sum = inout(zmm_reg) $sums[$row][0],
                options(readonly, nostack, preserves_flags),
            );
        }
        if $row < N && H == 1 {
            let (half, mut sum) = (_mm512_castps512_ps256($left), _mm512_castps512_ps256($sums[$row][0]));
            asm!(
                concat!("vfmadd231ps {sum}, {left}, dword ptr [{from} + {index}*", $scale, "]{{1to8}}"),
                from = in(reg) $from,
                index = in(reg) $index,
                left = in(ymm_reg) half,
                sum = inout(ymm_reg) sum,
                options(readonly, nostack, preserves_flags),
            );
            $sums[$row][0] = _mm512_castps256_ps512(sum);
        } else if $row < N && H == 3 {
            let (half, mut sum) = (_mm512_castps512_ps256($right), _mm512_castps512_ps256($sums[$row][1]));
            asm!(
                concat!("vfmadd231ps {sum}, {left}, dword ptr [{from} + {index}*", $scale, "]{{1to8}}"),
                from = in(reg) $from,
                index = in(reg) $index,
                left = in(ymm_reg) half,
                sum = inout(ymm_reg) sum,
                options(readonly, nostack, preserves_flags),
            );
            $sums[$row][1] = _mm512_castps256_ps512(sum);
        } else if $row < N && H == 4 {
            let _x: __m512;
            asm!(
                concat!("vbroadcastss {x}, dword ptr [{from} + {index}*", $scale, "]"),
                "vfmadd231ps {left_sum}, {x}, {left}",
                "vfmadd231ps {right_sum}, {x}, {right}",
                x = out(zmm_reg) _x,
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

/// The values of H halves of registers, and anything in the others.
///
/// # Safety
/// The CPU has AVX-512 F and VL; `from` has the values.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn load<const H: usize>(from: *const f32) -> [__m512; 2] {
    // SAFETY: the caller guarantees the values.
    unsafe {
        let left = match H {
            1 => _mm512_castps256_ps512(_mm256_loadu_ps(from)),
            _ => _mm512_loadu_ps(from),
        };
        let right = match H {
            1 | 2 => left,
            3 => _mm512_castps256_ps512(_mm256_loadu_ps(from.add(2 * HALF))),
            _ => _mm512_loadu_ps(from.add(2 * HALF)),
        };
        [left, right]
    }
}

/// The kernels for tiles of 1 to [`ROWS`] rows.
macro_rules! by_rows {
    ($kernel:ident, $halves:literal) => {
        [
            $kernel::<1, $halves>,
            $kernel::<2, $halves>,
            $kernel::<3, $halves>,
            $kernel::<4, $halves>,
            $kernel::<5, $halves>,
            $kernel::<6, $halves>,
            $kernel::<7, $halves>,
            $kernel::<8, $halves>,
            $kernel::<9, $halves>,
            $kernel::<10, $halves>,
            $kernel::<11, $halves>,
            $kernel::<12, $halves>,
            $kernel::<13, $halves>,
            $kernel::<14, $halves>,
        ]
    };
}

/// A tile of outputs: the values that they read, from `x` on and `step` elements from one output to
/// the next, times a panel of weights `[depth, width]`; `width` is that of one to four halves of a
/// register.
///
/// # Safety
/// The CPU has AVX-512 F and VL; the tile may be written; x has all pieces for all outputs, and the
/// panel has their depths.
pub unsafe fn outputs(
    tile: &Tile,
    x: *const f32,
    step: usize,
    pieces: &[Piece],
    weight: *const f32,
    width: usize,
) {
    type Kernel = unsafe fn(&Tile, *const f32, usize, &[Piece], *const f32);
    const KERNELS: [[Kernel; ROWS]; 4] =
        [by_rows!(outputs_of, 1), by_rows!(outputs_of, 2), by_rows!(outputs_of, 3), by_rows!(outputs_of, 4)];
    // SAFETY: the caller guarantees the requirements.
    unsafe { KERNELS[width / HALF - 1][tile.rows - 1](tile, x, step, pieces, weight) }
}

#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn outputs_of<const N: usize, const H: usize>(
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
            for register in 0..H.div_ceil(2) {
                let to = tile.to.wrapping_add(row * tile.stride + register * 2 * HALF);
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
                panel = weight.add(piece.depth * H * HALF);
                left_over = piece.len;
            }
            let [left, right] = load::<H>(panel);
            multiply_add!(sums, left, right, low, high, steps);
            (low, high) = (low.wrapping_add(1), high.wrapping_add(1));
            panel = panel.add(H * HALF);
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
/// `width` is that of one to four halves of a register.
///
/// # Safety
/// The CPU has AVX-512 F and VL; x and the gradients have all positions of the segments.
pub unsafe fn weights(
    sums: &mut [f32],
    rows: usize,
    x: *const f32,
    step: usize,
    gradient: (*const f32, usize),
    segments: &[Segment],
) {
    type Kernel = unsafe fn(&mut [f32], *const f32, usize, *const f32, &[Segment]);
    const KERNELS: [[Kernel; ROWS]; 4] =
        [by_rows!(weights_of, 1), by_rows!(weights_of, 2), by_rows!(weights_of, 3), by_rows!(weights_of, 4)];
    let (gradient, width) = gradient;
    assert!(sums.len() >= rows * width);
    // SAFETY: the caller guarantees the requirements.
    unsafe { KERNELS[width / HALF - 1][rows - 1](sums, x, step, gradient, segments) }
}

/// Distance in positions between the multiplied and the prefetched values.
const AHEAD: usize = 16;

#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn weights_of<const N: usize, const H: usize>(
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
                (x.wrapping_add(segment.x), gradient.add(segment.gradient * H * HALF));
            for _ in 0..segment.len {
                let [left, right] = load::<H>(gradient);
                let low = x.wrapping_byte_sub(one);
                let high = low.wrapping_byte_add(seven);
                multiply_add!(sums, left, right, low, high, steps);
                _mm_prefetch::<_MM_HINT_T0>(x.wrapping_add(AHEAD * step).cast());
                _mm_prefetch::<_MM_HINT_T0>(x.wrapping_add(AHEAD * step + N - 1).cast());
                x = x.wrapping_add(step);
                gradient = gradient.wrapping_add(H * HALF);
            }
        }
    }
    let width = H * HALF;
    let tile = Tile { to: to.as_mut_ptr(), stride: width, rows: N, columns: width, add: true, bias: &[] };
    // A copy, because sums with a known address would be stored at every step.
    let found = sums;
    // SAFETY: `weights` asserts the number of rows.
    unsafe { store(&tile, &found) }
}
