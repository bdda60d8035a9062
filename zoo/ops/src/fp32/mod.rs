//! Matrix products in FP32. Packing reads any source of a matrix: another layout, or the patches of
//! an image.
//!
//! The sum of an element runs over the depth in blocks of a fixed size and in a fixed order. It
//! depends neither on the other rows and columns nor on the number of threads. Each block is summed
//! from zero and added to the blocks before it, which keeps the error of long sums low.
//!
//! The side with fewer lanes (rows of A, columns of B) is packed once. Strips of the other side are
//! packed by the task that multiplies them, and stay in its caches.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
mod matrix;

use std::ops::Range;

use rayon::prelude::*;

use super::host::room;
use super::simd::{Level, level};

pub use matrix::Matrix;

/// Depth that is summed in registers at once: a panel of B of this depth stays in the first-level
/// cache.
const BLOCK: usize = 256;
/// Number of lanes of a strip: at the depth of a block they stay in the second-level cache.
const STRIP: usize = 384;
/// Number of multiplications below which one thread does them all.
const ALONE: usize = 1 << 18;

/// One side of a product: rows of A, or columns of B, along a depth.
pub trait Source: Sync {
    /// Number of rows of A, or of columns of B.
    fn lanes(&self) -> usize;

    /// Number of terms of a sum.
    fn depth(&self) -> usize;

    /// Writes lanes `first..first + width` as `to[i * width + lane]`, where i counts the depth from
    /// the start of the range; zero beyond the last lane.
    fn pack(&self, to: &mut [f32], width: usize, first: usize, depth: Range<usize>);
}

/// Initial value of a product.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// Zero: the output is overwritten.
    Zero,
    /// One value for each column.
    Bias(&'a [f32]),
}

/// Instruction set of the products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

fn kernel() -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    match level() {
        Level::V4 => return Some(Kernel::Avx512),
        Level::V3 => return Some(Kernel::Avx2),
        Level::Base => {}
    }
    None
}

/// Whether this CPU has the instructions.
pub fn available() -> bool {
    kernel().is_some()
}

/// A tile of the output.
pub struct Tile<'a> {
    /// Its first element.
    pub to: *mut f32,
    /// Elements from row to row.
    pub stride: usize,
    /// Rows and columns inside the output; panels are zero beyond them.
    pub rows: usize,
    pub columns: usize,
    /// Whether to add to the output.
    pub add: bool,
    /// Added to every row, unless empty.
    pub bias: &'a [f32],
}

impl Kernel {
    /// Number of columns of a tile.
    fn columns(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::COLUMNS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::COLUMNS,
        }
    }

    /// Number of rows of a tile for `of` rows of A: tiles of nearly equal size.
    fn rows(self, of: usize) -> usize {
        let most = match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::ROWS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::ROWS,
        };
        of.div_ceil(of.div_ceil(most).max(1)).max(1)
    }

    /// Multiplies two panels.
    ///
    /// # Safety
    /// The tile is inside the output, and no other task touches it.
    #[inline]
    unsafe fn multiply(self, width: usize, tile: &Tile, a: &[f32], b: &[f32]) {
        debug_assert!(a.len() / width == b.len() / self.columns() && tile.rows <= width);
        // SAFETY: the caller guarantees the requirements; `kernel` checked the CPU.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Self::Avx512 => avx512::multiply(width, tile, a, b),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => avx2::multiply(width, tile, a, b),
            }
        }
    }
}

/// One side, packed: blocks of the depth, each with panels of `width` lanes.
#[derive(Debug, Clone)]
pub struct Packed {
    values: Vec<f32>,
    lanes: usize,
    depth: usize,
    width: usize,
}

impl Packed {
    /// The columns of B, for several products.
    ///
    /// # Panics
    /// If the CPU lacks the instructions.
    pub fn columns(b: &impl Source) -> Self {
        Self::new(b, kernel().expect("a CPU that was asked").columns(), true)
    }

    /// The rows of A, packed on this thread, for products with parts of B.
    ///
    /// # Panics
    /// If the CPU lacks the instructions.
    pub fn rows(a: &impl Source) -> Self {
        Self::new(a, kernel().expect("a CPU that was asked").rows(a.lanes()), false)
    }

    /// Number of rows of A, or of columns of B.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    fn new(source: &impl Source, width: usize, parallel: bool) -> Self {
        let (lanes, depth) = (source.lanes(), source.depth());
        let padded = lanes.next_multiple_of(width);
        let mut values = room(padded * depth);
        let pack = |(block, to): (usize, &mut [f32])| {
            let depth = block * BLOCK..depth.min((block + 1) * BLOCK);
            pack_strip(source, to, width, 0, depth);
        };
        let block = (padded * BLOCK).max(1);
        match parallel && values.len() > ALONE {
            true => values.par_chunks_mut(block).enumerate().for_each(pack),
            false => values.chunks_mut(block).enumerate().for_each(pack),
        }
        Self { values, lanes, depth, width }
    }

    /// The panels of a block that contain `lanes`; the range starts at a panel's start.
    fn panels(&self, block: usize, lanes: &Range<usize>) -> &[f32] {
        let depth = BLOCK.min(self.depth - block * BLOCK);
        let values = &self.values[block * BLOCK * self.lanes.next_multiple_of(self.width)..];
        &values[lanes.start * depth..][..lanes.len().next_multiple_of(self.width) * depth]
    }
}

