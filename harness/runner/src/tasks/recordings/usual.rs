//! Typical lengths and numbers of recordings, for estimates without the data.

use zoo_recipes::{AudioManifestSpec, RecipeOf, RecordingBatchingSpec, RecordingReaderSpec, SpeedSpec};

use super::RecordingTask;
use crate::task::shape::Shape;
use crate::task::size::Workload;

/// Mean length of a LibriSpeech training utterance, in seconds. Most are near the maximum length.
pub const USUAL_SECONDS: f64 = 12.3;

/// Hop between frames, in milliseconds.
pub fn hop_ms(recipe: &RecipeOf<impl RecordingTask>) -> f64 {
    recipe.data.features.hop_ms(recipe.data.reader.sample_rate_hz())
}

/// Frames of an utterance of typical length.
fn usual_frames(recipe: &RecipeOf<impl RecordingTask>) -> u32 {
    (1000.0 * USUAL_SECONDS / hop_ms(recipe)) as u32
}

/// Workload of training: the number of utterances, their frames and the batch size.
pub fn workload(recipe: &RecipeOf<impl RecordingTask>) -> Workload {
    let data = &recipe.data;
    let example = match &data.reader {
        RecordingReaderSpec::Tones(spec) => {
            let letters = f64::from(spec.most_words) * (f64::from(spec.longest_word) + 2.0) / 4.0;
            letters * spec.letter_ms / hop_ms(recipe)
        }
        RecordingReaderSpec::AudioManifest(_) => USUAL_SECONDS * 1000.0 / hop_ms(recipe),
    };
    let (batch, unit) = match data.batching {
        RecordingBatchingSpec::Seconds { max_seconds } => {
            ((max_seconds * 1000.0 / hop_ms(recipe) / example).max(1.0), max_seconds as u32)
        }
        RecordingBatchingSpec::Utterances { utterances: n } => (f64::from(n), n),
    };
    let examples = match &data.reader {
        RecordingReaderSpec::Tones(spec) => Some(f64::from(spec.train)),
        RecordingReaderSpec::AudioManifest(AudioManifestSpec { join: Some(join), .. }) => {
            Some(f64::from(join.utterances.get(data.training()).copied().unwrap_or(0)))
        }
        RecordingReaderSpec::AudioManifest(AudioManifestSpec { join: None, .. }) => None,
    };
    let copies = match data.augmentation.as_ref().and_then(|augmentation| augmentation.speed.as_ref()) {
        Some(SpeedSpec::Copies { factors }) => 1 + factors.len(),
        _ => 1,
    };
    Workload { example, batch, unit, sides: 1.0, examples, copies, models: 1 }
}

/// A batch of the recipe's size with utterances of typical length.
pub fn shape(recipe: &RecipeOf<impl RecordingTask>) -> Shape {
    let sentences = match recipe.data.batching {
        RecordingBatchingSpec::Seconds { max_seconds } => ((max_seconds / USUAL_SECONDS) as u32).max(1),
        RecordingBatchingSpec::Utterances { utterances } => utterances,
    };
    Shape { sentences, tokens: usual_frames(recipe) }
}
