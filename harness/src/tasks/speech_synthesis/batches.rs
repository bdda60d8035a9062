//! Batches of texts and frames, as the models read them.

use zoo_datasets::speech::{self, PreparedSpeech, SpeechError, SpeechSplit};
use zoo_models::models::synthesis::SynthesisBatch;

/// Seconds of speech that are evaluated together.
const EVALUATION_SECONDS: f64 = 120.0;

/// A padded batch as models read it.
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

/// All utterances of a split, those of like length together.
pub fn evaluation<'a>(
    prepared: &'a PreparedSpeech,
    split: &'a SpeechSplit,
) -> impl Iterator<Item = Result<speech::SpeechBatch, SpeechError>> + use<'a> {
    speech::evaluation_batches(prepared, split, EVALUATION_SECONDS)
}
