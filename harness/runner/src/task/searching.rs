//! A search that can be timed by itself.

use serde_json::Value as Json;

use crate::error::Result;

/// Batches that are decoded repeatedly.
pub trait SearchBatches {
    /// Decodes batch `number` (cyclic). Returns the number of output tokens or frames.
    ///
    /// # Errors
    /// The search cannot be made.
    fn decode(&self, number: usize) -> Result<u64>;
}

/// A model with fresh weights, a search and generated sources.
pub struct Searching {
    /// Settings of the search.
    pub spec: Json,
    /// The sources.
    pub batches: Box<dyn SearchBatches>,
    /// Number of parameters of the model.
    pub parameters: u64,
    /// Vocabulary rows of the model.
    pub vocabulary: usize,
}
