//! Sums of squares and largest magnitudes of flat FP32 buffers. They stay on the device until all
//! are read at once.
//!
//! With CubeCL kernels each buffer takes one launch: its chunks are summed in FP32, and the reader
//! adds the sums.

#[cfg(feature = "cubecl")]
use burn::backend::{Backend, Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;

/// Number of values of a chunk.
#[cfg(feature = "cubecl")]
pub(super) const CHUNK: usize = 1 << 14;

/// The operation on backends with CubeCL kernels.
#[cfg(feature = "cubecl")]
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait MagnitudeOp: Backend {
    /// `parts`, with the sum of squares and the largest magnitude of each of x's chunks from chunk
    /// `first` on.
    #[fusion(dtype = parts, shape = parts)]
    fn measured(parts: FloatTensor<Self>, x: FloatTensor<Self>, first: usize) -> FloatTensor<Self>;
}

/// For the chunks of all buffers, concatenated, a sum of squares and a largest magnitude; and the
/// number of chunks of each buffer.
///
/// The buffers are on one device, outside autodiff, and there is at least one.
pub fn magnitudes(buffers: &[Tensor<1>]) -> (Tensor<1>, Vec<usize>) {
    #[cfg(feature = "cubecl")]
    if !super::has_own_kernels(&buffers[0].device()) {
        return own(buffers);
    }
    composed(buffers)
}

#[cfg(feature = "cubecl")]
fn own(buffers: &[Tensor<1>]) -> (Tensor<1>, Vec<usize>) {
    let chunks: Vec<usize> = buffers.iter().map(|x| x.dims()[0].div_ceil(CHUNK)).collect();
    let room = Tensor::<1>::empty([2 * chunks.iter().sum::<usize>().max(1)], &buffers[0].device());
    let (mut parts, mut first) = (room.into_dispatch(), 0);
    for (x, chunks) in buffers.iter().zip(&chunks).filter(|(_, chunks)| **chunks > 0) {
        parts = Dispatch::measured(parts, x.clone().into_dispatch(), first);
        first += chunks;
    }
    (Tensor::from_dispatch(parts), chunks)
}

/// Composition in which each buffer is one chunk.
pub fn composed(buffers: &[Tensor<1>]) -> (Tensor<1>, Vec<usize>) {
    let parts = buffers.iter().flat_map(|x| [(x.clone() * x.clone()).sum(), x.clone().abs().max()]);
    (Tensor::cat(parts.collect(), 0), vec![1; buffers.len()])
}
