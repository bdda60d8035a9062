//! Slices of a long sum. A GPU computes a tile of the values of a product in one place, so that few
//! values of many terms would occupy a fraction of it.

/// Parts of a tensor begin at multiples of this number of values or rows. Devices read from offsets of
/// at most 256 bytes: 128 numbers of a half type.
pub const STEP: usize = 128;

/// Number of rows of `row` bytes in a part of at most `most` bytes: a multiple of [`STEP`], at least
/// one.
pub fn rows_of_part(most: usize, row: usize) -> usize {
    (most / row.max(1) / STEP).max(1) * STEP
}

/// Slices of the terms of a product of two matrices. Their products are added in order, so that the
/// shape alone decides the order of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Number of equal slices.
    pub count: usize,
    /// Number of terms of each.
    pub size: usize,
    /// Number of terms of a last, shorter slice; 0 where there is none.
    pub rest: usize,
}

impl Slices {
    /// The slices of `[m, k]` times `[k, n]`; `None` where one product has work for a GPU, or too
    /// few terms to share.
    pub fn of(m: usize, k: usize, n: usize) -> Option<Self> {
        // About as many tiles as the multiprocessors of a large GPU.
        const TILES: usize = 128;
        const TILE: usize = 128;
        const LEAST: usize = 256;
        let tiles = m.div_ceil(TILE) * n.div_ceil(TILE);
        let count = (TILES / tiles.max(1)).min(k / LEAST).min(16);
        if count < 2 || k < 4 * LEAST {
            return None;
        }
        let size = k.div_ceil(count).next_multiple_of(STEP);
        Some(Self { count: k / size, size, rest: k % size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_few_values_of_many_terms_are_summed_in_slices() {
        let slices = |count, size, rest| Some(Slices { count, size, rest });
        // Gradients of transformer-base: attention, feed-forward, embedding.
        assert_eq!(Slices::of(512, 4096, 512), slices(8, 512, 0));
        assert_eq!(Slices::of(2048, 4096, 512), slices(2, 2048, 0));
        assert_eq!(Slices::of(32768, 4096, 512), None);
        // Its outputs, and one batch of a small model.
        assert_eq!(Slices::of(4096, 512, 512), None);
        assert_eq!(Slices::of(128, 700, 128), None);
        // Every term is in one slice.
        assert_eq!(Slices::of(512, 4003, 512), slices(7, 512, 419));
        assert_eq!(Slices::of(64, 100_000, 64), slices(15, 6272, 5920));
    }

    #[test]
    fn rows_of_a_part_begin_where_every_device_can_read() {
        assert_eq!(rows_of_part(1 << 28, 29 * 896 * 2), 5120);
        assert_eq!(rows_of_part(100_000, 12 * 4), 2048);
        assert_eq!(rows_of_part(1, 12 * 4), STEP);
    }
}
