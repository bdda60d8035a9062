//! Convolution that reads rows of an image in place: no patch is ever packed.
//!
//! A tile is some neighbouring outputs of a row by 32 channels. Its sums run over the pieces of memory that its outputs see, tap by
//! tap, each output from a place of its own; they stay in registers for a block of the depth. Packing patches costs as much for
//! every tap as reading the image does once, which pays only where many output channels share them.

mod avx512;
mod fp32;
mod positions;

use std::ops::Range;

use super::geometry::{Axis, Shapes, Taps};
use super::patches::Image;
use crate::ops::simd::{Level, level};

pub use fp32::{forward, gradients};

/// Depth that is summed at once: weights of this depth stay in the first cache, and the error of long sums stays low.
const BLOCK: usize = 256;
/// Outputs of a row below which too few share the weights that a tile loads.
const NARROW: usize = 8;
/// Output channels that are enough to share packed patches.
const MANY: usize = 512;
/// Channels whose multiples put neighbouring positions into the same sets of the first cache.
const PAGE: usize = 1024;
/// Tiles that share weights while these are in the first cache; what they read stays in the second.
const BAND: usize = 32;

/// Is this the faster way? By the geometry and the CPU alone.
pub fn suits(shapes: &Shapes) -> bool {
    let [.., columns] = shapes.geometry.axes;
    let all = joined(shapes);
    let narrow = all.output[2].min(all.input[2] / columns.stride) < NARROW;
    let many = shapes.weight[0] / shapes.geometry.groups > MANY;
    let conflicts = shapes.input[3].is_multiple_of(PAGE) || shapes.output[3].is_multiple_of(PAGE);
    level() == Level::V4 && !narrow && !many && !conflicts
}

/// Of kernels of one tap that move by one, all positions are one row.
fn joined(shapes: &Shapes) -> Shapes {
    let plain = |axis: &Axis| axis.stride == 1 && axis.padding == [0, 0];
    if shapes.taps() > 1 || !shapes.geometry.axes.iter().all(plain) {
        return *shapes;
    }
    let row = |[.., channels]: [usize; 4]| [1, 1, shapes.positions(), channels];
    Shapes { input: row(shapes.input), output: row(shapes.output), ..*shapes }
}

/// These reads, of rows that are there: rows of zeros are left out of sums, and only columns need them.
fn columns_only(reads: [Taps; 2]) -> [Taps; 2] {
    let [rows, columns] = reads;
    [Taps { taps: Vec::new(), ..rows }, columns]
}

/// Values in a row that outputs sum over, each from its own place on.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// From an output's place to the first.
    offset: isize,
    /// Its depth: the place among the weights.
    depth: usize,
    len: usize,
}

/// A tile's outputs.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Where the first output's place is in the image, were all rows there.
    from: isize,
    /// Its first channel.
    to: usize,
    outputs: usize,
    /// The pieces that lie in rows that are there.
    first: usize,
    end: usize,
}

/// Where outputs go: elements from the first one to the next in a row, to the next row, to the next image.
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
    /// Pieces for each row of taps.
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
    /// Tiles of a row.
    tiles: usize,
}

impl Plan {
    /// `channels` of the image's are read by every tap; `most` outputs are a tile.
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
        // What sees nothing is written too.
        if blocks.is_empty() {
            blocks.push(0..0);
        }
        let tiles = columns.count.div_ceil(most);
        Self { pieces, of_row, blocks, depth, rows, columns, image: shape, before, layout, tiles }
    }

    /// All tiles.
    fn len(&self) -> usize {
        self.image[0] * self.rows.count * self.tiles
    }

    /// Tile i of all; outputs of a row are shared out evenly.
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

    /// What of a block a tile's outputs see, and whether it is the first that they sum; none where they see nothing of it.
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

/// Runs of adjacent values that a row of taps reads, and how long they are: the channels of a tap, or of all taps where these stand
/// side by side and read all channels.
fn runs(columns: &Taps, channels: usize, all: usize) -> Vec<(isize, usize)> {
    let offset = |tap: &(usize, isize)| tap.1 * all as isize;
    match columns.adjacent() && channels == all && !columns.taps.is_empty() {
        true => vec![(offset(&columns.taps[0]), channels * columns.taps.len())],
        false => columns.taps.iter().map(|tap| (offset(tap), channels)).collect(),
    }
}
