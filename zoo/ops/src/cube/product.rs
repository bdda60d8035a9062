//! Matrix products on GPUs: Burn's kernels, tuned in FP32 and chosen in advance in half precision.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::tensor::CubeTensor;

use super::super::product::ProductOp;
use super::room;

/// The product a b of equal leading dimensions, row-major, so that a kernel can overwrite it.
pub(super) fn product(a: &CubeTensor, b: &CubeTensor) -> CubeTensor {
    let (mut shape, columns) = (a.shape(), b.shape());
    let last = shape.num_dims() - 1;
    shape[last] = columns[last];
    let strategy = match a.dtype {
        DType::F32 => MatmulStrategy::Autotune,
        _ => MatmulStrategy::Cube,
    };
    let out = room(a, shape, a.dtype);
    matmul(a.clone(), b.clone(), Some(out), strategy, a.dtype).expect("a product of matching shapes")
}

impl ProductOp for CubeBackend {
    fn multiplied(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        product(&a, &b)
    }
}
