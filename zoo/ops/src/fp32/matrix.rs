//! Matrices in memory as sides of a product.

use std::ops::Range;

use super::Source;

/// Values with a stride from lane to lane and one along the depth: rows of A, or columns of B.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    values: &'a [f32],
    lanes: usize,
    depth: usize,
    /// Elements from lane to lane, and from one place of the depth to the next.
    steps: (usize, usize),
}

impl<'a> Matrix<'a> {
    /// The rows of a row-major matrix `[lanes, depth]`, `stride` elements from row to row.
    ///
    /// # Panics
    /// If the values end before the last row.
    pub fn rows(values: &'a [f32], lanes: usize, depth: usize, stride: usize) -> Self {
        Self { values, lanes, depth, steps: (stride, 1) }.checked()
    }

    /// The columns of a row-major matrix `[depth, lanes]`, `stride` elements from row to row.
    ///
    /// # Panics
    /// If the values end before the last row.
    pub fn columns(values: &'a [f32], depth: usize, lanes: usize, stride: usize) -> Self {
        Self { values, lanes, depth, steps: (1, stride) }.checked()
    }

    fn checked(self) -> Self {
        let last = |n: usize, step: usize| n.saturating_sub(1) * step;
        let empty = self.lanes == 0 || self.depth == 0;
        let reach = last(self.lanes, self.steps.0) + last(self.depth, self.steps.1);
        assert!(empty || reach < self.values.len(), "a side of a product reaches beyond its values");
        self
    }
}

impl Source for Matrix<'_> {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn pack(&self, to: &mut [f32], width: usize, first: usize, depth: Range<usize>) {
        let lanes = width.min(self.lanes - first);
        let values = &self.values[first * self.steps.0 + depth.start * self.steps.1..];
        let (from_lane, along) = self.steps;
        assert!(to.len() >= width * depth.len());
        // SAFETY: `level` has checked the CPU; `checked` ensures that the values reach to the last
        // lane at the last depth.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            use super::{Level, avx2, avx512};
            match (super::level(), from_lane) {
                (Level::V4, 1) => {
                    return avx512::pack_across(to, width, values, along, lanes, depth.len());
                }
                (Level::V4, _) => {
                    return avx512::pack_along(to, width, values, from_lane, lanes, depth.len());
                }
                (Level::V3, 1) if avx2::packs(width) => {
                    return avx2::pack_across(to, width, values, along, lanes, depth.len());
                }
                (Level::V3, _) if avx2::packs(width) => {
                    return avx2::pack_along(to, width, values, from_lane, lanes, depth.len());
                }
                _ => {}
            }
        }
        for (i, to) in to.chunks_exact_mut(width).take(depth.len()).enumerate() {
            for (lane, to) in to.iter_mut().enumerate() {
                *to = if lane < lanes { values[lane * from_lane + i * along] } else { 0.0 };
            }
        }
    }
}
