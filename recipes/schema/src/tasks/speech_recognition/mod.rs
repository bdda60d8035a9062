//! Speech recognition: from recordings to text.

mod data;
mod loss;
mod search;

pub use data::{ClassTokenizerSpec, RecognitionDataSpec};
pub use loss::*;
pub use search::*;

use super::Checked;
use crate::spec::{Architecture, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From recordings to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechRecognition {}

impl TaskTypes for SpeechRecognition {
    const TASK: Task = Task::SpeechRecognition;
    type Data = RecognitionDataSpec;
    type Model = ModelSpec;
    type Loss = CtcLossSpec;
    type Search = CtcSearchSpec;
}

impl Checked for SpeechRecognition {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data::check(&recipe.data, findings);
        if let Some(Architecture::Acoustic(encoder)) = validate::architecture(recipe, findings) {
            findings.blame("model.encoder", encoder.problems());
        }
        for (name, search) in &recipe.decode {
            search.check(&recipe.data.tokenizer, &format!("decode.{name}"), findings);
        }
    }
}
