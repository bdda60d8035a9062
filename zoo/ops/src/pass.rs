//! What an operation is told of the forward pass that it is part of.

use burn::tensor::Tensor;

use crate::islands::Islands;
use crate::observed::{Observation, Site};
use crate::precision::Compute;
use crate::random::Key;

/// Settings of one forward pass: compute type, FP32 islands, dropout in training, and an
/// observation.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Type of matrix products.
    pub compute: Compute,
    islands: Islands,
    dropout: Option<Stream>,
    observation: Option<Observation>,
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
        Self {
            compute,
            islands: Islands::ALL,
            dropout: Some(Stream { seed, step, site: 0 }),
            observation: None,
        }
    }

    /// An evaluation pass: no dropout.
    pub fn evaluation(compute: Compute) -> Self {
        Self { compute, islands: Islands::ALL, dropout: None, observation: None }
    }

    /// Sets the operations that are computed in FP32 where products are not.
    pub fn with_islands(self, islands: Islands) -> Self {
        Self { islands, ..self }
    }

    /// The operations that are computed in FP32.
    pub fn islands(&self) -> Islands {
        self.islands
    }

    /// Reports the gradients of layers' outputs to an observation.
    pub fn observed(self, observation: Observation) -> Self {
        Self { observation: Some(observation), ..self }
    }

    /// States that `to` is computed from the parameter `from`, so that an observed layer with the
    /// weight `to` is named after the parameter.
    pub fn derived<const D: usize, const E: usize>(&self, from: &Tensor<D>, to: &Tensor<E>) {
        if let Some(observation) = &self.observation {
            observation.derive(from, to);
        }
    }

    /// The output of an operation with this weight, or with this input if it has no weight; `None`
    /// if the pass is not observed.
    pub(crate) fn output<const D: usize>(&self, kind: &'static str, weight: &Tensor<D>) -> Option<Site> {
        self.observation.as_ref()?.output(kind, weight)
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
