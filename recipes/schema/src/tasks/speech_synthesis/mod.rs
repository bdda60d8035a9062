//! Speech synthesis: from text to spectrograms.

mod data;
mod loss;
mod search;
mod symbols;

pub use data::{SymbolTokenizerSpec, SynthesisDataSpec};
pub use loss::*;
pub use search::*;
pub use symbols::*;

use super::Checked;
use crate::spec::{Architecture, ModelSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to spectrograms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechSynthesis {}

impl TaskTypes for SpeechSynthesis {
    const TASK: Task = Task::SpeechSynthesis;
    type Data = SynthesisDataSpec;
    type Model = ModelSpec;
    type Loss = SpectrogramLossSpec;
    type Search = SynthesisSearchSpec;
}

impl Checked for SpeechSynthesis {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data::check(&recipe.data, findings);
        if let Some(Architecture::Synthesis(model)) = validate::architecture(recipe, findings) {
            validate::synthesis(model, findings);
        }
        recipe.loss.check(findings);
        for (name, search) in &recipe.decode {
            search.check(&format!("decode.{name}"), findings);
        }
    }
}
