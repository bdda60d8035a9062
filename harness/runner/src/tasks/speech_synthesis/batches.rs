//! Batches of texts and frames in the models' format.

use zoo_datasets::speech::{self, PreparedSpeech, SpeechError, SpeechSplit};
use zoo_models::tasks::speech_synthesis::SynthesisBatch;

/// Seconds of speech per evaluation batch.
const EVALUATION_SECONDS: f64 = 120.0;

/// Converts a padded batch to the models' format.
pub fn of_models(batch: speech::SpeechBatch) -> SynthesisBatch {
    let stops = batch.ends();
    SynthesisBatch {
        symbols: batch.labels,
        frames: batch.features,
        width: batch.width,
        lengths: batch.lengths,
        stops,
    }
}

/// Batches of all utterances of a split, grouped by length.
pub fn evaluation<'a>(
    prepared: &'a PreparedSpeech,
    split: &'a SpeechSplit,
) -> impl Iterator<Item = Result<speech::SpeechBatch, SpeechError>> + use<'a> {
    speech::evaluation_batches(prepared, split, EVALUATION_SECONDS)
}
