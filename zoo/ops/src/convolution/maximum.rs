//! Convolution of texts with the maximum over positions (Collobert et al. 2011, Kim 2014).
//!
//! On a CPU with the required instructions this is one custom operation. Rows of zeros at a text's
//! end are padding: all windows that read nothing else have the same output, and one of them is
//! computed. The gradient of a maximum belongs to one window, so the backward pass reads one window
//! of a text and channel, not all; where the gradient of an output is 0, it reads none, so an
//! infinity there makes no NaN. In half types the operands are rounded and multiplied in FP32, in
//! BF16 without the CPU's instruction for it. On other devices the convolution and the pool are
//! separate operations.

use std::borrow::Cow;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;
use rayon::prelude::*;
use zoo_recipes::PoolKind;

use super::geometry::{Geometry, Shapes};
use super::patches::{Gathered, Side};
use super::products::{Fp32, Multiply, taps_first, taps_last};
use crate::linear::{Products, Wanted, column_sums};
use crate::observed::observed;
use crate::pool::{Pooling, pool};
use crate::simd::vectorized;
use crate::{Pass, has_own_kernels, host};

/// The operation on backends with custom kernels, for CPUs with the required instructions.
#[backend_extension(Flex, Autodiff)]
pub trait MaximumOp: Backend {
    /// x `[texts, positions, channels]` FP32 or half, weight `[out, channels, taps]` and bias
    /// `[out]` FP32 -> the maxima `[texts, out]` in the products' type, and the positions of their windows
    /// `[texts, out]`, whole numbers in FP32.
    fn maximum(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients of x (in x's type; `[0]` if not wanted), weight and bias (FP32). With
    /// half-precision products, their values are rounded to that type.
    fn maximum_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        at: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Sizes of an operation.
#[derive(Clone, Copy)]
struct Sizes {
    texts: usize,
    positions: usize,
    channels: usize,
    out: usize,
    /// Numbers that a window reads, next to each other.
    window: usize,
    /// Shapes of the convolution, as an image of height 1.
    shapes: Shapes,
}

impl Sizes {
    fn of(x: &FlexTensor, weight: &FlexTensor) -> Self {
        let [texts, positions, channels] = [0, 1, 2].map(|i| x.shape()[i]);
        let [out, inputs, taps] = [0, 1, 2].map(|i| weight.shape()[i]);
        let shapes =
            Shapes::new([texts, 1, positions, channels], [out, inputs, 1, taps], Geometry::default());
        Self { texts, positions, channels, out, window: taps * channels, shapes }
    }

    /// Number of windows of a text that differ: those that begin before the last row that is not
    /// zeros, and one behind it.
    fn windows(&self, text: &[f32]) -> usize {
        let read = text.iter().rposition(|x| *x != 0.0).map_or(0, |last| last / self.channels + 1);
        self.shapes.output[2].min(read + 1)
    }
}

/// The values of x as operands, and the weight as operands with its taps before its channels.
fn operands<'a>(
    x: host::Source<'a>,
    weight: Cow<'a, [f32]>,
    sizes: &Sizes,
    with: Products,
) -> (Vec<f32>, Vec<f32>) {
    let mut values = host::room::<f32>(sizes.texts * sizes.positions * sizes.channels);
    let text = (sizes.positions * sizes.channels).max(1);
    let x = x.rounded(with.half());
    values.par_chunks_mut(text).enumerate().for_each(|(i, to)| x.read(i * text, to));
    (values, taps_first::<f32, Fp32>(&sizes.shapes, &with.rounded(weight)))
}

impl MaximumOp for Flex {
    fn maximum(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let sizes = Sizes::of(&x, &weight);
        let Sizes { texts, positions, channels, out, window, .. } = sizes;
        if texts * out == 0 {
            let nothing = || host::stored::<f32>(Vec::new(), [texts, out]);
            return (host::tensor(Vec::new(), [texts, out], with.dtype()), nothing());
        }
        let bias = with.rounded(host::values(&bias));
        let (x, weight) = operands(host::Source::new(&x), host::values(&weight), &sizes, with);
        let text = positions * channels;
        let counts: Vec<usize> = x.par_chunks(text.max(1)).map(|text| sizes.windows(text)).collect();
        let windows = |(i, n): (usize, &usize)| (0..*n).map(move |at| i * text + at * channels);
        let starts: Vec<usize> = counts.iter().enumerate().flat_map(windows).collect();
        let rows: Vec<usize> = (0..out).map(|o| o * window).collect();
        let mut found = host::room::<f32>(starts.len() * out);
        Fp32.multiply(
            &mut found,
            &Side::Rows(Gathered::new(&x, &starts, &[0], window)),
            &Side::Rows(Gathered::new(&weight, &rows, &[0], window)),
            Some(&bias),
        );
        with.round(&mut found);
        let (mut most, mut at) = (host::room::<f32>(texts * out), host::room::<f32>(texts * out));
        let mut rest = &found[..];
        for ((n, most), at) in counts.iter().zip(most.chunks_exact_mut(out)).zip(at.chunks_exact_mut(out)) {
            let (own, behind) = rest.split_at(n * out);
            maxima(own, most, at);
            rest = behind;
        }
        (host::tensor(most, [texts, out], with.dtype()), host::stored(at, [texts, out]))
    }

    fn maximum_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        at: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight, gradient) = (x.to_contiguous(), weight.to_contiguous(), gradient.to_contiguous());
        let (sizes, dtype) = (Sizes::of(&x, &weight), x.dtype());
        let Sizes { texts, positions, channels, out, window, .. } = sizes;
        let gradient = host::Source::new(&gradient).rounded(with.half());
        let mut db = column_sums(&gradient, texts, if wanted.bias { out } else { 0 });
        with.round(&mut db);
        let mut dy = host::room::<f32>(texts * out);
        gradient.read(0, &mut dy);
        let (x, weight) = operands(host::Source::new(&x), host::values(&weight), &sizes, with);
        let (at, text) = (host::values(&at), positions * channels);
        let first = |i: usize, o: usize| at[i * out + o] as usize * channels;
        let mut dw = vec![0.0; out * window];
        dw.par_chunks_exact_mut(window.max(1)).enumerate().for_each(|(o, to)| {
            for i in (0..texts).filter(|i| dy[i * out + o] != 0.0) {
                add_scaled(to, &x[i * text + first(i, o)..][..window], dy[i * out + o]);
            }
        });
        let mut dw = taps_last(&sizes.shapes, dw);
        with.round(&mut dw);
        let dx = match wanted.input {
            true => {
                let mut dx = vec![0.0; texts * text];
                dx.par_chunks_exact_mut(text.max(1)).enumerate().for_each(|(i, to)| {
                    for o in (0..out).filter(|o| dy[i * out + o] != 0.0) {
                        let to = &mut to[first(i, o)..][..window];
                        add_scaled(to, &weight[o * window..][..window], dy[i * out + o]);
                    }
                });
                if dtype == DType::F32 {
                    with.round(&mut dx);
                }
                host::tensor(dx, [texts, positions, channels], dtype)
            }
            false => host::stored::<f32>(Vec::new(), [0]),
        };
        let biases = [db.len()];
        (dx, host::stored(dw, [out, channels, window / channels]), host::stored(db, biases))
    }
}

