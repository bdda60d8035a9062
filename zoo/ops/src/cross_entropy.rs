//! Label-smoothed cross-entropy of logits with a fused softmax. It stores neither one-hot targets
//! nor probabilities, and computes in FP32 for any type of logits, or in the half type of a pass if
//! `Islands::loss` is false ([`SmoothedTargets::in_pass`]).
//!
//! With the target distribution q (a on the true class, b on each other class), the loss of a row
//! is `lse(x) - (a - b) x_y - b sum(x) - constant` and its gradient `softmax(x) - q`.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Int, Tensor, TensorData, bf16, f16};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;
use rayon::prelude::*;
use zoo_recipes::Smoothing;

use super::islands;
use super::rounding::{Half, HalfType};
use super::simd::{exp, max, sum_by, vectorized};
use super::{has_device_kernels, has_own_kernels, host};
use crate::Pass;
use crate::precision::to_f32;

/// True classes and their smoothing.
#[derive(Debug, Clone)]
pub struct SmoothedTargets {
    pub(super) classes: Arc<[u32]>,
    pub(super) true_mass: f64,
    pub(super) other_mass: f64,
    pub(super) constant: f64,
    /// Type of the computation, if it is not FP32.
    half: Option<Half>,
}

impl SmoothedTargets {
    /// Smooths `classes` over `vocabulary` classes.
    pub fn new(classes: &[u32], vocabulary: usize, epsilon: f64, definition: Smoothing) -> Self {
        let v = vocabulary as f64;
        let (true_mass, other_mass, constant) = match definition {
            _ if epsilon == 0.0 => (1.0, 0.0, 0.0),
            Smoothing::AllClasses => (1.0 - epsilon + epsilon / v, epsilon / v, 0.0),
            Smoothing::OtherClasses => {
                let (on, off) = (1.0 - epsilon, epsilon / (v - 1.0));
                // The target's entropy, with tensor2tensor's guard in the logarithm.
                (on, off, -(on * on.ln() + (v - 1.0) * off * (off + 1e-20).ln()))
            }
        };
        Self { classes: classes.into(), true_mass, other_mass, constant, half: None }
    }

    /// Computes in FP32, or in the half type of the pass if `loss` is not one of its FP32 islands.
    pub fn in_pass(self, pass: &Pass) -> Self {
        Self { half: pass.compute.half().filter(|_| !pass.islands().loss), ..self }
    }

    /// The smoothed and the plain loss of a row.
    fn row_loss(&self, row: &[f32], class: u32) -> (f64, f64) {
        let (lse, sum) = log_sum_exp(row);
        let (lse, true_logit) = (f64::from(lse), f64::from(row[class as usize]));
        let smooth = lse
            - (self.true_mass - self.other_mass) * true_logit
            - self.other_mass * f64::from(sum)
            - self.constant;
        (smooth, lse - true_logit)
    }

