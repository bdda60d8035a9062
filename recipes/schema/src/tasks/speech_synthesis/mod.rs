//! Speech synthesis: from text to spectrograms.

mod check;
mod model;
mod tacotron;

pub use model::*;
pub use tacotron::*;

use super::Checked;
use crate::spec::{DataSpec, DecodeSpec, LossSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From text to spectrograms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechSynthesis {}

impl TaskTypes for SpeechSynthesis {
    const TASK: Task = Task::SpeechSynthesis;
    type Data = DataSpec;
    type Model = SynthesisModelSpec;
    type Loss = LossSpec;
    type Search = DecodeSpec;
}

impl Checked for SpeechSynthesis {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        let searches = "free-running or teacher-forced";
        validate::sequences(recipe, (DecodeSpec::is_of_frames, searches), findings);
        check::model(recipe, findings);
    }
}