/// Packs panels from lane `first` on, as many as fit in `to`.
fn pack_strip(source: &impl Source, to: &mut [f32], width: usize, first: usize, depth: Range<usize>) {
    for (i, to) in to.chunks_exact_mut(width * depth.len()).enumerate() {
        source.pack(to, width, first + i * width, depth.clone());
    }
}

/// A side that is packed, or will be packed strip by strip.
enum Side<'a, S> {
    Packed(&'a Packed),
    Source(&'a S),
}

impl<'p, S: Source> Side<'p, S> {
    /// The panels of a strip, in `room` if they have to be packed.
    fn panels<'r>(&self, room: &'r mut [f32], width: usize, block: usize, lanes: &Range<usize>) -> &'r [f32]
    where
        'p: 'r,
    {
        match self {
            Self::Packed(packed) => packed.panels(block, lanes),
            Self::Source(source) => {
                let depth = block * BLOCK..source.depth().min((block + 1) * BLOCK);
                let panels = &mut room[..lanes.len().next_multiple_of(width) * depth.len()];
                pack_strip(*source, panels, width, lanes.start, depth);
                panels
            }
        }
    }
}

/// out `[m, n]` = start + a `[m, k]` times b `[k, n]`, row-major, on all threads.
///
/// # Panics
/// If shapes do not fit, or if the CPU lacks the instructions.
pub fn product(out: &mut [f32], a: &impl Source, b: &impl Source, start: Start) {
    let kernel = kernel().expect("a CPU that was asked");
    assert_eq!(a.depth(), b.depth(), "depths of a product");
    let threads = threads(out.len(), a.depth());
    let rows = kernel.rows(a.lanes());
    if b.lanes() >= a.lanes() {
        let a = Packed::new(a, rows, threads > 1);
        by_columns(kernel, out, &a, b, start, threads);
    } else {
        let b = Packed::new(b, kernel.columns(), threads > 1);
        by_rows(kernel, out, a, rows, &b, start, threads);
    }
}

/// Number of threads to use.
fn threads(elements: usize, depth: usize) -> usize {
    if elements.saturating_mul(depth) < ALONE { 1 } else { rayon::current_num_threads() }
}

/// out `[m, columns]` = start + a times these columns of b, on this thread: for tasks that process
/// the product further.
///
/// # Panics
/// If shapes do not fit, or if the columns do not start at a tile, a multiple of 32.
pub fn product_strip(out: &mut [f32], a: &Packed, b: &Packed, columns: Range<usize>, start: Start) {
    let kernel = kernel().expect("a CPU that was asked");
    assert_eq!(a.depth, b.depth, "depths of a product");
    assert_eq!(b.width, kernel.columns(), "columns of B are packed by `Packed::columns`");
    assert!(columns.start.is_multiple_of(b.width) && columns.end <= b.lanes, "a strip of whole tiles");
    let output = Output::new(out, a.lanes, columns.len(), start);
    if a.depth == 0 {
        return output.fill();
    }
    strip_of_columns::<Matrix>(kernel, &output, 0, a, &Side::Packed(b), columns);
}

/// Like [`product`], with the columns packed once for any sizes, and the rows packed by the tasks:
/// for rows that share their values, such as the patches of an image.
pub fn product_by_rows(out: &mut [f32], a: &impl Source, b: &impl Source, start: Start) {
    let threads = threads(out.len(), a.depth());
    let kernel = kernel().expect("a CPU that was asked");
    assert_eq!(a.depth(), b.depth(), "depths of a product");
    let b = Packed::new(b, kernel.columns(), threads > 1);
    by_rows(kernel, out, a, kernel.rows(a.lanes()), &b, start, threads);
}

