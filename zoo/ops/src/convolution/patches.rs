//! Matrices whose rows consist of runs of an array: the patches of an image, read in place.

use std::borrow::Cow;

use rayon::prelude::*;

use super::geometry::Taps;
use crate::host::room;

/// Images with channels last, with the zero padding that a convolution reads.
pub struct Image<'a, E: Clone> {
    values: Cow<'a, [E]>,
    /// Images, height, width and channels, including the padding.
    pub shape: [usize; 4],
    /// Zeros before the first row and column.
    pub before: [usize; 2],
}

impl<'a, E: bytemuck::Pod + Send + Sync> Image<'a, E> {
    /// Adds the zeros that all `reads` need. `whole` are the values, if available in this type;
    /// `read` fills a slice with the values from a given index on.
    pub fn new(
        shape: [usize; 4],
        reads: &[[Taps; 2]],
        whole: Option<&'a [E]>,
        read: impl Fn(usize, &mut [E]) + Sync,
    ) -> Self {
        let [images, height, width, channels] = shape;
        let most = |axis: usize, side: usize, size: usize| {
            reads.iter().map(|taps| taps[axis].zeros(size)[side]).max().unwrap_or(0)
        };
        let before = [most(0, 0, height), most(1, 0, width)];
        let (tall, wide) = (before[0] + height + most(0, 1, height), before[1] + width + most(1, 1, width));
        if let (Some(whole), true) = (whole, [tall, wide] == [height, width]) {
            return Self { values: Cow::Borrowed(whole), shape, before };
        }
        let mut values = room::<E>(images * tall * wide * channels);
        let row = (wide * channels).max(1);
        values.par_chunks_mut(row).enumerate().for_each(|(i, to)| {
            let (image, y) = (i / tall, (i % tall).wrapping_sub(before[0]));
            if y >= height {
                return to.fill(E::zeroed());
            }
            let (left, rest) = to.split_at_mut(before[1] * channels);
            let (middle, right) = rest.split_at_mut(width * channels);
            left.fill(E::zeroed());
            read((image * height + y) * width * channels, middle);
            right.fill(E::zeroed());
        });
        Self { values: Cow::Owned(values), shape: [images, tall, wide, channels], before }
    }

    /// All values, including zeros.
    pub fn values(&self) -> &[E] {
        &self.values
    }

    /// Checks that the column reads stay inside their row.
    ///
    /// # Panics
    /// If a read is outside its row.
    pub fn assert_columns(&self, columns: &Taps) {
        let (before, wide) = (self.before[1] as isize, self.shape[2] as isize);
        let last = (columns.count.saturating_sub(1) * columns.step) as isize;
        let inside = |(_, x): &(usize, isize)| before + x >= 0 && before + last + x < wide;
        assert!(self.before[0] == 0 && (columns.count == 0 || columns.taps.iter().all(inside)));
    }

    /// Starts of the patches at all positions, and the offsets of their taps.
    pub fn patches(&self, reads: &[Taps; 2]) -> Places {
        let [images, tall, wide, channels] = self.shape;
        let [rows, columns] = reads;
        let mut starts = Vec::with_capacity(images * rows.count * columns.count);
        for image in 0..images {
            for i in 0..rows.count {
                let row = (image * tall + i * rows.step) * wide;
                starts.extend((0..columns.count).map(|j| (row + j * columns.step) * channels));
            }
        }
        let place = |y: isize, x: isize| {
            let (y, x) = (y + self.before[0] as isize, x + self.before[1] as isize);
            (y as usize * wide + x as usize) * channels
        };
        let offsets = rows
            .taps
            .iter()
            .flat_map(|(_, y)| columns.taps.iter().map(move |(_, x)| place(*y, *x)))
            .collect();
        Places { starts, offsets, pixels: columns.taps.len(), adjacent: columns.adjacent() }
    }
}

/// Positions of patches in the values.
pub struct Places {
    /// Index of the first value for each position.
    pub starts: Vec<usize>,
    /// Offset from there to the first channel of each tap.
    pub offsets: Vec<usize>,
    /// Number of taps in a row of the kernel.
    pixels: usize,
    /// Whether the taps of a row read adjacent positions.
    adjacent: bool,
}

impl Places {
    /// Offsets of the runs, and their length: the channels of a tap, or of a row of the kernel if
    /// its taps are adjacent.
    pub fn runs(&self, channels: usize, all: bool) -> (Vec<usize>, usize) {
        match self.adjacent && all && self.pixels > 0 {
            true => (self.offsets.iter().copied().step_by(self.pixels).collect(), channels * self.pixels),
            false => (self.offsets.clone(), channels),
        }
    }
}

/// A matrix in which row i, column r * run + e is `values[starts[i] + runs[r] + e]`.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<'a, E> {
    pub values: &'a [E],
    pub starts: &'a [usize],
    pub runs: &'a [usize],
    pub run: usize,
}

impl<'a, E> Gathered<'a, E> {
    /// Builds the matrix.
    ///
    /// # Panics
    /// If a run ends outside the values.
    pub fn new(values: &'a [E], starts: &'a [usize], runs: &'a [usize], run: usize) -> Self {
        let last = |places: &[usize]| places.iter().max().copied();
        if let (Some(start), Some(offset)) = (last(starts), last(runs)) {
            assert!(start + offset + run <= values.len(), "a run reaches beyond the values");
        }
        Self { values, starts, runs, run }
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.runs.len() * self.run
    }

    /// The pieces of runs in the columns from `first` to `end`: the first column, its offset in a
    /// row, and the length.
    pub fn pieces(&self, first: usize, end: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let mut at = first;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (run, inside) = (at / self.run, at % self.run);
                let n = (self.run - inside).min(end - at);
                let piece = (at, self.runs[run] + inside, n);
                at += n;
                piece
            })
        })
    }
}

/// One side of a product.
#[derive(Debug, Clone, Copy)]
pub enum Side<'a, E> {
    /// Lanes are rows; the depth runs along them.
    Rows(Gathered<'a, E>),
    /// Lanes are columns.
    Columns(Gathered<'a, E>),
}
