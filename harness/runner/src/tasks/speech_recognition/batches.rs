//! Batches of frames in the models' format.

use zoo_datasets::speech::{self, PreparedSpeech, SpeechError, SpeechSplit};
use zoo_models::tasks::speech_recognition::{FrameGrid, SpeechBatch};
use zoo_recipes::RecordingBatchingSpec;

/// Seconds of speech per evaluation batch if the recipe does not batch by seconds.
const EVALUATION_SECONDS: f64 = 120.0;

/// Converts a padded batch to the models' format.
///
/// # Errors
/// The model's kernels are longer than every utterance of the batch.
pub fn of_models(batch: speech::SpeechBatch, grid: FrameGrid) -> Result<SpeechBatch, String> {
    let longest = batch.longest();
    if longest < grid.least() {
        let least = grid.least();
        return Err(format!(
            "the longest recording of a batch has {longest} frames, and the model reads {least} at least\n\
             hint: skip short recordings with data.filter.min_seconds"
        ));
    }
    Ok(SpeechBatch { features: batch.features, lengths: batch.lengths, labels: batch.labels })
}

/// Batches of all utterances of a split, grouped by length. If training batches by seconds, batches
/// have the size of training batches, so that losses summed over a batch can be compared.
pub fn evaluation<'a>(
    prepared: &'a PreparedSpeech,
    split: &'a SpeechSplit,
    batching: &RecordingBatchingSpec,
) -> impl Iterator<Item = Result<speech::SpeechBatch, SpeechError>> + use<'a> {
    let most = match batching {
        RecordingBatchingSpec::Seconds { max_seconds } => *max_seconds,
        RecordingBatchingSpec::Utterances { .. } => EVALUATION_SECONDS,
    };
    speech::evaluation_batches(prepared, split, most)
}