/// The output, which all tasks write in disjoint places.
struct Output<'a> {
    first: *mut f32,
    rows: usize,
    columns: usize,
    start: Start<'a>,
}
// SAFETY: tasks write tiles of disjoint strips.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    fn new(out: &'a mut [f32], rows: usize, columns: usize, start: Start<'a>) -> Self {
        assert_eq!(out.len(), rows * columns, "an output has rows x columns values");
        if let Start::Bias(bias) = start {
            assert_eq!(bias.len(), columns, "one bias for each column");
        }
        Self { first: out.as_mut_ptr(), rows, columns, start }
    }

    /// The tile at a row and a column, for a block of the depth.
    fn tile(&self, row: usize, column: usize, most: (usize, usize), block: usize) -> Tile<'_> {
        let columns = most.1.min(self.columns - column);
        let bias = match self.start {
            Start::Bias(bias) if block == 0 => &bias[column..column + columns],
            _ => &[],
        };
        Tile {
            to: self.first.wrapping_add(row * self.columns + column),
            stride: self.columns,
            rows: most.0.min(self.rows - row),
            columns,
            add: block > 0,
            bias,
        }
    }

    /// Writes the start value, for a product of depth 0.
    fn fill(&self) {
        for row in 0..self.rows {
            // SAFETY: the slice is a row of the output.
            let row =
                unsafe { std::slice::from_raw_parts_mut(self.first.add(row * self.columns), self.columns) };
            match self.start {
                Start::Zero => row.fill(0.0),
                Start::Bias(bias) => row.copy_from_slice(bias),
            }
        }
    }
}

/// Calls a task for each strip of lanes.
fn strips(lanes: usize, width: usize, threads: usize, task: impl Fn(Range<usize>) + Sync) {
    let count = threads * lanes.div_ceil(threads * STRIP);
    let strip = lanes.div_ceil(count.max(1)).next_multiple_of(width);
    let strip = |i: usize| i * strip..lanes.min((i + 1) * strip);
    let count = (0..count).take_while(|&i| !strip(i).is_empty()).count();
    match threads {
        1 => (0..count).for_each(|i| task(strip(i))),
        _ => (0..count).into_par_iter().for_each(|i| task(strip(i))),
    }
}

fn by_columns(kernel: Kernel, out: &mut [f32], a: &Packed, b: &impl Source, start: Start, threads: usize) {
    let output = Output::new(out, a.lanes, b.lanes(), start);
    if a.depth == 0 {
        return output.fill();
    }
    strips(output.columns, kernel.columns(), threads, |strip| {
        strip_of_columns(kernel, &output, strip.start, a, &Side::Source(b), strip);
    });
}

/// Computes the columns `strip` of B, and writes them to the output's columns from `first` on. No
/// other task touches these columns.
fn strip_of_columns<B: Source>(
    kernel: Kernel,
    output: &Output,
    first: usize,
    a: &Packed,
    b: &Side<B>,
    strip: Range<usize>,
) {
    let (rows, columns) = (a.width, kernel.columns());
    // This number of panels of A stays in the second-level cache while the whole strip is
    // processed.
    let panels = STRIP.div_ceil(rows);
    let mut packing = packing_room(b, strip.len().next_multiple_of(columns) * BLOCK.min(a.depth));
    for block in 0..a.depth.div_ceil(BLOCK) {
        let depth = BLOCK.min(a.depth - block * BLOCK);
        let b = b.panels(&mut packing, columns, block, &strip);
        let a = a.panels(block, &(0..output.rows));
        for (part, a) in a.chunks(panels * rows * depth).enumerate() {
            for (j, b) in b.chunks_exact(columns * depth).enumerate() {
                for (i, a) in a.chunks_exact(rows * depth).enumerate() {
                    let row = (part * panels + i) * rows;
                    let tile = output.tile(row, first + j * columns, (rows, columns), block);
                    // SAFETY: the strip belongs to this task.
                    unsafe { kernel.multiply(rows, &tile, a, b) };
                }
            }
        }
    }
}

fn by_rows(
    kernel: Kernel,
    out: &mut [f32],
    a: &impl Source,
    rows: usize,
    b: &Packed,
    start: Start,
    threads: usize,
) {
    let output = Output::new(out, a.lanes(), b.lanes, start);
    if b.depth == 0 {
        return output.fill();
    }
    let columns = b.width;
    strips(output.rows, rows, threads, |strip| {
        let mut packing = room(strip.len().next_multiple_of(rows) * BLOCK.min(b.depth));
        for block in 0..b.depth.div_ceil(BLOCK) {
            let depth = BLOCK.min(b.depth - block * BLOCK);
            let a = Side::Source(a).panels(&mut packing, rows, block, &strip);
            let b = b.panels(block, &(0..output.columns));
            for (j, b) in b.chunks_exact(columns * depth).enumerate() {
                for (i, a) in a.chunks_exact(rows * depth).enumerate() {
                    let tile = output.tile(strip.start + i * rows, j * columns, (rows, columns), block);
                    // SAFETY: the strip belongs to this task.
                    unsafe { kernel.multiply(rows, &tile, a, b) };
                }
            }
        }
    });
}

fn packing_room<S>(side: &Side<S>, values: usize) -> Vec<f32> {
    match side {
        Side::Packed(_) => Vec::new(),
        Side::Source(_) => room(values),
    }
}

#[cfg(test)]
mod tests;
