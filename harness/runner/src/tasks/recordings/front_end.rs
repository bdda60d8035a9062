//! Conversion of a recording's samples to the features that a model reads.

use std::path::Path;

use zoo_datasets::audio::decode::{self, Audio};
use zoo_datasets::audio::{Extractor, Features, FrontEnd, Turn};
use zoo_recipes::{RecipeOf, untrusted};
use zoo_results::exit::Exit;

use super::RecordingTask;
use crate::error::{Failure, Result};

/// Front end of a recipe.
///
/// # Errors
/// The features cannot be computed.
pub fn front_end(recipe: &RecipeOf<impl RecordingTask>) -> Result<FrontEnd> {
    let data = &recipe.data;
    FrontEnd::new(&data.features, data.reader.sample_rate_hz())
        .map_err(|error| Failure::new(Exit::Recipe, error.to_string()))
}

/// Features of a recording. With `training`, the features of a training example in its first epoch,
/// with augmentation.
///
/// # Errors
/// The recording cannot be used.
pub fn features(recipe: &RecipeOf<impl RecordingTask>, file: &Path, training: bool) -> Result<Features> {
    let front_end = front_end(recipe)?;
    let bytes = untrusted::read(file).map_err(|error| Failure::io("read", file, &error))?;
    let audio = decoded(bytes, file, front_end.rate())?;
    let Some(augmentation) = recipe.data.augmentation.as_ref().filter(|_| training) else {
        return Ok(front_end.evaluation(&audio.samples, 0));
    };
    let extractor = Extractor::new(front_end, augmentation);
    let extractor = extractor.map_err(|error| Failure::new(Exit::Recipe, error.to_string()))?;
    // Turn 0 belongs to evaluation.
    Ok(extractor.training(&audio.samples, 0, Turn { seed: recipe.train.seed, epoch: 1, utterance: 0 }))
}

/// Decodes the bytes of a recording. `file` names it in messages.
///
/// # Errors
/// The bytes are not a recording, or it has another sample rate.
pub fn decoded(bytes: Vec<u8>, file: &Path, rate: u32) -> Result<Audio> {
    decode::decode_bytes(bytes, file, Some(rate)).map_err(|error| Failure::new(Exit::Data, error.to_string()))
}
