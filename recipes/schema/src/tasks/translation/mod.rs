//! Translation: from text to text in another language.

mod loss;
mod search;

pub use loss::*;
pub use search::*;

use super::Checked;
use crate::spec::{DataSpec, DecoderSpec, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to text in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Translation {}

impl TaskTypes for Translation {
    const TASK: Task = Task::Translation;
    type Data = DataSpec;
    type Model = ModelSpec;
    type Loss = TokenLossSpec;
    type Search = TokenSearchSpec;
}

impl Checked for Translation {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        recipe.loss.check(findings);
        validate::sequences(recipe, findings);
        let recurrent = matches!(recipe.model.decoder, DecoderSpec::Recurrent(_));
        for (name, search) in &recipe.decode {
            search.check(recurrent, &format!("decode.{name}"), findings);
        }
    }
}
