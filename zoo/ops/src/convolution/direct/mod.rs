//! Convolution that reads rows of an image in place, without packing patches.
//!
//! A tile is several neighbouring outputs of a row by 8 to 32 channels. Its sums run over the
//! pieces of memory that its outputs read, tap by tap; each output reads from its own place. The
//! sums stay in registers for a block of the depth. Packing patches costs as much for every tap as
//! reading the image does once, which pays only if many output channels share them.

mod avx512;
mod folded;
mod fp32;
mod panels;
mod positions;

use std::ops::Range;

use super::geometry::{Axis, Shapes, Taps};
use super::patches::Image;
use crate::simd::{Level, level};

pub use fp32::{forward, gradients};

/// Depth that is summed at once: weights of this depth stay in the first-level cache, and the error
/// of long sums stays low.
const BLOCK: usize = 256;
/// Number of outputs of a row below which too few share the weights that a tile loads.
const NARROW: usize = 8;
/// Number of output channels above which packed patches are shared enough.
const MANY: usize = 512;
/// If the number of channels is a multiple of this, neighbouring positions map to the same sets of
/// the first-level cache.
const PAGE: usize = 1024;
/// Number of tiles that share weights in the first-level cache; the values that they read stay in
/// the second-level cache.
const BAND: usize = 32;

/// Whether this is the faster algorithm. It depends on the geometry and the CPU alone.
pub fn suits(shapes: &Shapes) -> bool {
    let [.., columns] = shapes.geometry.axes;
    let all = joined(shapes);
    let narrow = all.output[2].min(all.input[2] / columns.stride) < NARROW;
    let many = shapes.weight[0] / shapes.geometry.groups > MANY;
    let conflicts = shapes.input[3].is_multiple_of(PAGE) || shapes.output[3].is_multiple_of(PAGE);
    level() == Level::V4 && !narrow && !many && !conflicts
}

/// For kernels of one tap with stride 1, merges all positions into one row.
fn joined(shapes: &Shapes) -> Shapes {
    let plain = |axis: &Axis| axis.stride == 1 && axis.padding == [0, 0];
    if shapes.taps() > 1 || !shapes.geometry.axes.iter().all(plain) {
        return *shapes;
    }
    let row = |[.., channels]: [usize; 4]| [1, 1, shapes.positions(), channels];
    Shapes { input: row(shapes.input), output: row(shapes.output), ..*shapes }
}

/// These reads without padding of rows: rows of zeros are left out of sums, so only columns need
/// zeros.
fn columns_only(reads: [Taps; 2]) -> [Taps; 2] {
    let [rows, columns] = reads;
    [Taps { taps: Vec::new(), ..rows }, columns]
}

/// Adjacent values that outputs sum over, each output from its own place.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Offset from an output's place to the first value.
    offset: isize,
    /// Depth of the first value: its index among the weights.
    depth: usize,
    len: usize,
}

/// Outputs of a tile.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Index in the image of the first output's place, as if all rows existed.
    from: isize,
    /// Index of the first output's first channel.
    to: usize,
    outputs: usize,
    /// The range of pieces in rows that exist.
    first: usize,
    end: usize,
}

/// Layout of outputs: elements from the first output to the next in a row, to the next row, to the
/// next image.
#[derive(Debug, Clone, Copy)]
struct Layout {
    first: usize,
    step: usize,
    row: usize,
    image: usize,
}

/// A convolution's reads as pieces, and its outputs as tiles.
struct Plan {
    pieces: Vec<Piece>,
    /// Number of pieces for each row of taps.
    of_row: usize,
    /// Pieces that are summed at once.
    blocks: Vec<Range<usize>>,
    depth: usize,
    rows: Taps,
    columns: Taps,
    /// Images, height, width (with zeros) and channels.
    image: [usize; 4],
    /// Zeros before a row.
    before: usize,
    layout: Layout,
    /// Number of tiles of a row.
    tiles: usize,
}

