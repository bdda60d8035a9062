//! What models, losses and the training loop agree on.

use burn::tensor::Tensor;

use crate::precision::Compute;
use crate::random::Key;

/// The surroundings of one forward pass: compute type, and dropout when training.
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

    /// Is this a training pass?
    pub fn is_training(&self) -> bool {
        self.dropout.is_some()
    }

    /// The key of the next dropout site, or `None` when evaluating. Sites are numbered in the order of the calls, which a
    /// model fixes.
    pub fn dropout_key(&mut self) -> Option<Key> {
        let stream = self.dropout.as_mut()?;
        stream.site += 1;
        Some(Key::new(stream.seed, stream.site, stream.step))
    }
}

/// One named part of a loss: a differentiable FP32 sum, and the count that it is a sum over.
///
/// Sums compose: over micro-batches, over workers, over several losses and tasks. A mean would not.
#[derive(Debug, Clone)]
pub struct Term {
    /// Name, e.g. `cross_entropy`.
    pub name: &'static str,
    /// Sum over the batch, shape [1].
    pub sum: Tensor<1>,
    /// Weight in the training loss; 0 for what is only reported.
    pub weight: f64,
}

/// What is minimised over batches of type `B` for a model of type `M`.
pub trait Objective<M, B> {
    /// The denominators of the terms for this batch, in the order of [`Objective::terms`]: known without computing anything,
    /// so that an update of several micro-batches divides by their total before the first backward pass.
    fn counts(&self, batch: &B) -> Vec<(&'static str, f64)>;

    /// The sums for this batch.
    fn terms(&self, model: &M, batch: &B, pass: &mut Pass) -> Vec<Term>;
}

/// Running statistics (batch norm's) that forward passes propose. They enter the model on a good update alone.
///
/// An objective keeps what its passes computed beside the model; the update then commits it or throws it away.
pub trait Running<M>: Send {
    /// Folds what the passes of this update proposed into the model, in the order of the micro-batches.
    fn commit(&self, model: M) -> M;

    /// Forgets what the passes of this update proposed.
    fn discard(&self);
}
