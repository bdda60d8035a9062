//! Translation: from text to text in another language.

mod loss;

pub use loss::*;

use super::Checked;
use crate::spec::{DataSpec, DecodeSpec, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to text in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Translation {}

impl TaskTypes for Translation {
    const TASK: Task = Task::Translation;
    type Data = DataSpec;
    type Model = ModelSpec;
    type Loss = TokenLossSpec;
    type Search = DecodeSpec;
}

impl Checked for Translation {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        recipe.loss.check(findings);
        validate::sequences(recipe, findings);
    }
}
