//! Output positions in chunks, for sums over all of them.

use super::avx512::Segment;
use crate::convolution::geometry::{Shapes, Taps};
use crate::convolution::patches::Image;

/// Maximum number of positions of a chunk: a panel of their gradients stays in the first-level
/// cache.
pub const POSITIONS: usize = 256;

/// Rows of output positions, cut where they are longer than a chunk, and the values that they read
/// of an image.
pub struct Positions {
    pub rows: Taps,
    pub columns: Taps,
    /// Images, height, width (with zeros) and channels.
    image: [usize; 4],
    /// Zeros before a row.
    before: usize,
    /// Number of parts of a row.
    cuts: usize,
    /// Number of parts of a chunk.
    of_chunk: usize,
}

/// Part of a row of positions.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    image: usize,
    y: usize,
    x: usize,
    pub len: usize,
    /// Index of the first among all positions.
    pub position: usize,
}

impl Positions {
    /// Cuts the output positions into chunks.
    ///
    /// # Panics
    /// If the columns read outside the image.
    pub fn new<E: bytemuck::Pod + Send + Sync>(shapes: &Shapes, image: &Image<E>) -> Self {
        let [rows, columns] = shapes.reads();
        image.assert_columns(&columns);
        let cuts = columns.count.div_ceil(POSITIONS).max(1);
        let of_chunk = (POSITIONS / columns.count.div_ceil(cuts).max(1)).max(1);
        Self { rows, columns, image: image.shape, before: image.before[1], cuts, of_chunk }
    }

    /// Number of channels of the image.
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

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.parts().div_ceil(self.of_chunk)
    }

    /// Positions of chunk i; at least one part of a row.
    pub fn chunk(&self, i: usize) -> Vec<Row> {
        let part = |part: usize| {
            let (row, cut) = (part / self.cuts, part % self.cuts);
            let [x, end] = [cut, cut + 1].map(|cut| cut * self.columns.count / self.cuts);
            let (image, y) = (row / self.rows.count, row % self.rows.count);
            Row { image, y, x, len: end - x, position: row * self.columns.count + x }
        };
        (i * self.of_chunk..self.parts().min((i + 1) * self.of_chunk)).map(part).collect()
    }

    /// Writes to `segments` the positions of a chunk for which this row of taps is inside the
    /// image.
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
