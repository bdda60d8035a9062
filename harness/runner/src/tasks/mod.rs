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

use std::path::{Path, PathBuf};

use zoo_recipes::Recipe;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};
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

/// Reads the files of a folder of prepared data and compares each with its digest in that folder.
/// A folder without digests has one result, which is an error.
pub fn check_prepared(folder: &Path) -> Vec<(PathBuf, Result<()>)> {
    let checked = translation::check_prepared(folder).or_else(|| recordings::check_prepared(folder));
    checked.unwrap_or_else(|| {
        let message = format!("{}: no file in it has a digest", folder.display());
        let failure = Failure::new(Exit::Data, message).hint("remove the folder; the data is prepared again");
        vec![(folder.to_owned(), Err(failure))]
    })
}
