//! Products of sides that pack themselves, one piece of the depth at a time. They suit sides that
//! exceed the cache and whose rows share their values, such as the patches of an image.

use std::ops::Range;

use burn::tensor::bf16;
use rayon::prelude::*;

use super::{Instruction, PANEL, STEP, Shared, Stored, TILE, amx, avx512};
use crate::fp32::{Matrix, Source as _};
use crate::host::room;

/// One side of a product: rows of A, or columns of B, along a depth.
pub trait Source: Sync {
    /// Number of rows of A, or of columns of B.
    fn lanes(&self) -> usize;

    /// Number of terms of a sum.
    fn depth(&self) -> usize;

    /// Packs tiles of the lanes `first..first + 32` for steps of 32 of the depth, two tiles to a
    /// step: `[lane][pair]` for a tile of A, `[pair][lane]` for one of B. Zero beyond the edges.
    ///
    /// # Safety
    /// The CPU has AVX512 F, BW, VL and BF16.
    unsafe fn pack(&self, to: &mut [u16], first: usize, steps: Range<usize>, lanes_first: bool);
}

/// Number of steps of the depth that are packed at once.
const CHUNK: usize = 32;
/// Maximum number of rows of a task.
const ROWS: usize = 128;
/// Number of tasks that gives every thread its share.
const TASKS: usize = 8;
/// Number of columns whose sums are computed at once.
const COLUMNS: usize = 1024;

/// Storage order of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `[rows of A, columns of B]`.
    RowMajor,
    /// `[columns of B, rows of A]`.
    ColumnMajor,
}

/// out = a times b plus bias, one for each column of B (the bias is rounded to bf16). All of B is
/// packed once.
///
/// # Panics
/// If shapes do not fit, or if the CPU lacks this instruction.
pub fn product_by_rows<T: Stored<bf16>>(
    with: Instruction,
    out: &mut [T],
    a: &impl Source,
    b: &impl Source,
    bias: Option<&[f32]>,
    order: Order,
) {
    assert_eq!(a.depth(), b.depth(), "depths of a product");
    assert!(with == Instruction::Avx512 || amx::available(), "this CPU has no AMX");
    assert!(avx512::available(), "this CPU has no AVX512-BF16");
    let (m, n) = (a.lanes(), b.lanes());
    assert_eq!(out.len(), m * n, "an output has rows x columns values");
    if out.is_empty() {
        return;
    }
    let steps = a.depth().div_ceil(STEP);
    let bias = bias.map(|bias| {
        let mut rounded = vec![0f32; n];
        crate::simd::through_bf16(&mut rounded, bias);
        rounded
    });
    let panel = steps * 2 * TILE;
    let mut packed = room::<u16>(n.div_ceil(PANEL) * panel);
    packed.par_chunks_mut(panel.max(1)).enumerate().for_each(|(i, to)| {
        // SAFETY: the instruction set was checked above.
        unsafe { b.pack(to, i * PANEL, 0..steps, false) }
    });
    let task_rows = (m / TASKS).next_multiple_of(PANEL).clamp(PANEL, ROWS);
    let width = n.min(COLUMNS).next_multiple_of(PANEL);
    let tasks: Vec<(usize, usize)> =
        (0..m).step_by(task_rows).flat_map(|row| (0..n).step_by(width).map(move |j| (row, j))).collect();
    let shared = Shared(out.as_mut_ptr());
    let rooms = || (room::<u16>(task_rows * CHUNK * STEP), room::<f32>(task_rows * width), Vec::new());
    tasks.into_par_iter().for_each_init(rooms, |(packed_a, sums, turned), (row, column)| {
        let (rows, columns) = (task_rows.min(m - row), width.min(n - column));
        let stride = columns.next_multiple_of(PANEL);
        let sums = &mut sums[..rows.next_multiple_of(PANEL) * stride];
        let b = &packed[column / PANEL * panel..][..stride / PANEL * panel];
        multiply(with, sums, stride, (a, row), packed_a, b);
        if let Some(bias) = &bias {
            for sums in sums.chunks_exact_mut(stride) {
                sums.iter_mut().zip(&bias[column..column + columns]).for_each(|(sum, bias)| *sum += bias);
            }
        }
        // SAFETY: tasks cover disjoint rows and columns of `out`, which outlives them.
        let place = |first: usize, n: usize| unsafe { std::slice::from_raw_parts_mut(shared.at(first), n) };
        if order == Order::RowMajor {
            for (i, sums) in sums.chunks_exact(stride).take(rows).enumerate() {
                T::store(place((row + i) * n + column, columns), &sums[..columns]);
            }
        } else {
            turned.resize(rows * columns, 0.0);
            Matrix::rows(sums, rows, columns, stride).pack(turned, rows, 0, 0..columns);
            for (j, sums) in turned.chunks_exact(rows).enumerate() {
                T::store(place((column + j) * m + row, rows), sums);
            }
        }
    });
}

/// sums `[rows, stride]` = rows of a, from `row` on, times packed b.
fn multiply(
    with: Instruction,
    sums: &mut [f32],
    stride: usize,
    (a, row): (&impl Source, usize),
    packed: &mut [u16],
    b: &[u16],
) {
    let steps = a.depth().div_ceil(STEP);
    if steps == 0 {
        sums.fill(0.0);
        return;
    }
    let panels = sums.len() / stride / PANEL;
    let _tiles = (with == Instruction::Amx).then(amx::Tiles::configure);
    for first in (0..steps).step_by(CHUNK) {
        let chunk = first..steps.min(first + CHUNK);
        let size = chunk.len() * 2 * TILE;
        for (i, to) in packed.chunks_exact_mut(size).take(panels).enumerate() {
            // SAFETY: the caller checked the instruction set.
            unsafe { a.pack(to, row + i * PANEL, chunk.clone(), true) };
        }
        for (i, a) in packed.chunks_exact(size).take(panels).enumerate() {
            for (j, b) in b.chunks_exact(steps * 2 * TILE).enumerate() {
                let block = &mut sums[i * PANEL * stride + j * PANEL..];
                let b = &b[first * 2 * TILE..][..size];
                // SAFETY: the caller checked the instruction set; panels are whole, and a block is
                // PANEL x PANEL.
                unsafe {
                    match with {
                        Instruction::Amx => amx::block(block, stride, a, b, first > 0),
                        Instruction::Avx512 => avx512::block(block, stride, a, b, first > 0, PANEL),
                        Instruction::Emulated => unreachable!("its operands are not packed so"),
                    }
                }
            }
        }
    }
}
