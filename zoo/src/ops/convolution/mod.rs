//! Convolution (cross-correlation, as everywhere in the field) of images or sequences with channels last.
//!
//! On a CPU with the instructions for it the convolution is an operation of its own. Its three products read the patches where
//! they lie in the image; nothing is unfolded in memory, only the zeros around an image are put there. A sequence is an image of
//! height 1. Sums have a fixed order: over the taps and channels for an output, over the images and positions in order for a weight.
//!
//! A convolution knows nothing of lengths: behind a sequence's end it reads what stands there. Where a shorter sequence of a
//! batch must not depend on the longer ones, its model zeroes the steps behind the end before every convolution, so that
//! they are what padding is.

mod composed;
mod depthwise;
mod fp32;
mod geometry;
mod patches;
mod products;
#[cfg(test)]
mod tests;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, FloatDType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;

use super::linear::{Products, column_sums};
use super::{has_own_kernels, host, simd};
use crate::contract::Pass;
use geometry::Shapes;
use products::Fp32;

pub use geometry::{Axis, Geometry};

/// The operation on backends with own kernels, for CPUs with the instructions for it.
#[backend_extension(Flex, Autodiff)]
pub trait ConvolutionOp: Backend {
    /// x [images, height, width, channels] FP32 or bf16, weight [out, channels / groups, kernel height, kernel width] and bias
    /// [out] (or [0]: none) FP32 -> [images, height, width, out] in the products' type.
    fn convolved(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        with: Products,
    ) -> FloatTensor<Self>;

    /// Gradients of x (in x's type; [0] if not wanted), weight and bias (FP32; [0] where there is none); of products in bf16,
    /// their values are bf16's.
    fn convolved_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        geometry: Geometry,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Which gradients are wanted beside the weight's.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The input's: the first layer's is not.
    input: bool,
    /// The bias's.
    bias: bool,
}

/// Shapes of x and weight.
fn shapes(x: &FlexTensor, weight: &FlexTensor, geometry: Geometry) -> Shapes {
    let dimensions = |tensor: &FlexTensor| [0, 1, 2, 3].map(|i| tensor.shape()[i]);
    Shapes::new(dimensions(x), dimensions(weight), geometry)
}

impl ConvolutionOp for Flex {
    fn convolved(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        with: Products,
    ) -> FloatTensor<Self> {
        let shapes = shapes(&x, &weight, geometry);
        let (x, weight, bias) = (x.to_contiguous(), weight.to_contiguous(), host::values(&bias));
        let (x, weight) = (host::Source::new(&x), host::values(&weight));
        let bias = (!bias.is_empty()).then_some(&*bias);
        if shapes.depthwise() {
            let rounded = matches!(with, Products::Bf16(_));
            let out = depthwise::forward(&shapes, &x, &weight, bias, rounded);
            return host::tensor(out, shapes.output, if rounded { DType::BF16 } else { DType::F32 });
        }
        match with {
            Products::Fp32 => {
                let weight = products::taps_first::<f32, Fp32>(&shapes, &weight);
                let x = products::image::<f32, Fp32>(&x, shapes.input, &[shapes.reads()]);
                host::stored(products::forward(Fp32, &shapes, &x, &weight, bias), shapes.output)
            }
            Products::Bf16(_) => unreachable!("not yet"),
        }
    }

    fn convolved_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        geometry: Geometry,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let shapes = shapes(&x, &weight, geometry);
        let (dtype, out) = (x.dtype(), shapes.output[3]);
        let (x, weight, gradient) = (x.to_contiguous(), weight.to_contiguous(), gradient.to_contiguous());
        let mut db = column_sums(&gradient, shapes.positions(), if wanted.bias { out } else { 0 });
        if matches!(with, Products::Bf16(_)) {
            simd::round_in_place(&mut db);
        }
        let db_shape = [db.len()];
        let (values, dy, w) = (host::Source::new(&x), host::Source::new(&gradient), host::values(&weight));
        let none = || host::stored::<f32>(Vec::new(), [0]);
        if shapes.depthwise() {
            let rounded = matches!(with, Products::Bf16(_));
            let round = |mut values: Vec<f32>| {
                if rounded {
                    simd::round_in_place(&mut values);
                }
                values
            };
            let dx = match wanted.input {
                true => {
                    let dx = round(depthwise::input_gradient(&shapes, &dy, &w, rounded));
                    host::tensor(dx, shapes.input, dtype)
                }
                false => none(),
            };
            let dw = round(depthwise::weight_gradient(&shapes, &values, &dy, rounded));
            return (dx, host::stored(dw, shapes.weight), host::stored(db, db_shape));
        }
        let back: Vec<_> = match wanted.input {
            true => shapes.phases().map(|phase| shapes.reads_back(phase)).collect(),
            false => Vec::new(),
        };
        match with {
            Products::Fp32 => {
                let dy = products::image::<f32, Fp32>(&dy, shapes.output, &back);
                let dx = match wanted.input {
                    true => {
                        let w = products::taps_first::<f32, Fp32>(&shapes, &w);
                        host::tensor(products::input_gradient(Fp32, &shapes, &dy, &w), shapes.input, dtype)
                    }
                    false => none(),
                };
                let values = products::image::<f32, Fp32>(&values, shapes.input, &[shapes.reads()]);
                let dw = products::weight_gradient(Fp32, &shapes, &values, &dy);
                (dx, host::stored(dw, shapes.weight), host::stored(db, db_shape))
            }
            Products::Bf16(_) => unreachable!("not yet"),
        }
    }
}

impl<B: ConvolutionOp, C: CheckpointStrategy> ConvolutionOp for Autodiff<B, C> {
    fn convolved(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        with: Products,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Convolved;
        impl<B: ConvolutionOp> Backward<B, 3> for Convolved {
            type State = (FloatTensor<B>, FloatTensor<B>, bool, Geometry, Products);
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (x, weight, bias, geometry, with) = ops.state;
                let wanted = Wanted { input: ops.parents[0].is_some(), bias };
                let (dx, dw, db) = B::convolved_backward(x, weight, gradient, geometry, wanted, with);
                for (parent, gradient) in ops.parents.into_iter().zip([dx, dw, db]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
        let (bias, bias_node) = bias.into_parts();
        let biased = bias.shape()[0] > 0;
        match Convolved.prepare::<C>([x_node, weight_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(
                (x.clone(), weight.clone(), biased, geometry, with),
                B::convolved(x, weight, bias, geometry, with),
            ),
            OpsKind::UnTracked(prep) => prep.finish(B::convolved(x, weight, bias, geometry, with)),
        }
    }

    fn convolved_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Geometry,
        _: Wanted,
        _: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Convolves x [images, height, width, channels] with weight [out, channels / groups, kernel height, kernel width] (PyTorch's
/// layout) and adds bias [out]: [images, height, width, out], in the pass's compute type. Of a kernel longer than the padded
/// input there is no output.
///
/// # Panics
/// If channels do not fit the groups and the weight, or a stride or dilation is 0.
pub fn convolution(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    geometry: Geometry,
    pass: &Pass,
) -> Tensor<4> {
    if has_own_kernels(&x.device())
        && let Some(with) = Products::of(pass.compute)
        && pass.compute.0 == FloatDType::F32
    {
        let bias = bias.unwrap_or_else(|| Tensor::empty([0], &weight.device()));
        let out = Dispatch::convolved(
            x.into_dispatch(),
            weight.into_dispatch(),
            bias.into_dispatch(),
            geometry,
            with,
        );
        return Tensor::from_dispatch(out);
    }
    composed::convolution(x, weight, bias, geometry, pass)
}
