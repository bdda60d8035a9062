//! The tasks. Each task is a folder here and an arm of [`of`].
//!
//! The rest of the program calls a task through [`Task`] and, once its data is prepared, through
//! [`Ready`](crate::run::ready::Ready). No code outside this folder names a task.

mod classes;
#[cfg(test)]
mod guard;
mod image_classification;
mod language_modelling;
pub mod recordings;
#[cfg(test)]
mod shapes;
mod single_files;
mod speech_recognition;
mod speech_synthesis;
mod text_classification;
mod translation;

use zoo_recipes::Recipe;

use crate::task::Task;

/// The task of a recipe. This is the registry of all tasks.
pub fn of(recipe: &Recipe) -> Box<dyn Task + '_> {
    match recipe {
        Recipe::Translation(recipe) => Box::new(translation::Translation { recipe }),
        Recipe::SpeechRecognition(recipe) => Box::new(speech_recognition::SpeechRecognition { recipe }),
        Recipe::SpeechSynthesis(recipe) => Box::new(speech_synthesis::SpeechSynthesis { recipe }),
        Recipe::ImageClassification(recipe) => Box::new(image_classification::ImageClassification { recipe }),
        Recipe::LanguageModelling(recipe) => Box::new(language_modelling::LanguageModelling { recipe }),
        Recipe::TextClassification(recipe) => Box::new(text_classification::TextClassification { recipe }),
    }
}
