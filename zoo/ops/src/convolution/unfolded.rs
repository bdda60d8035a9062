//! The convolution on GPUs: the patches that the outputs read are unfolded into the rows of a matrix,
//! which is multiplied by the weight. The gradient of the input unfolds patches of the gradient, and
//! that of the weight unfolds the input again, so that no patches are kept.
//!
//! Burn's convolutions are tuned: in half precision NVRTC takes minutes to compile their kernels, and
//! in FP32 without TF32 only a slow one is left. Products have kernels for both.

use burn::backend::{Autodiff, Backend, Dispatch, backend_extension, tensor::FloatTensor};
#[cfg(feature = "fusion")]
use burn::tensor::Shape;
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::Geometry;
use super::geometry::Shapes;
use crate::Pass;
use crate::precision::matmul;

/// A convolution of one group, and how much of it is unfolded at once.
#[derive(Debug, Clone, Copy)]
pub struct Unfolding {
    pub(crate) shapes: Shapes,
    /// Maximum number of bytes of unfolded patches; more if it is too little for one step of rows.
    pub(crate) most: usize,
}

impl Unfolding {
    /// Whether an output reads one position, its own.
    fn is_pointwise(&self) -> bool {
        self.shapes.taps() == 1 && self.shapes.input[..3] == self.shapes.output[..3]
    }

    /// Shape of the weight as a matrix: taps and channels, output channels.
    pub(crate) fn weight(&self) -> [usize; 2] {
        [self.shapes.taps() * self.shapes.input[3], self.shapes.output[3]]
    }
}

/// The operation on backends with CubeCL kernels.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait UnfoldedOp: Backend {
    /// x `[images, height, width, channels]` and weight `[taps * channels, out]`, of one type ->
    /// `[images, height, width, out]` of this type.
    #[fusion(dtype = x, shape = Shape::from(of.shapes.output))]
    fn unfolded(x: FloatTensor<Self>, weight: FloatTensor<Self>, of: Unfolding) -> FloatTensor<Self>;

    /// Gradient of x.
    #[fusion(dtype = gradient, shape = Shape::from(of.shapes.input))]
    fn unfolded_input(
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        of: Unfolding,
    ) -> FloatTensor<Self>;

    /// Gradient of the weight `[taps * channels, out]`.
    #[fusion(dtype = gradient, shape = Shape::from(of.weight()))]
    fn unfolded_weight(x: FloatTensor<Self>, gradient: FloatTensor<Self>, of: Unfolding)
    -> FloatTensor<Self>;
}

impl<B: UnfoldedOp, C: CheckpointStrategy> UnfoldedOp for Autodiff<B, C> {
    fn unfolded(x: FloatTensor<Self>, weight: FloatTensor<Self>, of: Unfolding) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Unfolded;
        impl<B: UnfoldedOp> Backward<B, 2> for Unfolded {
            type State = (FloatTensor<B>, FloatTensor<B>, Unfolding);
            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let ([x_node, weight_node], (x, weight, of)) = (ops.parents, ops.state);
                if let Some(node) = x_node {
                    grads.register::<B>(node.id, B::unfolded_input(weight, gradient.clone(), of));
                }
                if let Some(node) = weight_node {
                    grads.register::<B>(node.id, B::unfolded_weight(x, gradient, of));
                }
            }
        }
        let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
        match Unfolded.prepare::<C>([x_node, weight_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                prep.finish((x.clone(), weight.clone(), of), B::unfolded(x, weight, of))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::unfolded(x, weight, of)),
        }
    }

    fn unfolded_input(_: FloatTensor<Self>, _: FloatTensor<Self>, _: Unfolding) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }

    fn unfolded_weight(_: FloatTensor<Self>, _: FloatTensor<Self>, _: Unfolding) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// The convolution on a GPU, with at most `most` bytes of unfolded patches; `None` with several
/// groups, or without outputs.
pub fn convolution(
    most: usize,
    x: &Tensor<4>,
    weight: &Tensor<4>,
    bias: Option<&Tensor<1>>,
    geometry: Geometry,
    pass: &Pass,
) -> Option<Tensor<4>> {
    let of = Unfolding { shapes: Shapes::new(x.dims(), weight.dims(), geometry), most };
    let Shapes { output, input: [.., channels], .. } = of.shapes;
    if geometry.groups > 1 || channels == 0 || output.contains(&0) {
        return None;
    }
    let compute = pass.compute;
    let (x, weight) = (compute.cast(x.clone()), compute.cast(weight.clone()));
    let weight = weight.permute([2, 3, 1, 0]).reshape(of.weight());
    let out = if of.is_pointwise() {
        matmul(x.reshape([of.shapes.positions(), channels]), weight).reshape(output)
    } else {
        Tensor::from_dispatch(Dispatch::unfolded(x.into_dispatch(), weight.into_dispatch(), of))
    };
    Some(match bias {
        Some(bias) => out + compute.cast(bias.clone()).reshape([1, 1, 1, output[3]]),
        None => out,
    })
}
