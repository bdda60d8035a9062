//! Speech recognition: from recordings to text.

mod loss;
mod search;

pub use loss::*;
pub use search::*;

use super::Checked;
use crate::spec::{DataSpec, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From recordings to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechRecognition {}

impl TaskTypes for SpeechRecognition {
    const TASK: Task = Task::SpeechRecognition;
    type Data = DataSpec;
    type Model = ModelSpec;
    type Loss = CtcLossSpec;
    type Search = CtcSearchSpec;
}

impl Checked for SpeechRecognition {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        validate::sequences(recipe, findings);
        for (name, search) in &recipe.decode {
            search.check(&recipe.data.tokenizer, &format!("decode.{name}"), findings);
        }
    }
}
