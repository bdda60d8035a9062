//! Convolution (cross-correlation, as usual in the field) of images or sequences with channels
//! last.
//!
//! On a CPU with the required instructions the convolution is a custom operation. Its three
//! products read patches in place from the image: nothing is unfolded in memory, only zero padding
//! is added around an image. A sequence is an image of height 1. Sums have a fixed order: over the
//! taps and channels for an output, over the images and positions in order for a weight. A GPU
//! multiplies unfolded patches.
//!
//! A convolution does not take lengths: it reads the values after a sequence's end. If a shorter
//! sequence of a batch must not depend on the longer ones, its model has to zero the steps after
//! the end before every convolution.

#[cfg(target_arch = "x86_64")]
mod bf16;
mod composed;
mod depthwise;
#[cfg(target_arch = "x86_64")]
mod direct;
mod fp32;
pub(crate) mod geometry;
mod maximum;
#[cfg(test)]
mod maximum_tests;
mod patches;
mod products;
#[cfg(test)]
mod tests;
#[cfg(feature = "cubecl")]
pub(crate) mod unfolded;

use std::borrow::Cow;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor};
#[cfg(target_arch = "x86_64")]
use burn::tensor::{Element, bf16 as Bf16};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;

use super::linear::{Products, Wanted, column_sums};
use super::observed::observed;
use super::{Instruction, has_own_kernels, host};
use crate::Pass;
use geometry::Shapes;
#[cfg(target_arch = "x86_64")]
use products::Rounded;
use products::{Fp32, Multiply};

pub(crate) use composed::convolution as composed;
pub use geometry::{Axis, Geometry};
pub use maximum::convolution_maximum;

/// The operation on backends with custom kernels, for CPUs with the required instructions.
#[backend_extension(Flex, Autodiff)]
pub trait ConvolutionOp: Backend {
    /// x `[images, height, width, channels]` FP32 or half, weight
    /// `[out, channels / groups, kernel height, kernel width]` and bias `[out]` (or `[0]` for none)
    /// FP32 -> `[images, height, width, out]` in the products' type.
    fn convolved(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        with: Products,
    ) -> FloatTensor<Self>;

    /// Gradients of x (in x's type; `[0]` if not wanted), weight and bias (FP32; `[0]` without
    /// one). With half-precision products, their values are rounded to that type.
    fn convolved_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        geometry: Geometry,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
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
        if shapes.positions() == 0 {
            return host::tensor(Vec::new(), shapes.output, with.dtype());
        }
        let (x, weight, bias) = (x.to_contiguous(), weight.to_contiguous(), host::values(&bias));
        let (x, weight) = (host::Source::new(&x), host::values(&weight));
        let bias = (!bias.is_empty()).then_some(&*bias);
        if shapes.depthwise() {
            let out = depthwise::forward(&shapes, &x, &weight, bias, with.half());
            return host::tensor(out, shapes.output, with.dtype());
        }
        match with {
            #[cfg(target_arch = "x86_64")]
            Products::Bf16(with) if with != Instruction::Emulated => {
                forward::<Bf16, _>(Rounded(with), &shapes, &x, &weight, bias)
            }
            _ => {
                let (x, weight) = (x.rounded(with.half()), with.rounded(weight));
                let bias = bias.map(|bias| with.rounded(Cow::Borrowed(bias)));
                let out = in_vectors(&shapes, &x, &weight, bias.as_deref());
                host::tensor(out, shapes.output, with.dtype())
            }
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
        let (half_input, dtype) = (x.dtype() != DType::F32, x.dtype());
        if shapes.positions() == 0 {
            let zeros = |shape: &[usize], dtype: DType| {
                host::tensor(vec![0.0; shape.iter().product()], shape.to_vec(), dtype)
            };
            let input: &[usize] = if wanted.input { &shapes.input } else { &[0] };
            let biases = if wanted.bias { shapes.output[3] } else { 0 };
            return (
                zeros(input, x.dtype()),
                zeros(&shapes.weight, DType::F32),
                zeros(&[biases], DType::F32),
            );
        }
        let (x, weight, gradient) = (x.to_contiguous(), weight.to_contiguous(), gradient.to_contiguous());
        let mut db = column_sums(
            &host::Source::new(&gradient),
            shapes.positions(),
            if wanted.bias { shapes.output[3] } else { 0 },
        );
        with.round(&mut db);
        let (x, dy, weight) = (host::Source::new(&x), host::Source::new(&gradient), host::values(&weight));
        let (dx, dw) = match with {
            _ if shapes.depthwise() => {
                depthwise_gradients(&shapes, &x, &dy, &weight, wanted.input, dtype, with)
            }
            #[cfg(target_arch = "x86_64")]
            Products::Bf16(with) if with != Instruction::Emulated => match half_input {
                true => gradients::<Bf16, _>(Rounded(with), &shapes, &x, &dy, &weight, wanted.input),
                false => gradients::<f32, _>(Rounded(with), &shapes, &x, &dy, &weight, wanted.input),
            },
            _ => {
                let (x, dy) = (x.rounded(with.half()), dy.rounded(with.half()));
                let (mut dx, mut dw) =
                    gradients_in_vectors(&shapes, &x, &dy, &with.rounded(weight), wanted.input);
                with.round(&mut dw);
                if !half_input {
                    with.round(&mut dx);
                }
                let dx = match wanted.input {
                    true => host::tensor(dx, shapes.input, dtype),
                    false => host::stored::<f32>(Vec::new(), [0]),
                };
                (dx, host::stored(dw, shapes.weight))
            }
        };
        let biases = [db.len()];
        (dx, dw, host::stored(db, biases))
    }
}

