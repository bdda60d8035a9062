//! Matrix products on GPUs: in half precision by a kernel that is chosen in advance, and the
//! gradients of weights in slices.
//!
//! For each shape of a product Burn's tuner compiles and times about twenty kernels. In half
//! precision NVRTC takes up to minutes for one of them: two cores had not tuned the first large
//! product of a Transformer after half an hour. This kernel compiles in seconds, and is probably not
//! the fastest. Products in FP32 are tuned.
//!
//! The gradient of a weight sums over the rows of a batch: many terms for few values. Its terms are
//! summed in [`Slices`].

use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn::tensor::{DType, Shape, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::has_own_kernels;
use super::slices::Slices;

/// The operation on backends with CubeCL kernels.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait ProductOp: Backend {
    /// a `[…, m, k]` times b `[…, k, n]`, of one type and equal leading dimensions.
    #[fusion(dtype = a, shape = shape_of(a, b))]
    fn multiplied(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// Shape of the product of tensors of these shapes.
pub(super) fn shape_of(a: &Shape, b: &Shape) -> Shape {
    let mut dims: Vec<usize> = a.iter().copied().collect();
    let last = dims.len() - 1;
    dims[last] = b[last];
    dims.into()
}

/// The product a b of one backend: by our operation where it does better than Burn's.
fn times<B: ProductOp>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    let (left, right) = (a.shape(), b.shape());
    let sliced = left.num_dims() == 2 && Slices::of(left[0], left[1], right[1]).is_some();
    if a.dtype() != DType::F32 || sliced {
        return B::multiplied(a, b);
    }
    // Burn fuses it with what follows.
    B::float_matmul(a, b)
}

impl<B: ProductOp, C: CheckpointStrategy> ProductOp for Autodiff<B, C> {
    fn multiplied(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Multiplied;
        impl<B: ProductOp> Backward<B, 2> for Multiplied {
            type State = (FloatTensor<B>, FloatTensor<B>);
            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let ([a_node, b_node], (a, b)) = (ops.parents, ops.state);
                if let Some(node) = a_node {
                    grads.register::<B>(node.id, times::<B>(gradient.clone(), transposed::<B>(b)));
                }
                if let Some(node) = b_node {
                    grads.register::<B>(node.id, times::<B>(transposed::<B>(a), gradient));
                }
            }
        }
        let ((a, a_node), (b, b_node)) = (a.into_parts(), b.into_parts());
        match Multiplied.prepare::<C>([a_node, b_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((a.clone(), b.clone()), times::<B>(a, b)),
            OpsKind::UnTracked(prep) => prep.finish(times::<B>(a, b)),
        }
    }
}

fn transposed<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let last = x.shape().num_dims() - 1;
    B::float_swap_dims(x, last - 1, last)
}

/// The product a b without broadcasting, on a GPU; `None` where it is Burn's.
pub fn product<const D: usize>(a: &Tensor<D>, b: &Tensor<D>) -> Option<Tensor<D>> {
    let (left, right) = (a.dims(), b.dims());
    let alike = left[..D - 2] == right[..D - 2] && left.iter().chain(&right).all(|&size| size > 0);
    let device = a.device();
    // Without gradients, Burn's product in FP32 can be fused.
    let ours = a.dtype() != DType::F32 || (D == 2 && device.is_autodiff());
    (alike && ours && !has_own_kernels(&device)).then(|| {
        Tensor::from_dispatch(Dispatch::multiplied(a.clone().into_dispatch(), b.clone().into_dispatch()))
    })
}
