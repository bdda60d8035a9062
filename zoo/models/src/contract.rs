//! Interfaces between models, losses and the training loop.

use burn::tensor::Tensor;
use zoo_ops::Pass;

/// One named part of a loss: a differentiable FP32 sum.
///
/// Sums can be added over micro-batches, over workers, and over several losses and tasks; means
/// cannot.
#[derive(Debug, Clone)]
pub struct Term {
    /// Name, e.g. `cross_entropy`.
    pub name: &'static str,
    /// Sum over the batch, shape `[1]`.
    pub sum: Tensor<1>,
    /// Weight in the training loss; 0 for terms that are only reported.
    pub weight: f64,
}

/// A training objective: the terms of a loss for models of type `M` and batches of type `B`.
pub trait Objective<M, B> {
    /// Denominators of the terms for this batch, in the order of [`Objective::terms`]. They need no
    /// computation, so the total of an update with several micro-batches is available before the
    /// first backward pass.
    fn counts(&self, batch: &B) -> Vec<(&'static str, f64)>;

    /// Sums of the terms for this batch.
    fn terms(&self, model: &M, batch: &B, pass: &mut Pass) -> Vec<Term>;
}

/// Running statistics (of batch norms) that forward passes propose. They are added to the model
/// only after an accepted update.
///
/// An objective keeps the statistics of its passes; the update then commits or discards them.
pub trait Running<M>: Send {
    /// Adds the statistics of this update's passes to the model, in the order of the micro-batches.
    fn commit(&self, model: M) -> M;

    /// Drops the statistics of this update's passes.
    fn discard(&self);
}
