//! Batch normalisation of rows with channels last (Ioffe and Szegedy 2015; biased variance, epsilon
//! inside the root), with an optional ReLU after it. In FP32, or in the half type of a training pass
//! if `Islands::norms` is false.
//!
//! Padding rows do not enter the statistics. They are zero in the output and have no gradient.

mod flex;
mod kernels;

use std::sync::Arc;

use burn::backend::{Autodiff, Backend, Dispatch, backend_extension, tensor::FloatTensor};
#[cfg(feature = "fusion")]
use burn::tensor::DType;
use burn::tensor::{Tensor, TensorData, activation};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::rounding::Half;
use super::{has_device_kernels, has_own_kernels};
use crate::Pass;
use crate::precision::to_f32;

/// The rows that are not padding; `None` for all rows.
#[derive(Debug, Clone, Default)]
pub struct Rows(Option<Arc<[bool]>>);

impl Rows {
    /// Every row.
    pub fn all() -> Self {
        Self(None)
    }

    /// The rows whose value is true.
    pub fn of(valid: Vec<bool>) -> Self {
        Self(Some(valid.into()))
    }

    /// The first steps of sequences that are padded to `longest` rows each.
    pub fn of_lengths(lengths: &[usize], longest: usize) -> Self {
        Self::of(lengths.iter().flat_map(|&length| (0..longest).map(move |i| i < length)).collect())
    }

    /// Number of valid rows among `rows`.
    pub(super) fn count(&self, rows: usize) -> usize {
        self.0.as_ref().map_or(rows, |valid| valid.iter().filter(|&&valid| valid).count())
    }

    /// Which rows are valid; `None` if all are.
    #[cfg(feature = "cubecl")]
    pub(super) fn valid(&self) -> Option<&[bool]> {
        self.0.as_deref()
    }

    /// A range of the rows; empty if all rows are valid.
    pub(super) fn part(&self, first: usize, rows: usize) -> &[bool] {
        self.0.as_ref().map_or(&[], |valid| &valid[first..][..rows])
    }

    /// Mask `[rows, 1]` of zeros and ones; `None` if all rows are valid.
    pub fn mask(&self, like: &Tensor<2>) -> Option<Tensor<2>> {
        let valid = self.0.as_ref()?;
        let values: Vec<f32> = valid.iter().map(|&valid| f32::from(u8::from(valid))).collect();
        Some(Tensor::from_data(TensorData::new(values, [valid.len(), 1]), &like.device()))
    }
}

/// Mean and variance of every channel over the rows of a batch, for running statistics. Not
/// differentiable.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// Shape `[channels]`.
    pub mean: Tensor<1>,
    /// Shape `[channels]`. The mean square of the deviations, divided by the count (biased).
    pub variance: Tensor<1>,
    /// Number of rows.
    pub count: usize,
}

/// Settings of a normalisation.
#[derive(Debug, Clone)]
pub struct Normalization {
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether a ReLU follows.
    pub relu: bool,
    /// The valid rows.
    pub rows: Rows,
}

