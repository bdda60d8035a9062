//! What a recipe says of the size of its model and of its work before any data is there.

use zoo_models::models::Cost;
use zoo_recipes::Recipe;
use zoo_results::report::grouped;

use crate::tasks;

/// What can be said of a model without its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelSize {
    /// Rows of the vocabulary.
    pub rows: usize,
    /// Whether `rows` is known; otherwise it is a fair guess.
    pub exact: bool,
    /// Parameters and operations.
    pub cost: Cost,
}

impl ModelSize {
    /// `210,808,832`, or `about …` where the vocabulary is counted when the data is prepared.
    pub fn parameters(&self) -> String {
        let about = if self.exact { "" } else { "about " };
        format!("{about}{}", grouped(self.cost.parameters))
    }
}

/// Lengths and numbers of a recipe's examples, as far as the recipe alone tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Length of an example: tokens of a sentence, frames of an utterance.
    pub example: f64,
    /// Examples of a batch.
    pub batch: f64,
    /// Size of a batch in the unit of the recipe's batching: sentences, tokens, utterances or whole seconds.
    pub unit: u32,
    /// Sides of an example that are counted: two for text with its translation.
    pub sides: f64,
    /// Training examples, if the recipe itself generates or joins them.
    pub examples: Option<f64>,
    /// Times that an epoch has each example.
    pub copies: usize,
}

/// The size of a recipe's model; `None` if nothing can be said of its vocabulary.
pub fn of(recipe: &Recipe) -> Option<ModelSize> {
    tasks::of(recipe).size(recipe)
}

/// Width of most matrix products of a recipe's model.
pub fn width(recipe: &Recipe) -> usize {
    tasks::of(recipe).width(&recipe.model)
}
