//! Speech synthesis: from text to spectrograms.

mod loss;
mod search;

pub use loss::*;
pub use search::*;

use super::Checked;
use crate::spec::{DataSpec, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to spectrograms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechSynthesis {}

impl TaskTypes for SpeechSynthesis {
    const TASK: Task = Task::SpeechSynthesis;
    type Data = DataSpec;
    type Model = ModelSpec;
    type Loss = SpectrogramLossSpec;
    type Search = SynthesisSearchSpec;
}

impl Checked for SpeechSynthesis {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        recipe.loss.check(findings);
        validate::sequences(recipe, findings);
        for (name, search) in &recipe.decode {
            search.check(&format!("decode.{name}"), findings);
        }
    }
}