    /// Replaces logits by their gradient.
    fn row_gradient(&self, row: &mut [f32], class: u32, smooth: f32, plain: f32) {
        if let Some(half) = self.half {
            return islands::loss_gradient(half, row, self, class as usize, [smooth, plain]);
        }
        softmax_minus(row, smooth + plain, smooth * self.other_mass as f32);
        row[class as usize] -= smooth * (self.true_mass - self.other_mass) as f32 + plain;
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait CrossEntropyOp: Backend {
    /// logits `[rows, vocabulary]` -> `[2]`: the smoothed loss and the plain negative
    /// log-likelihood, both summed over rows.
    #[fusion(dtype = DType::F32, shape = burn::tensor::Shape::from([2]))]
    fn loss(logits: FloatTensor<Self>, targets: SmoothedTargets) -> FloatTensor<Self>;

    /// Gradient of the logits, given the gradients of the two sums.
    #[fusion(dtype = logits, shape = logits)]
    fn loss_backward(
        logits: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        targets: SmoothedTargets,
    ) -> FloatTensor<Self>;
}

impl CrossEntropyOp for Flex {
    fn loss(logits: FloatTensor<Self>, targets: SmoothedTargets) -> FloatTensor<Self> {
        let vocabulary = logits.shape()[1];
        let classes = targets.classes.par_iter();
        let logits = logits.to_contiguous();
        let values = host::Source::new(&logits);
        if let Some(half) = targets.half {
            let row = |room: &mut Vec<f32>, (i, &class): (usize, &u32)| {
                room.resize(vocabulary, 0.0);
                values.read(i * vocabulary, room);
                islands::row_loss(half, room, &targets, class as usize)
            };
            let rows: Vec<(f32, f32)> = classes.enumerate().map_init(Vec::new, row).collect();
            return host::tensor(islands::loss(half, &rows).to_vec(), [2], DType::F32);
        }
        // One row at a time, because the logits are the largest tensor in memory.
        let rows: Vec<(f64, f64)> = classes
            .enumerate()
            .map_init(Vec::new, |room, (i, &class)| {
                targets.row_loss(values.part(i * vocabulary, vocabulary, room), class)
            })
            .collect();
        let (smooth, plain) = rows.iter().fold((0.0, 0.0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        host::tensor(vec![smooth as f32, plain as f32], [2], DType::F32)
    }

    fn loss_backward(
        logits: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        targets: SmoothedTargets,
    ) -> FloatTensor<Self> {
        let (shape, dtype) = (logits.shape(), logits.dtype());
        let vocabulary = shape[1];
        let gradient = host::values(&gradient);
        let (smooth, plain) = (gradient[0], gradient[1]);
        // The logits are no longer needed: their memory is reused for the gradient.
        match Half::of(dtype) {
            Some(Half::Bf16) => return half_gradient::<bf16>(logits, &targets, smooth, plain),
            Some(Half::Fp16) => return half_gradient::<f16>(logits, &targets, smooth, plain),
            None => {}
        }
        let mut values = host::into_values(logits);
        let rows = values.par_chunks_exact_mut(vocabulary).zip(targets.classes.par_iter());
        rows.for_each(|(row, &class)| targets.row_gradient(row, class, smooth, plain));
        host::tensor(values, shape, dtype)
    }
}

fn half_gradient<H: HalfType>(
    logits: FlexTensor,
    targets: &SmoothedTargets,
    smooth: f32,
    plain: f32,
) -> FlexTensor {
    let (shape, vocabulary) = (logits.shape(), logits.shape()[1]);
    let mut values = host::into_stored::<H>(logits);
    let rows = values.par_chunks_exact_mut(vocabulary).zip(targets.classes.par_iter());
    rows.for_each_init(
        || vec![0f32; vocabulary],
        |wide, (row, &class)| {
            H::widen(wide, row);
            targets.row_gradient(wide, class, smooth, plain);
            H::narrow(row, wide);
        },
    );
    host::stored(values, shape)
}

vectorized! {
    /// log sum exp and the plain sum of a row.
    fn log_sum_exp(row: &[f32]) -> (f32, f32) {
        let largest = max(row);
        let mass = sum_by(row, |x| exp::<FMA>(x - largest));
        (largest + mass.ln(), sum_by(row, |x| x))
    }

    /// row = factor * softmax(row) - shift.
    fn softmax_minus(row: &mut [f32], factor: f32, shift: f32) {
        let largest = max(row);
        for x in row.iter_mut() {
            *x = exp::<FMA>(*x - largest);
        }
        let scale = factor / sum_by(row, |x| x);
        for x in row.iter_mut() {
            *x = *x * scale - shift;
        }
    }
}

impl<B: CrossEntropyOp, C: CheckpointStrategy> CrossEntropyOp for Autodiff<B, C> {
    fn loss(logits: FloatTensor<Self>, targets: SmoothedTargets) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Loss;
        impl<B: CrossEntropyOp> Backward<B, 1> for Loss {
            type State = (FloatTensor<B>, SmoothedTargets);
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    let (logits, targets) = ops.state;
                    grads.register::<B>(parent.id, B::loss_backward(logits, gradient, targets));
                }
            }
        }
        let (logits, node) = logits.into_parts();
        match Loss.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                prep.finish((logits.clone(), targets.clone()), B::loss(logits, targets))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::loss(logits, targets)),
        }
    }

    fn loss_backward(_: FloatTensor<Self>, _: FloatTensor<Self>, _: SmoothedTargets) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Sums over the rows of `logits` `[rows, vocabulary]`: (smoothed loss, negative log-likelihood),
/// each `[1]`, FP32.
///
/// # Panics
/// If the number of classes differs from the number of rows.
pub fn cross_entropy(logits: Tensor<2>, targets: &SmoothedTargets) -> (Tensor<1>, Tensor<1>) {
    assert_eq!(logits.dims()[0], targets.classes.len(), "a class for every row of logits");
    let sums = sums(logits, targets);
    (sums.clone().narrow(0, 0, 1), sums.narrow(0, 1, 1))
}

