//! Output positions in chunks, for sums over all of them.

use super::avx512::Segment;
use crate::ops::convolution::geometry::{Shapes, Taps};
use crate::ops::convolution::patches::Image;

/// Positions of a chunk, at most: a panel of their gradients stays in the first cache.
pub const POSITIONS: usize = 256;

/// Rows of output positions, cut where they are longer than a chunk, and what they read of an image.
pub struct Positions {
    pub rows: Taps,
    pub columns: Taps,
    /// Images, height, width (with zeros) and channels.
    image: [usize; 4],
    /// Zeros before a row.
    before: usize,
    /// Parts of a row.
    cuts: usize,
    /// Parts of a chunk.
    of_chunk: usize,
}

/// Part of a row of positions.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    image: usize,
    y: usize,
    x: usize,
    pub len: usize,
    /// Number of the first among all positions.
    pub position: usize,
}

impl Positions {
    /// # Panics
    /// If columns are read that are not there.
    pub fn new<E: bytemuck::Pod + Send + Sync>(shapes: &Shapes, image: &Image<E>) -> Self {
        let [rows, columns] = shapes.reads();
        image.assert_columns(&columns);
        let cuts = columns.count.div_ceil(POSITIONS).max(1);
        let of_chunk = (POSITIONS / columns.count.div_ceil(cuts).max(1)).max(1);
        Self { rows, columns, image: image.shape, before: image.before[1], cuts, of_chunk }
    }

    /// Channels of the image.
    pub fn channels(&self) -> usize {
        self.image[3]
    }

    /// Elements of the image from one position to the next.
    pub fn step(&self) -> usize {
        self.columns.step * self.image[3]
    }

    fn parts(&self) -> usize {
        if self.columns.count == 0 { 0 } else { self.image[0] * self.rows.count * self.cuts }
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.parts().div_ceil(self.of_chunk)
    }

    /// The positions of one, at least one part of a row.
    pub fn chunk(&self, i: usize) -> Vec<Row> {
        let part = |part: usize| {
            let (row, cut) = (part / self.cuts, part % self.cuts);
            let [x, end] = [cut, cut + 1].map(|cut| cut * self.columns.count / self.cuts);
            let (image, y) = (row / self.rows.count, row % self.rows.count);
            Row { image, y, x, len: end - x, position: row * self.columns.count + x }
        };
        (i * self.of_chunk..self.parts().min((i + 1) * self.of_chunk)).map(part).collect()
    }

    /// Those of a chunk that see something by this row of taps.
    pub fn seen(&self, chunk: &[Row], row: usize, segments: &mut Vec<Segment>) {
        let [_, tall, wide, channels] = self.image;
        let offset = self.rows.taps[row].1;
        segments.clear();
        segments.extend(chunk.iter().filter_map(|part| {
            let y = (part.y * self.rows.step) as isize + offset;
            (0..tall as isize).contains(&y).then(|| Segment {
                x: ((part.image * tall + y as usize) * wide + part.x * self.columns.step + self.before)
                    * channels,
                gradient: part.position - chunk[0].position,
                len: part.len,
            })
        }));
    }
}
