//! Maximum and mean of rectangles of pixels, channels last. A sequence is an image one pixel wide.
//!
//! On a CPU the operation is custom. Nothing is stored for the gradient but the input: the maximum
//! of a rectangle is searched again. A half type is computed in FP32 and rounded once. Sums have a
//! fixed order: an output adds its rows, then its columns; an input that belongs to several
//! rectangles adds their gradients in row-major order of the rectangles.

mod kernels;
#[cfg(test)]
mod tests;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::Tensor;
use burn::tensor::module::{avg_pool2d, max_pool2d};
use burn::tensor::ops::{AvgPoolOptions, MaxPoolOptions};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use zoo_recipes::PoolKind;

use super::{has_own_kernels, host};
use kernels::Plane;

/// Rectangles of pixels, and what is taken of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// Maximum or mean.
    pub of: PoolKind,
    /// Height and width of a rectangle, at least 1.
    pub size: [usize; 2],
    /// Steps down and to the right, at least 1.
    pub stride: [usize; 2],
}

impl Pooling {
    /// Squares with one step in both directions.
    pub fn square(of: PoolKind, size: usize, stride: usize) -> Self {
        Self { of, size: [size; 2], stride: [stride; 2] }
    }

    /// Groups of `size` steps of sequences, which are images one pixel wide. Groups do not overlap.
    pub fn of_steps(of: PoolKind, size: usize) -> Self {
        Self { of, size: [size, 1], stride: [size, 1] }
    }

    /// Number of rectangles along the sides; pixels that do not fill a rectangle are left out.
    pub fn outputs(&self, sides: [usize; 2]) -> [usize; 2] {
        let along = |i: usize| sides[i].checked_sub(self.size[i]).map_or(0, |room| room / self.stride[i] + 1);
        [along(0), along(1)]
    }

    /// Shape of the output for an input `[images, height, width, channels]`.
    fn shape(&self, [images, height, width, channels]: [usize; 4]) -> [usize; 4] {
        let [rows, columns] = self.outputs([height, width]);
        [images, rows, columns, channels]
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait PoolOp: Backend {
    /// x `[images, height, width, channels]` -> `[images, rows, columns, channels]`, in x's type.
    fn pooled(x: FloatTensor<Self>, how: Pooling) -> FloatTensor<Self>;

    /// Gradient of x, in x's type.
    fn pooled_backward(x: FloatTensor<Self>, gradient: FloatTensor<Self>, how: Pooling) -> FloatTensor<Self>;
}

impl PoolOp for Flex {
    fn pooled(x: FloatTensor<Self>, how: Pooling) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        let dims = [0, 1, 2, 3].map(|i| x.shape()[i]);
        let (plane, shape) = (Plane::new(dims, how), how.shape(dims));
        let values = host::Source::new(&x);
        let block = shape[1..].iter().product();
        let rooms = || (Vec::new(), Vec::new());
        let of = (shape.into(), x.dtype());
        let (out, _) = host::build_blocks(of, block, rooms, |(room, row), i, out| {
            let image = values.part(i * plane.numbers(), plane.numbers(), room);
            plane.forward(image, out, row);
        });
        out
    }

    fn pooled_backward(x: FloatTensor<Self>, gradient: FloatTensor<Self>, how: Pooling) -> FloatTensor<Self> {
        let (x, gradient) = (x.to_contiguous(), gradient.to_contiguous());
        let dims = [0, 1, 2, 3].map(|i| x.shape()[i]);
        let (plane, outputs) = (Plane::new(dims, how), how.shape(dims)[1..].iter().product());
        let (values, gradients) = (host::Source::new(&x), host::Source::new(&gradient));
        let rooms = || (Vec::new(), Vec::new(), Vec::new());
        let made = host::build_blocks(
            (x.shape(), x.dtype()),
            plane.numbers(),
            rooms,
            |(room, wide, row), i, out| {
                let gradient = gradients.part(i * outputs, outputs, wide);
                match how.of {
                    PoolKind::Average => plane.mean_backward(gradient, out, row),
                    PoolKind::Max => {
                        let image = values.part(i * plane.numbers(), plane.numbers(), room);
                        plane.max_backward(image, gradient, out, row);
                    }
                }
            },
        );
        made.0
    }
}

impl<B: PoolOp, C: CheckpointStrategy> PoolOp for Autodiff<B, C> {
    fn pooled(x: FloatTensor<Self>, how: Pooling) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Pooled;
        impl<B: PoolOp> Backward<B, 1> for Pooled {
            type State = (FloatTensor<B>, Pooling);
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    let (x, how) = ops.state;
                    grads.register::<B>(parent.id, B::pooled_backward(x, gradient, how));
                }
            }
        }
        let (x, node) = x.into_parts();
        match Pooled.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x.clone(), how), B::pooled(x, how)),
            OpsKind::UnTracked(prep) => prep.finish(B::pooled(x, how)),
        }
    }

    fn pooled_backward(_: FloatTensor<Self>, _: FloatTensor<Self>, _: Pooling) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Maximum or mean of rectangles of pixels of x `[images, height, width, channels]`, channel by
/// channel: `[images, rows, columns, channels]`, in x's type. There is no padding; pixels that do
/// not fill a rectangle are left out. Of equal maxima the first one, row by row, gets the gradient.
///
/// # Panics
/// If the size or the stride is 0.
pub fn pool(x: Tensor<4>, how: Pooling) -> Tensor<4> {
    let least = how.size.into_iter().chain(how.stride).min();
    assert!(least > Some(0), "size and stride of a pool are at least 1");
    if has_own_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::pooled(x.into_dispatch(), how));
    }
    composed(x, how)
}

/// The composition of Burn's tensor operations.
fn composed(x: Tensor<4>, how: Pooling) -> Tensor<4> {
    let shape = how.shape(x.dims());
    if shape[1] * shape[2] == 0 {
        // An empty result that is tracked: its gradient is zeros.
        let nothing = (x.sum() * 0.0).reshape([1, 1, 1, 1]);
        return Tensor::zeros(shape, (&nothing.device(), nothing.dtype())) + nothing;
    }
    let x = x.permute([0, 3, 1, 2]);
    let out = match how.of {
        PoolKind::Max => max_pool2d(x, MaxPoolOptions::new(how.size).with_stride(how.stride)),
        PoolKind::Average => avg_pool2d(x, AvgPoolOptions::new(how.size).with_stride(how.stride)),
    };
    out.permute([0, 2, 3, 1])
}
