//! Speech recognition: from recordings to text.

mod acoustic;
mod check;
mod model;
mod problems;

pub use acoustic::*;
pub use model::*;

use super::Checked;
use crate::spec::{DataSpec, DecodeSpec, LossSpec, RecipeOf, Task, TaskTypes};
use crate::validate::{self, Findings};

/// From recordings to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechRecognition {}

impl TaskTypes for SpeechRecognition {
    const TASK: Task = Task::SpeechRecognition;
    type Data = DataSpec;
    type Model = RecognitionModelSpec;
    type Loss = LossSpec;
    type Search = DecodeSpec;
}

impl Checked for SpeechRecognition {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        let searches = "ctc-greedy, ctc-lexicon or ctc-beam";
        validate::sequences(recipe, (DecodeSpec::is_of_classes, searches), findings);
        check::model(recipe, findings);
    }
}
