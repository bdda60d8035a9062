//! Interfaces between models, losses and the training loop.

use burn::tensor::Tensor;

use crate::precision::Compute;
use crate::random::Key;

/// Settings of one forward pass: compute type, and dropout in training.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Type of matrix products.
    pub compute: Compute,
    dropout: Option<Stream>,
}

#[derive(Debug, Clone)]
struct Stream {
    seed: u64,
    step: u64,
    site: u64,
}

impl Pass {
    /// A training pass. `step` is the micro-step, counted from the start of the run.
    pub fn training(compute: Compute, seed: u64, step: u64) -> Self {
        Self { compute, dropout: Some(Stream { seed, step, site: 0 }) }
    }

    /// An evaluation pass: no dropout.
    pub fn evaluation(compute: Compute) -> Self {
        Self { compute, dropout: None }
    }

    /// Whether this is a training pass.
    pub fn is_training(&self) -> bool {
        self.dropout.is_some()
    }

    /// The key of the next dropout site, or `None` in an evaluation pass. Sites are numbered in the
    /// order of the calls, which the model fixes.
    pub fn dropout_key(&mut self) -> Option<Key> {
        let stream = self.dropout.as_mut()?;
        stream.site += 1;
        Some(Key::new(stream.seed, stream.site, stream.step))
    }
}

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