impl Plan {
    /// Plans a convolution in which every tap reads `channels` of the image's channels, with at
    /// most `most` outputs in a tile.
    fn new<E: bytemuck::Pod + Send + Sync>(
        reads: &[Taps; 2],
        image: &Image<E>,
        channels: usize,
        layout: Layout,
        most: usize,
    ) -> Self {
        let [rows, columns] = reads.clone();
        let (shape, before) = (image.shape, image.before[1]);
        image.assert_columns(&columns);
        let runs = runs(&columns, channels, shape[3]);
        let mut pieces = Vec::new();
        let mut depth = 0;
        for (_, y) in &rows.taps {
            for (offset, run) in &runs {
                for first in (0..*run).step_by(BLOCK) {
                    let len = BLOCK.min(run - first);
                    let offset = y * (shape[2] * shape[3]) as isize + offset + first as isize;
                    pieces.push(Piece { offset, depth, len });
                    depth += len;
                }
            }
        }
        let of_row = pieces.len() / rows.taps.len().max(1);
        let (mut blocks, mut sum): (Vec<Range<usize>>, _) = (Vec::new(), BLOCK);
        for (i, piece) in pieces.iter().enumerate() {
            if sum + piece.len > BLOCK {
                blocks.push(i..i + 1);
                sum = 0;
            }
            sum += piece.len;
            blocks.last_mut().expect("pushed").end = i + 1;
        }
        // Outputs that read nothing are also written.
        if blocks.is_empty() {
            blocks.push(0..0);
        }
        let tiles = columns.count.div_ceil(most);
        Self { pieces, of_row, blocks, depth, rows, columns, image: shape, before, layout, tiles }
    }

    /// Number of tiles.
    fn len(&self) -> usize {
        self.image[0] * self.rows.count * self.tiles
    }

    /// Tile i. The outputs of a row are distributed evenly over its tiles.
    fn place(&self, i: usize) -> Place {
        let [_, tall, wide, channels] = self.image;
        let (row, tile) = (i / self.tiles, i % self.tiles);
        let (image, y) = (row / self.rows.count, row % self.rows.count);
        let [x, end] = [tile, tile + 1].map(|tile| tile * self.columns.count / self.tiles);
        let line = image * tall + y * self.rows.step;
        let there = |(_, offset): &&(usize, isize)| {
            (0..tall as isize).contains(&((y * self.rows.step) as isize + offset))
        };
        let first = self.rows.taps.iter().take_while(|tap| !there(tap)).count();
        let taps = self.rows.taps[first..].iter().take_while(there).count();
        let Layout { first: to, step, row, image: of_image } = self.layout;
        Place {
            from: ((line * wide + x * self.columns.step + self.before) * channels) as isize,
            to: to + image * of_image + y * row + x * step,
            outputs: end - x,
            first: first * self.of_row,
            end: (first + taps) * self.of_row,
        }
    }

    /// The pieces of a block that a tile's outputs read, and whether it is the first block that
    /// they sum; `None` if they read nothing of it.
    fn part(&self, place: &Place, block: usize) -> Option<(&[Piece], bool)> {
        let of_block = &self.blocks[block];
        if place.first == place.end {
            return (block == 0).then_some((&[], true));
        }
        let pieces = of_block.start.max(place.first)..of_block.end.min(place.end);
        (!pieces.is_empty()).then(|| (&self.pieces[pieces], of_block.contains(&place.first)))
    }

    /// Tiles of each task, in order.
    fn bands(&self) -> Vec<Range<usize>> {
        let (all, threads) = (self.len(), rayon::current_num_threads());
        let count = threads * all.div_ceil(threads * BAND);
        let band = all.div_ceil(count.max(1)).max(1);
        (0..all).step_by(band).map(|first| first..all.min(first + band)).collect()
    }
}

/// Runs of adjacent values that a row of taps reads, and their length: the channels of a tap, or of
/// all taps if these are adjacent and read all channels.
fn runs(columns: &Taps, channels: usize, all: usize) -> Vec<(isize, usize)> {
    let offset = |tap: &(usize, isize)| tap.1 * all as isize;
    match columns.adjacent() && channels == all && !columns.taps.is_empty() {
        true => vec![(offset(&columns.taps[0]), channels * columns.taps.len())],
        false => columns.taps.iter().map(|tap| (offset(tap), channels)).collect(),
    }
}