/// Arguments of the operation besides its tensors.
#[derive(Debug, Clone)]
pub struct Kind {
    pub(super) epsilon: f32,
    pub(super) relu: bool,
    pub(super) rows: Rows,
    /// Whether the statistics are computed from x, so that gradients pass through them.
    pub(super) of_batch: bool,
    /// Type of the computation, if it is not FP32. Only the CPU has it, and only for statistics that
    /// are computed from x.
    pub(super) half: Option<Half>,
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait BatchNormOp: Backend {
    /// Mean and biased variance `[channels]` of x `[rows, channels]`, in FP32 or in a half type.
    #[fusion(meta = |x, _, _| (channels_of(x), channels_of(x)))]
    fn batch_moments(
        x: FloatTensor<Self>,
        rows: Rows,
        half: Option<Half>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// x `[rows, channels]` FP32 or half; mean, variance, gamma and beta `[channels]` -> FP32
    /// `[rows, channels]`.
    #[fusion(dtype = DType::F32, shape = x)]
    fn batch_normalized(
        x: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self>;

    /// Gradients of x (in its type), gamma and beta.
    #[fusion(meta = |x, mean, _, _, _, _, _| (x.clone(), mean.clone(), mean.clone()))]
    fn batch_normalized_backward(
        x: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        kind: Kind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Type of an FP32 tensor with one number for each channel.
#[cfg(feature = "fusion")]
fn channels_of(x: &burn::backend::fusion::custom::TensorSpec) -> burn::backend::fusion::custom::TensorSpec {
    burn::backend::fusion::custom::TensorSpec::new([x.shape[1]].into(), DType::F32)
}

impl<B: BatchNormOp, C: CheckpointStrategy> BatchNormOp for Autodiff<B, C> {
    fn batch_moments(
        _: FloatTensor<Self>,
        _: Rows,
        _: Option<Half>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("statistics are taken on the inner backend")
    }

    fn batch_normalized(
        x: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Normalized;
        impl<B: BatchNormOp> Backward<B, 3> for Normalized {
            type State = (FloatTensor<B>, [FloatTensor<B>; 4], Kind);
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (x, [mean, variance, gamma, beta], kind) = ops.state;
                let (dx, dgamma, dbeta) =
                    B::batch_normalized_backward(x, mean, variance, gamma, beta, gradient, kind);
                for (parent, gradient) in ops.parents.into_iter().zip([dx, dgamma, dbeta]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((x, x_node), (gamma, gamma_node), (beta, beta_node)) =
            (x.into_parts(), gamma.into_parts(), beta.into_parts());
        let (mean, variance) = (mean.into_primitive(), variance.into_primitive());
        let out = B::batch_normalized(
            x.clone(),
            mean.clone(),
            variance.clone(),
            gamma.clone(),
            beta.clone(),
            kind.clone(),
        );
        match Normalized.prepare::<C>([x_node, gamma_node, beta_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, [mean, variance, gamma, beta], kind), out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }

    fn batch_normalized_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Kind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Mean and variance of x `[rows, channels]` of any float type over the valid rows; on the device,
/// without autodiff. With `half`, which only the CPU has, they are computed in that type.
pub(super) fn batch_statistics(x: Tensor<2>, rows: &Rows, half: Option<Half>) -> Statistics {
    let x = x.inner();
    let count = rows.count(x.dims()[0]);
    if has_operation(&x) {
        let (mean, variance) = Dispatch::batch_moments(x.into_dispatch(), rows.clone(), half);
        let (mean, variance) = (Tensor::from_dispatch(mean), Tensor::from_dispatch(variance));
        return Statistics { mean, variance, count };
    }
    composed_statistics(x, rows)
}

fn composed_statistics(x: Tensor<2>, rows: &Rows) -> Statistics {
    let count = rows.count(x.dims()[0]);
    let (mean, variance) = moments(&to_f32(x), rows);
    Statistics { mean: mean.squeeze_dim(0), variance: variance.squeeze_dim(0), count }
}

/// Normalises x `[rows, channels]` of any float type by the statistics of its rows, then scales by
/// gamma and shifts by beta; in FP32, or in the half type of the pass if `norms` is not one of its
/// FP32 islands. The result is FP32. Also returns the statistics, for running statistics.
///
/// # Panics
/// If the pass has no such island, on devices other than the CPU.
pub fn batch_norm(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    how: &Normalization,
    pass: &Pass,
) -> (Tensor<2>, Statistics) {
    let half = pass.compute.half().filter(|_| !pass.islands().norms);
    assert!(half.is_none() || pass.islands().suit(&x.device()), "only the CPU computes norms without FP32");
    if !has_operation(&x) {
        return composed_with_statistics(x, gamma, beta, how);
    }
    let statistics = batch_statistics(x.clone(), &how.rows, half);
    (own(x, gamma, beta, &statistics, how, (true, half)), statistics)
}

/// Like [`batch_norm`] in FP32, with given statistics that do not depend on x, such as running
/// statistics in evaluation.
pub fn batch_norm_by(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    statistics: &Statistics,
    how: &Normalization,
) -> Tensor<2> {
    match has_operation(&x) {
        true => own(x, gamma, beta, statistics, how, (false, None)),
        false => composed(x, gamma, beta, Some(statistics), how),
    }
}

/// Whether there is a kernel for x. A GPU cannot allocate an empty buffer.
fn has_operation(x: &Tensor<2>) -> bool {
    let [rows, channels] = x.dims();
    has_own_kernels(&x.device()) || has_device_kernels(&x.device()) && rows * channels > 0
}

fn own(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    statistics: &Statistics,
    how: &Normalization,
    (of_batch, half): (bool, Option<Half>),
) -> Tensor<2> {
    // All tensors of an operation are either with or without autodiff.
    let given = |values: &Tensor<1>| match x.device().is_autodiff() {
        true => Tensor::from_inner(values.clone()),
        false => values.clone(),
    };
    let (mean, variance) = (given(&statistics.mean), given(&statistics.variance));
    let kind = Kind { epsilon: how.epsilon as f32, relu: how.relu, rows: how.rows.clone(), of_batch, half };
    let out = Dispatch::batch_normalized(
        x.into_dispatch(),
        mean.into_dispatch(),
        variance.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        kind,
    );
    Tensor::from_dispatch(out)
}

/// Mean and biased variance `[1, channels]`.
fn moments(x: &Tensor<2>, rows: &Rows) -> (Tensor<2>, Tensor<2>) {
    let Some(valid) = rows.mask(x) else {
        let mean = x.clone().mean_dim(0);
        let centred = x.clone() - mean.clone();
        return (mean, (centred.clone() * centred).mean_dim(0));
    };
    let count = rows.count(x.dims()[0]).max(1) as f64;
    let mean = (x.clone() * valid.clone()).sum_dim(0) / count;
    let centred = (x.clone() - mean.clone()) * valid;
    (mean, (centred.clone() * centred).sum_dim(0) / count)
}

/// Composition of [`batch_norm`].
pub(super) fn composed_with_statistics(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    how: &Normalization,
) -> (Tensor<2>, Statistics) {
    let statistics = composed_statistics(x.clone().inner(), &how.rows);
    (composed(x, gamma, beta, None, how), statistics)
}

/// Composition of [`batch_norm_by`]; without `statistics`, those of the batch are used.
pub(super) fn composed(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    statistics: Option<&Statistics>,
    how: &Normalization,
) -> Tensor<2> {
    let x = to_f32(x);
    let (mean, variance) = match statistics {
        None => moments(&x, &how.rows),
        Some(Statistics { mean, variance, .. }) => {
            let given = |values: &Tensor<1>| match x.device().is_autodiff() {
                true => Tensor::from_inner(values.clone()).unsqueeze(),
                false => values.clone().unsqueeze(),
            };
            (given(mean), given(variance))
        }
    };
    let valid = how.rows.mask(&x);
    let out = (x - mean) / (variance + how.epsilon).sqrt() * gamma.unsqueeze() + beta.unsqueeze();
    let out = if how.relu { activation::relu(out) } else { out };
    match valid {
        Some(valid) => out * valid,
        None => out,
    }
}

#[cfg(test)]
mod tests;
