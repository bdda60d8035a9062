//! Translation: from text to text in another language.

mod check;
mod data;
mod loss;
mod search;

pub use data::*;
pub use loss::*;
pub use search::*;

use super::Checked;
use crate::spec::{Architecture, DecoderSpec, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to text in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Translation {}

impl TaskTypes for Translation {
    const TASK: Task = Task::Translation;
    type Data = TextDataSpec;
    type Model = ModelSpec;
    type Loss = TokenLossSpec;
    type Search = TokenSearchSpec;
}

impl Checked for Translation {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        check::data(&recipe.data, findings);
        if let Some(Architecture::Tokens(model)) = validate::architecture(recipe, findings) {
            validate::tokens(recipe, model, findings);
        }
        recipe.loss.check(findings);
        let recurrent = matches!(recipe.model.decoder, DecoderSpec::Recurrent(_));
        for (name, search) in &recipe.decode {
            search.check(recurrent, &format!("decode.{name}"), findings);
        }
    }
}
