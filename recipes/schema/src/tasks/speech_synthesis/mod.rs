//! Speech synthesis: from text to spectrograms.

mod check;
mod data;
mod loss;
mod model;
mod search;
mod symbols;
mod tacotron;

pub use data::{SymbolTokenizerSpec, SynthesisDataSpec};
pub use loss::*;
pub use model::*;
pub use search::*;
pub use symbols::*;
pub use tacotron::*;

use super::Checked;
use crate::spec::{IslandsSpec, RecipeOf, Task, TaskTypes};
use crate::validate::Findings;

/// From text to spectrograms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechSynthesis {}

impl TaskTypes for SpeechSynthesis {
    const TASK: Task = Task::SpeechSynthesis;
    type Data = SynthesisDataSpec;
    type Model = SynthesisModelSpec;
    type Loss = SpectrogramLossSpec;
    type Search = SynthesisSearchSpec;
}

impl Checked for SpeechSynthesis {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data::check(&recipe.data, findings);
        check::model(&recipe.model, findings);
        recipe.loss.check(findings);
        for (name, search) in &recipe.decode {
            search.check(&format!("decode.{name}"), findings);
        }
    }

    /// Encoder and post-net have convolutions with batch norms.
    fn needed_islands(_: &RecipeOf<Self>) -> IslandsSpec {
        IslandsSpec { norms: false, ..IslandsSpec::default() }
    }
}
