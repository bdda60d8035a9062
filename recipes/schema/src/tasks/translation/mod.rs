//! Translation: from text to text in another language.

mod check;
mod data;
mod loss;
mod model;
mod parts;

pub use data::*;
pub use loss::*;
pub use model::*;
pub use parts::*;

use super::Checked;
use crate::spec::{IslandsSpec, RecipeOf, Task, TaskTypes, TokenSearchSpec};
use crate::validate::Findings;

/// From text to text in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Translation {}

impl TaskTypes for Translation {
    const TASK: Task = Task::Translation;
    type Data = TextDataSpec;
    type Model = TranslationModelSpec;
    type Loss = TokenLossSpec;
    type Search = TokenSearchSpec;
}

impl Checked for Translation {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        check::data(&recipe.data, findings);
        check::model(recipe, findings);
        recipe.loss.check(findings);
        let attends = recipe.model.decoder.has_one_attention();
        for (name, search) in &recipe.decode {
            search.check(attends, &format!("decode.{name}"), findings);
        }
    }

    fn needed_islands(recipe: &RecipeOf<Self>) -> IslandsSpec {
        match (&recipe.model.encoder, &recipe.model.decoder) {
            (TokenEncoderSpec::Transformer(_), TokenDecoderSpec::Transformer(_)) => IslandsSpec::NONE,
            _ => IslandsSpec::ALL_BUT_LOSS,
        }
    }
}
