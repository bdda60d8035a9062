//! Magnitudes of flat buffers on GPUs: one cube for each chunk.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn_cubecl::CubeBackend;
use cubecl::prelude::*;

use super::super::magnitude::{CHUNK, MagnitudeOp};
use super::rows::{Sharing, largest, sum};
use super::{UNITS, cubes, output, values};

/// The sum of squares and the largest magnitude of each chunk of `count` numbers, written to
/// `parts` from index `first` on.
#[cube(launch_unchecked)]
fn measured_kernel(x: &[f32], parts: &mut [f32], first: usize, count: usize, #[comptime] sharing: Sharing) {
    let chunk = CUBE_POS;
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    if chunk * CHUNK < count {
        let end = min((chunk + 1) * CHUNK, count);
        let mut squares = f32::new(0.0);
        let mut top = f32::new(0.0);
        let mut i = chunk * CHUNK + UNIT_POS_X as usize;
        while i < end {
            squares += x[i] * x[i];
            top = max(top, x[i].abs());
            i += UNITS;
        }
        let squares = sum(squares, &mut scratch, sharing);
        let top = largest(top, &mut scratch, sharing);
        if UNIT_POS_X == 0 {
            parts[2 * (first + chunk)] = squares;
            parts[2 * (first + chunk) + 1] = top;
        }
    }
}

impl MagnitudeOp for CubeBackend {
    fn measured(parts: FloatTensor<Self>, x: FloatTensor<Self>, first: usize) -> FloatTensor<Self> {
        // Written in place, unless `parts` has another reference.
        let parts = if parts.can_mut() { parts } else { parts.copy() };
        let count = x.shape().num_elements();
        let sharing = Sharing::long();
        // SAFETY: a cube beyond the chunks does nothing; there is room for all chunks.
        unsafe {
            measured_kernel::launch_unchecked(
                &x.client,
                cubes(count.div_ceil(CHUNK), &x),
                sharing.dim(),
                values(&x),
                output(&parts),
                first,
                count,
                sharing,
            );
        }
        parts
    }
}
