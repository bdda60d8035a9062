//! How a step is shared between threads: each takes some of the units, for all sequences.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::weight::TILE;

/// Multiplications of a step below which other threads are not worth waking.
const ALONE: usize = 1 << 18;

/// Runs a task for the units of each thread, where a step multiplies so much.
pub fn by_units(units: usize, multiplications: usize, task: impl Fn(Range<usize>) + Sync) {
    let threads = if multiplications < ALONE { 1 } else { rayon::current_num_threads() };
    let strip = units.div_ceil(threads).next_multiple_of(TILE);
    let strips = units.div_ceil(strip.max(1));
    let strip = |i: usize| i * strip..units.min((i + 1) * strip);
    match strips {
        0 | 1 => (0..strips).for_each(|i| task(strip(i))),
        _ => (0..strips).into_par_iter().for_each(|i| task(strip(i))),
    }
}

/// A row-major matrix that tasks write in unlike columns.
pub struct Shared<'a> {
    first: *mut f32,
    len: usize,
    width: usize,
    owner: PhantomData<&'a mut [f32]>,
}
// SAFETY: see `part`.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// Of rows of this width.
    pub fn new(values: &'a mut [f32], width: usize) -> Self {
        Self { first: values.as_mut_ptr(), len: values.len(), width, owner: PhantomData }
    }

    /// Part of a row.
    ///
    /// # Safety
    /// Nothing else reads or writes these elements while the part lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, row: usize, columns: Range<usize>) -> &mut [f32] {
        let start = row * self.width + columns.start;
        assert!(columns.end <= self.width && start + columns.len() <= self.len);
        // SAFETY: inside of the values; alone, as the caller says.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(start), columns.len()) }
    }
}
