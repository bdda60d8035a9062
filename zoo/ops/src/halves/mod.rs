//! Matrix products of half operands with f32 sums. bf16 products use the CPU's instruction for
//! them, if there is one. Without it, and for fp16, products are computed in FP32 vectors.
//!
//! Operands are rounded to bf16 while they are packed. Sums are f32 and are rounded once at the
//! end, as on a GPU. The sum of an element runs over the depth in a fixed order: it depends neither
//! on the other rows nor on the number of threads.
//!
//! Packed operands are tiles of 16 lanes (rows of A, columns of B) by 32 of the depth, 1 KiB each,
//! with two lanes of tiles to a panel. AMX multiplies a panel at once; `vdpbf16ps` processes it in
//! order.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod emulated;
#[cfg(target_arch = "x86_64")]
mod gathered;
#[cfg(target_arch = "x86_64")]
mod pack;

use std::ops::Range;

use burn::tensor::{bf16, f16};
use rayon::prelude::*;

use super::host::room;
use super::rounding::HalfType;

#[cfg(target_arch = "x86_64")]
pub use gathered::{Order, Source, product_by_rows};
#[cfg(target_arch = "x86_64")]
pub use pack::interleaved;

pub use emulated::{product as product_in_vectors, rounded};

/// Instruction for the products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// AMX: tiles of 16 x 32.
    Amx,
    /// AVX512-BF16: `vdpbf16ps`.
    Avx512,
    /// No bf16 instruction: rounded operands in FP32 vectors.
    Emulated,
}

impl Instruction {
    /// The best method on this CPU; `None` if this module does not support the CPU.
    pub fn best() -> Option<Self> {
        instruction().or(super::fp32::available().then_some(Self::Emulated))
    }
}

