//! The blocks that only some tasks have. Each task is a folder here, and a line of the list in
//! [`crate::spec`].

pub mod image_classification;
pub mod language_modelling;
pub mod speech_recognition;
pub mod speech_synthesis;
pub mod text_classification;
pub mod translation;

pub use image_classification::ImageClassification;
pub use language_modelling::LanguageModelling;
pub use speech_recognition::SpeechRecognition;
pub use speech_synthesis::SpeechSynthesis;
pub use text_classification::TextClassification;
pub use translation::Translation;

use crate::spec::{IslandsSpec, RecipeOf, TaskTypes};
use crate::validate::Findings;

/// A task whose blocks can be checked.
pub(crate) trait Checked: TaskTypes {
    /// Checks what a schema cannot say of `[data]`, `[model]`, `[loss]` and `[decode.NAME]`.
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>);

    /// The FP32 islands (`precision.islands`) that the model cannot train without, or does not
    /// have. Only the loss of a model with a cross-entropy of logits is not needed.
    fn needed_islands(_: &RecipeOf<Self>) -> IslandsSpec {
        IslandsSpec::ALL_BUT_LOSS
    }
}
