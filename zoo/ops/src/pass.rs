//! What an operation is told of the forward pass that it is part of.

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
