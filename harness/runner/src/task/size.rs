//! Size of a recipe's model and of its work, known before there is data.

use zoo_models::Cost;
use zoo_results::report::grouped;

/// Size of a model without its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelSize {
    /// Vocabulary rows.
    pub rows: usize,
    /// Whether `rows` is exact; otherwise it is an estimate.
    pub exact: bool,
    /// Parameters and operations.
    pub cost: Cost,
}

impl ModelSize {
    /// Number of parameters as text: `210,808,832`, or `about …` if the vocabulary is counted
    /// during data preparation.
    pub fn parameters(&self) -> String {
        let about = if self.exact { "" } else { "about " };
        format!("{about}{}", grouped(self.cost.parameters))
    }
}

/// Lengths and numbers of a recipe's examples, as far as the recipe determines them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Length of an example: tokens of a sentence, frames of an utterance.
    pub example: f64,
    /// Number of examples of a batch.
    pub batch: f64,
    /// Size of a batch in the unit of the recipe's batching: sentences, tokens, utterances or whole
    /// seconds.
    pub unit: u32,
    /// Number of counted sides of an example: two for text with its translation.
    pub sides: f64,
    /// Number of training examples, if the recipe itself generates or joins them.
    pub examples: Option<f64>,
    /// How often an epoch contains each example.
    pub copies: usize,
    /// Models of one run, each with all parameters: one for each part of a cross-validation.
    pub models: u64,
}