/// Both sums as a tensor `[2]`.
pub(super) fn sums(logits: Tensor<2>, targets: &SmoothedTargets) -> Tensor<1> {
    let on_cpu = has_own_kernels(&logits.device());
    assert!(targets.half.is_none() || on_cpu, "only the CPU computes losses without FP32");
    if has_device_kernels(&logits.device()) {
        return Tensor::from_dispatch(Dispatch::loss(logits.into_dispatch(), targets.clone()));
    }
    composed(to_f32(logits), targets)
}

pub(super) fn composed(logits: Tensor<2>, targets: &SmoothedTargets) -> Tensor<1> {
    let [rows, _] = logits.dims();
    let device = logits.device();
    let classes: Vec<i32> = targets.classes.iter().map(|&class| class as i32).collect();
    let classes = Tensor::<2, Int>::from_data(TensorData::new(classes, [rows, 1]), &device);
    let largest = logits.clone().detach().max_dim(1);
    let lse = (logits.clone() - largest.clone()).exp().sum_dim(1).log() + largest;
    let plain = lse.clone() - logits.clone().gather(1, classes);
    let smooth = if targets.other_mass == 0.0 {
        plain.clone()
    } else {
        let true_part = targets.true_mass - targets.other_mass;
        plain.clone() * true_part + lse * (1.0 - true_part)
            - logits.sum_dim(1) * targets.other_mass
            - targets.constant
    };
    Tensor::cat(vec![smooth.sum(), plain.sum()], 0)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;
    use crate::random::Key;

    fn logits(device: &Device) -> Tensor<2> {
        let key = Key::new(11, 0, 0);
        let values: Vec<f32> = (0..9 * 53).map(|i| 4.0 * key.normal(i)).collect();
        Tensor::from_data(TensorData::new(values, [9, 53]), device).require_grad()
    }

    const CLASSES: [u32; 9] = [0, 52, 7, 7, 13, 1, 2, 40, 33];

    #[test]
    fn kernel_and_composition_agree_in_value_and_gradient() {
        let device = Device::flex().autodiff();
        for (epsilon, definition) in
            [(0.0, Smoothing::AllClasses), (0.1, Smoothing::AllClasses), (0.1, Smoothing::OtherClasses)]
        {
            let targets = SmoothedTargets::new(&CLASSES, 53, epsilon, definition);
            let x = logits(&device);
            let (own, own_plain) = cross_entropy(x.clone(), &targets);
            let own_gradient =
                host_values(x.grad(&(own.clone() + own_plain.clone() * 0.25).backward()).unwrap());
            let x = logits(&device);
            let sums = composed(x.clone(), &targets);
            let (reference, plain) = (sums.clone().narrow(0, 0, 1), sums.narrow(0, 1, 1));
            let gradient =
                host_values(x.grad(&(reference.clone() + plain.clone() * 0.25).backward()).unwrap());
            for (a, b) in [(own, reference), (own_plain, plain)] {
                let (a, b) = (host_values(a.inner())[0], host_values(b.inner())[0]);
                assert!((a - b).abs() < 1e-5 * b.abs(), "{a} {b}");
            }
            for (a, b) in own_gradient.iter().zip(&gradient) {
                assert!((a - b).abs() < 2e-6, "{a} {b}");
            }
        }
    }

    #[test]
    fn the_least_loss_of_the_other_classes_definition_is_zero() {
        let v = 50usize;
        let (on, off) = (0.9f32, 0.1f32 / 49.0);
        let mut row = vec![off.ln(); v];
        row[3] = on.ln();
        let x = Tensor::<2>::from_data(TensorData::new(row, [1, v]), &Device::flex());
        let (loss, _) = cross_entropy(x, &SmoothedTargets::new(&[3], v, 0.1, Smoothing::OtherClasses));
        assert!(host_values(loss)[0].abs() < 1e-5);
    }

    #[test]
    fn a_nan_or_an_infinity_in_the_logits_comes_through() {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut row = vec![0.5f32; 40];
            row[20] = bad;
            let x = Tensor::<2>::from_data(TensorData::new(row, [1, 40]), &Device::flex());
            let (loss, _) = cross_entropy(x, &SmoothedTargets::new(&[3], 40, 0.1, Smoothing::AllClasses));
            assert!(!host_values(loss)[0].is_finite());
        }
    }
}