vectorized! {
    /// Largest values of the rows of `own`, and the first rows that have them. NaN is larger than all
    /// numbers; of several, the last one counts.
    fn maxima(own: &[f32], most: &mut [f32], at: &mut [f32]) {
        let _ = FMA;
        let out = most.len();
        most.copy_from_slice(&own[..out]);
        at.fill(0.0);
        for (row, values) in own.chunks_exact(out).enumerate().skip(1) {
            for ((most, at), &value) in most.iter_mut().zip(&mut *at).zip(values) {
                let larger = value > *most || value.is_nan();
                *most = if larger { value } else { *most };
                *at = if larger { row as f32 } else { *at };
            }
        }
    }

    /// Adds multiples of values.
    fn add_scaled(to: &mut [f32], from: &[f32], by: f32) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = if FMA { by.mul_add(*from, *to) } else { *to + by * from };
        }
    }
}

impl<B: MaximumOp, C: CheckpointStrategy> MaximumOp for Autodiff<B, C> {
    fn maximum(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        #[derive(Debug)]
        struct Maximum;
        impl<B: MaximumOp> Backward<B, 3> for Maximum {
            type State = (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, Products);
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (x, weight, at, with) = ops.state;
                let wanted = Wanted { input: ops.parents[0].is_some(), bias: ops.parents[2].is_some() };
                let (dx, dw, db) = B::maximum_backward(x, weight, at, gradient, wanted, with);
                for (parent, gradient) in ops.parents.into_iter().zip([dx, dw, db]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
        let (bias, bias_node) = bias.into_parts();
        let (most, at) = B::maximum(x.clone(), weight.clone(), bias, with);
        let most = match Maximum.prepare::<C>([x_node, weight_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, weight, at.clone(), with), most),
            OpsKind::UnTracked(prep) => prep.finish(most),
        };
        (most, <Self as burn::backend::AutodiffBackend>::from_inner(at))
    }

    fn maximum_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Wanted,
        _: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Convolves x `[texts, positions, channels]` with weight `[out, channels, taps]` (PyTorch's
/// layout), adds bias `[out]`, and takes the maximum over the positions of each text: `[texts,
/// out]`, in the compute type of the pass. Of equal maxima the first one gets the gradient.
///
/// # Panics
/// If the channels differ, or a text is shorter than the kernel.
pub fn convolution_maximum(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<1>, pass: &Pass) -> Tensor<2> {
    let ([texts, positions, channels], [out, _, taps]) = (x.dims(), weight.dims());
    assert!(positions >= taps, "texts of {positions} positions for a kernel of {taps}");
    match Products::of(pass.compute).filter(|_| has_own_kernels(&x.device())) {
        Some(with) => {
            let site = pass.output("convolution", &weight);
            let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
            let (most, _) = Dispatch::maximum(x, weight, bias, with);
            observed(Tensor::from_dispatch(most), site)
        }
        None => {
            let kernel = weight.clone().reshape([out, channels, 1, taps]);
            pass.derived(&weight, &kernel);
            let x = x.reshape([texts, 1, positions, channels]);
            let y = super::convolution(x, kernel, Some(bias), Geometry::default(), pass);
            let steps = positions + 1 - taps;
            pool(y.reshape([texts, steps, 1, out]), Pooling::of_steps(PoolKind::Max, steps))
                .reshape([texts, out])
        }
    }
}
