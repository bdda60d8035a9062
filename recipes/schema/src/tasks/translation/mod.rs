//! Translation: from text to text in another language.

mod check;
mod model;
mod parts;

pub use model::*;
pub use parts::*;

use super::Checked;
use crate::spec::{DataSpec, DecodeSpec, LossSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to text in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Translation {}

impl TaskTypes for Translation {
    const TASK: Task = Task::Translation;
    type Data = DataSpec;
    type Model = TranslationModelSpec;
    type Loss = LossSpec;
    type Search = DecodeSpec;
}

impl Checked for Translation {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        validate::sequences(recipe, (DecodeSpec::is_of_tokens, "greedy or beam"), findings);
        check::model(recipe, findings);
        check::attention(recipe, findings);
    }
}