/// Output `[positions, out]`, with FP32 vector instructions.
fn in_vectors(shapes: &Shapes, x: &host::Source, weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    #[cfg(target_arch = "x86_64")]
    if direct::suits(shapes) {
        return direct::forward(shapes, x, weight, bias);
    }
    let weight = products::taps_first::<f32, Fp32>(shapes, weight);
    let x = products::image::<f32, Fp32>(x, shapes.input, &[shapes.reads()]);
    products::forward(Fp32, shapes, &x, &weight, bias)
}

/// Gradients of x (empty if not wanted) and of the weight, with FP32 vector instructions.
fn gradients_in_vectors(
    shapes: &Shapes,
    x: &host::Source,
    dy: &host::Source,
    weight: &[f32],
    input: bool,
) -> (Vec<f32>, Vec<f32>) {
    #[cfg(target_arch = "x86_64")]
    if direct::suits(shapes) {
        return direct::gradients(shapes, x, dy, weight, input);
    }
    both_gradients::<f32, _>(Fp32, shapes, x, dy, weight, input)
}

#[cfg(target_arch = "x86_64")]
fn forward<T: Element + bytemuck::Pod, M: Multiply<T>>(
    with: M,
    shapes: &Shapes,
    x: &host::Source,
    weight: &[f32],
    bias: Option<&[f32]>,
) -> FlexTensor {
    let weight = products::taps_first::<T, M>(shapes, weight);
    let x = products::image::<T, M>(x, shapes.input, &[shapes.reads()]);
    host::stored(products::forward(with, shapes, &x, &weight, bias), shapes.output)
}

/// Gradients of x, in type `T` (`[0]` if not wanted), and of the weight.
#[cfg(target_arch = "x86_64")]
fn gradients<T: Element + bytemuck::Pod, M>(
    with: M,
    shapes: &Shapes,
    x: &host::Source,
    dy: &host::Source,
    weight: &[f32],
    input: bool,
) -> (FlexTensor, FlexTensor)
where
    M: Multiply<T> + Multiply<f32, Operand = <M as Multiply<T>>::Operand>,
{
    let (dx, dw) = both_gradients::<T, M>(with, shapes, x, dy, weight, input);
    let dx = if input { host::stored(dx, shapes.input) } else { host::stored(dx, [0]) };
    (dx, host::stored(dw, shapes.weight))
}

/// Gradients of x (empty if not wanted) and of the weight.
fn both_gradients<T: bytemuck::Pod + Send + Sync, M>(
    with: M,
    shapes: &Shapes,
    x: &host::Source,
    dy: &host::Source,
    weight: &[f32],
    input: bool,
) -> (Vec<T>, Vec<f32>)
where
    M: Multiply<T> + Multiply<f32, Operand = <M as Multiply<T>>::Operand>,
{
    let back: Vec<_> = match input {
        true => shapes.phases().map(|phase| shapes.reads_back(phase)).collect(),
        false => Vec::new(),
    };
    let dy = products::image::<T, M>(dy, shapes.output, &back);
    let mut dx = Vec::new();
    if input {
        let weight = products::taps_first::<T, M>(shapes, weight);
        dx = products::input_gradient::<T, M>(with, shapes, &dy, &weight);
    }
    let x = products::image::<T, M>(x, shapes.input, &[shapes.reads()]);
    (dx, products::weight_gradient::<M>(with, shapes, &x, &dy))
}

/// Gradients of x, in type `dtype` (`[0]` if not wanted), and of the weight.
fn depthwise_gradients(
    shapes: &Shapes,
    x: &host::Source,
    dy: &host::Source,
    weight: &[f32],
    input: bool,
    dtype: DType,
    with: Products,
) -> (FlexTensor, FlexTensor) {
    let rounded = with.half();
    let round = |mut values: Vec<f32>| {
        with.round(&mut values);
        values
    };
    let dx = match input {
        true => {
            let dx = depthwise::input_gradient(shapes, dy, weight, rounded);
            host::tensor(round(dx), shapes.input, dtype)
        }
        false => host::stored::<f32>(Vec::new(), [0]),
    };
    (dx, host::stored(round(depthwise::weight_gradient(shapes, x, dy, rounded)), shapes.weight))
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

/// Convolves x `[images, height, width, channels]` with weight
/// `[out, channels / groups, kernel height, kernel width]` (PyTorch's layout) and adds bias
/// `[out]`. The result is `[images, height, width, out]`, in the compute type of the pass. A kernel
/// longer than the padded input has no output.
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
    let site = pass.output("convolution", &weight);
    let own = Products::of(pass.compute).filter(|_| has_own_kernels(&x.device()));
    let out = match own {
        Some(with) => {
            let bias = bias.unwrap_or_else(|| Tensor::empty([0], &weight.device()));
            let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
            Tensor::from_dispatch(Dispatch::convolved(x, weight, bias, geometry, with))
        }
        None => by_parts(PATCHES, x, weight, bias, geometry, pass),
    };
    observed(out, site)
}

/// Bytes of patches that a GPU unfolds at once: enough rows of the widest layers for a large one, and
/// little beside its memory.
const PATCHES: usize = 1 << 28;

/// The convolution without CPU kernels: products of unfolded patches on a GPU, at most `most` bytes of
/// them at once, else Burn's.
pub(crate) fn by_parts(
    most: usize,
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    geometry: Geometry,
    pass: &Pass,
) -> Tensor<4> {
    #[cfg(feature = "cubecl")]
    if !has_own_kernels(&x.device())
        && let Some(out) = unfolded::convolution(most, &x, &weight, bias.as_ref(), geometry, pass)
    {
        return out;
    }
    #[cfg(not(feature = "cubecl"))]
    let _ = most;
    composed(x, weight, bias, geometry, pass)
}
