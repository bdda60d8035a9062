//! Distribution of a step over threads: each processes a range of units, for all sequences.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::weight::TILE;

/// Number of multiplications of a step below which one thread does them all.
const ALONE: usize = 1 << 18;

/// Runs a task for each thread's units if the step has enough multiplications, otherwise one task.
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

/// A row-major matrix whose columns are written by different tasks.
pub struct Shared<'a> {
    first: *mut f32,
    len: usize,
    width: usize,
    owner: PhantomData<&'a mut [f32]>,
}
// SAFETY: see `part`.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// A matrix with rows of this width.
    pub fn new(values: &'a mut [f32], width: usize) -> Self {
        Self { first: values.as_mut_ptr(), len: values.len(), width, owner: PhantomData }
    }

    /// Part of a row.
    ///
    /// # Safety
    /// No other code reads or writes these elements while the part is alive.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, row: usize, columns: Range<usize>) -> &mut [f32] {
        let start = row * self.width + columns.start;
        assert!(columns.end <= self.width && start + columns.len() <= self.len);
        // SAFETY: the part is inside the values, and the caller guarantees exclusive access.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(start), columns.len()) }
    }
}