/// The fastest bf16 instruction of this CPU; `None` without one.
pub fn instruction() -> Option<Instruction> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::sync::OnceLock;
        static INSTRUCTION: OnceLock<Option<Instruction>> = OnceLock::new();
        *INSTRUCTION.get_or_init(|| match (avx512::available(), amx::available()) {
            (true, true) => Some(Instruction::Amx),
            (true, false) => Some(Instruction::Avx512),
            (false, _) => None,
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Row-major values of any supported type.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Rounded to bf16 when they are packed.
    F32(&'a [f32]),
    /// Used without conversion.
    Bf16(&'a [bf16]),
    /// Used without conversion; only for products in FP32 vectors.
    Fp16(&'a [f16]),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(values) => values.len(),
            Self::Fp16(values) => values.len(),
        }
    }
}

/// A matrix, or the transpose of one.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    values: Values<'a>,
    /// Number of columns of the matrix in memory.
    stride: usize,
    transposed: bool,
    rows: usize,
    columns: usize,
}

impl<'a> Operand<'a> {
    /// A row-major matrix.
    ///
    /// # Panics
    /// If the number of values is not rows x columns.
    pub fn new(values: Values<'a>, rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "an operand has rows x columns values");
        Self { values, stride: columns, transposed: false, rows, columns }
    }

    /// The first columns of a row-major matrix, `stride` elements from row to row.
    ///
    /// # Panics
    /// If the values end before the last row.
    pub fn part(values: Values<'a>, rows: usize, columns: usize, stride: usize) -> Self {
        let whole = rows.saturating_sub(1) * stride + columns;
        assert!(columns <= stride && (rows == 0 || whole <= values.len()), "an operand beyond its values");
        Self { values, stride, transposed: false, rows, columns }
    }

    /// The transposed matrix.
    pub fn transpose(self) -> Self {
        Self { transposed: !self.transposed, rows: self.columns, columns: self.rows, ..self }
    }
}

/// Number of lanes of a panel.
pub const PANEL: usize = 32;
/// Depth of a tile.
pub const STEP: usize = 32;
/// Number of 16-bit values of a tile.
pub const TILE: usize = 16 * STEP;
/// Maximum number of rows of A that a task packs.
const TASK_ROWS: usize = 128;
/// Number of tasks that gives every thread its share.
const TASKS: usize = 8;
/// Number of columns whose sums are computed at once.
const TASK_COLUMNS: usize = 512;
/// Number of steps of the depth that are multiplied before the next columns: panels of this depth
/// stay in the first caches.
const DEPTH_STEPS: usize = 32;

/// Result type of a product that is rounded to a half type: that type, or FP32.
pub trait Stored<H: HalfType>: bytemuck::Pod + Send + Sync {
    /// Rounds a row of sums.
    fn store(to: &mut [Self], from: &[f32]);
}

impl<H: HalfType> Stored<H> for H {
    fn store(to: &mut [Self], from: &[f32]) {
        H::narrow(to, from);
    }
}

impl<H: HalfType> Stored<H> for f32 {
    fn store(to: &mut [Self], from: &[f32]) {
        H::through(to, from);
    }
}

/// a `[m, k]` times b `[k, n]`, plus bias `[n]` in every row (the bias is rounded to bf16):
/// `[m, n]`, row-major.
///
/// # Panics
/// If depths differ, or if the CPU lacks this instruction.
#[cfg(target_arch = "x86_64")]
pub fn product<T: Stored<bf16>>(with: Instruction, a: Operand, b: Operand, bias: Option<&[f32]>) -> Vec<T> {
    assert_eq!(a.columns, b.rows, "depths of a product");
    if with == Instruction::Emulated {
        return emulated::product::<bf16, T>(a, b, bias);
    }
    assert!(with == Instruction::Avx512 || amx::available(), "this CPU has no AMX");
    assert!(avx512::available(), "this CPU has no AVX512-BF16");
    let (m, n, k) = (a.rows, b.columns, a.columns);
    let steps = k.div_ceil(STEP);
    let mut out = room(m * n);
    if out.is_empty() {
        return out;
    }
    let bias = bias.map(|bias| {
        assert_eq!(bias.len(), n, "one bias for each column");
        let mut rounded = vec![0f32; n];
        super::simd::through_bf16(&mut rounded, bias);
        rounded
    });
    let panel = steps * 2 * TILE;
    let mut packed_b = room::<u16>(n.div_ceil(PANEL) * panel);
    packed_b.par_chunks_mut(panel.max(1)).enumerate().for_each(|(i, to)| {
        // SAFETY: the instruction set was checked above.
        unsafe { pack::columns(to, &b, i * PANEL) }
    });

    // With few rows, tasks are smaller and columns are also cut. Cuts do not change the order of
    // any sum.
    let task_rows = (m / TASKS).next_multiple_of(PANEL).clamp(PANEL, TASK_ROWS);
    let columns = if m.div_ceil(task_rows) >= TASKS { n.next_multiple_of(PANEL) } else { TASK_COLUMNS };
    let tasks: Vec<(usize, usize)> =
        (0..m).step_by(task_rows).flat_map(|i| (0..n).step_by(columns).map(move |j| (i, j))).collect();
    let shared = Shared(out.as_mut_ptr());
    let width = columns.min(TASK_COLUMNS).min(n.next_multiple_of(PANEL));
    let room = || (room::<u16>(task_rows / PANEL * panel), room::<f32>(task_rows * width));
    tasks.into_par_iter().for_each_init(room, |(packed_a, sums), (row, column)| {
        let rows = task_rows.min(m - row);
        let panels = rows.div_ceil(PANEL);
        let packed_a = &mut packed_a[..panels * panel];
        for (i, to) in packed_a.chunks_mut(panel.max(1)).enumerate() {
            // SAFETY: as above.
            unsafe { pack::rows(to, &a, row + i * PANEL) }
        }
        let end = n.min(column + columns);
        for from in (column..end).step_by(TASK_COLUMNS) {
            let width = TASK_COLUMNS.min(end - from);
            let stride = width.next_multiple_of(PANEL);
            let sums = &mut sums[..panels * PANEL * stride];
            let b = &packed_b[from / PANEL * panel..][..stride / PANEL * panel];
            multiply(with, sums, stride, packed_a, b, steps, rows);
            for (i, sums) in sums.chunks_exact_mut(stride).take(rows).enumerate() {
                let sums = &mut sums[..width];
                if let Some(bias) = &bias {
                    sums.iter_mut().zip(&bias[from..]).for_each(|(sum, bias)| *sum += bias);
                }
                // SAFETY: tasks cover disjoint rows and columns of `out`, which outlives them.
                let to = unsafe { std::slice::from_raw_parts_mut(shared.at((row + i) * n + from), width) };
                T::store(to, sums);
            }
        }
    });
    out
}

/// Product on architectures without a bf16 instruction.
#[cfg(not(target_arch = "x86_64"))]
pub fn product<T: Stored<bf16>>(_: Instruction, a: Operand, b: Operand, bias: Option<&[f32]>) -> Vec<T> {
    emulated::product::<bf16, T>(a, b, bias)
}

/// One side, packed for several products.
#[derive(Debug, Clone)]
pub struct Packed {
    values: Vec<u16>,
    lanes: usize,
    steps: usize,
}

#[cfg(target_arch = "x86_64")]
impl Packed {
    /// Packs the rows of A, on this thread.
    ///
    /// # Panics
    /// If the CPU lacks the instructions.
    pub fn rows(a: &Operand) -> Self {
        assert!(avx512::available(), "this CPU has no AVX512-BF16");
        let steps = a.columns.div_ceil(STEP);
        let mut values = room::<u16>(a.rows.div_ceil(PANEL) * steps * 2 * TILE);
        for (i, to) in values.chunks_mut((steps * 2 * TILE).max(1)).enumerate() {
            // SAFETY: the assertion above checks the CPU.
            unsafe { pack::rows(to, a, i * PANEL) }
        }
        Self { values, lanes: a.rows, steps }
    }

    /// Packs the columns of B.
    ///
    /// # Panics
    /// If the CPU lacks the instructions.
    pub fn columns(b: &Operand) -> Self {
        assert!(avx512::available(), "this CPU has no AVX512-BF16");
        let steps = b.rows.div_ceil(STEP);
        let mut values = room::<u16>(b.columns.div_ceil(PANEL) * steps * 2 * TILE);
        values.par_chunks_mut((steps * 2 * TILE).max(1)).enumerate().for_each(|(i, to)| {
            // SAFETY: the assertion above checks the CPU.
            unsafe { pack::columns(to, b, i * PANEL) }
        });
        Self { values, lanes: b.columns, steps }
    }
}

/// Sums of a times these columns of b, not rounded, on this thread:
/// `[rows, columns up to a multiple of 32]`.
///
/// # Panics
/// If depths differ, or if the columns do not start at a multiple of 32.
#[cfg(target_arch = "x86_64")]
pub fn product_strip(with: Instruction, a: &Packed, b: &Packed, columns: Range<usize>) -> Vec<f32> {
    assert_eq!(a.steps, b.steps, "depths of a product");
    assert!(columns.start.is_multiple_of(PANEL) && columns.end <= b.lanes, "a strip of whole tiles");
    assert!(with == Instruction::Avx512 || amx::available(), "this CPU has no AMX");
    let (stride, panel) = (columns.len().next_multiple_of(PANEL), a.steps * 2 * TILE);
    let mut sums = room(a.lanes.next_multiple_of(PANEL) * stride);
    let b = &b.values[columns.start / PANEL * panel..][..stride / PANEL * panel];
    multiply(with, &mut sums, stride, &a.values, b, a.steps, a.lanes);
    sums.truncate(a.lanes * stride);
    sums
}

#[cfg(not(target_arch = "x86_64"))]
impl Packed {
    /// Never called, because `instruction` returns `None`.
    pub fn rows(_: &Operand) -> Self {
        unreachable!("no instruction for bf16 products on this architecture")
    }

    /// Never called, because `instruction` returns `None`.
    pub fn columns(_: &Operand) -> Self {
        unreachable!("no instruction for bf16 products on this architecture")
    }
}

/// Never called, because `instruction` returns `None`.
#[cfg(not(target_arch = "x86_64"))]
pub fn product_strip(_: Instruction, _: &Packed, _: &Packed, _: Range<usize>) -> Vec<f32> {
    unreachable!("no instruction for bf16 products on this architecture")
}

/// The output, which all tasks write in disjoint places.
struct Shared<T>(*mut T);
// SAFETY: tasks write disjoint places; see the only use.
unsafe impl<T: Send> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn at(&self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

/// sums `[rows, stride]` = packed a times packed b. There is room for whole panels of rows. Rows
/// beyond `rows` keep their values or are overwritten.
#[cfg(target_arch = "x86_64")]
fn multiply(
    with: Instruction,
    sums: &mut [f32],
    stride: usize,
    a: &[u16],
    b: &[u16],
    steps: usize,
    rows: usize,
) {
    let panel = steps * 2 * TILE;
    if steps == 0 {
        sums.fill(0.0);
        return;
    }
    let _tiles = (with == Instruction::Amx).then(amx::Tiles::configure);
    for depth in (0..steps).step_by(DEPTH_STEPS) {
        let part = depth * 2 * TILE..steps.min(depth + DEPTH_STEPS) * 2 * TILE;
        for (i, a) in a.chunks_exact(panel).enumerate() {
            let rows = rows - i * PANEL;
            for (j, b) in b.chunks_exact(panel).enumerate() {
                let block = &mut sums[i * PANEL * stride + j * PANEL..];
                let (a, b) = (&a[part.clone()], &b[part.clone()]);
                // SAFETY: `product` checked the instruction set; panels are whole, and a block is
                // PANEL x PANEL.
                unsafe {
                    match with {
                        Instruction::Amx if rows <= PANEL / 2 => {
                            amx::half_block(block, stride, a, b, depth > 0);
                        }
                        Instruction::Amx => amx::block(block, stride, a, b, depth > 0),
                        Instruction::Avx512 => avx512::block(block, stride, a, b, depth > 0, rows),
                        Instruction::Emulated => unreachable!("its operands are not packed so"),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
