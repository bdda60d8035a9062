//! Speech recognition: from recordings to text.

mod acoustic;
mod data;
mod loss;
mod model;
mod problems;
mod search;

pub use acoustic::*;
pub use data::{ClassTokenizerSpec, RecognitionDataSpec};
pub use loss::*;
pub use model::*;
pub use search::*;

use super::Checked;
use crate::spec::{IslandsSpec, RecipeOf, Task, TaskTypes};
use crate::validate::Findings;

/// From recordings to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechRecognition {}

impl TaskTypes for SpeechRecognition {
    const TASK: Task = Task::SpeechRecognition;
    type Data = RecognitionDataSpec;
    type Model = RecognitionModelSpec;
    type Loss = CtcLossSpec;
    type Search = CtcSearchSpec;
}

impl Checked for SpeechRecognition {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data::check(&recipe.data, findings);
        findings.blame("model.encoder", recipe.model.layers().problems());
        for (name, search) in &recipe.decode {
            search.check(&recipe.data.tokenizer, &format!("decode.{name}"), findings);
        }
    }

    fn needed_islands(recipe: &RecipeOf<Self>) -> IslandsSpec {
        let normed = recipe.model.layers().layer.iter().any(AcousticLayerSpec::has_norm);
        IslandsSpec { norms: !normed, ..IslandsSpec::default() }
    }
}
