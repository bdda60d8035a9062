//! Random utterances with the length distribution of read speech, for timing without the data.

use zoo_models::random::Key;
use zoo_models::tasks::speech_recognition::SpeechBatch;
use zoo_recipes::RecordingBatchingSpec;
use zoo_training::batches::Fetched;

use super::Recipe;
use super::material::SpeechMaterial;
use crate::stages::timed_arm::{KEPT_UPDATES, Update, Updates};
use crate::tasks::recordings::{USUAL_SECONDS, hop_ms};

/// Standard deviation of the utterance length, in seconds.
const SPREAD_SECONDS: f64 = 3.8;
/// Labels per second of read English.
const LABELS_PER_SECOND: f64 = 14.5;

/// Generated batches for `KEPT_UPDATES` updates.
pub fn updates(recipe: &Recipe, frames: &SpeechMaterial) -> Updates<SpeechBatch> {
    let most = recipe.data.filter.max_seconds.unwrap_or(16.7);
    let lengths = |update: u64, batch: u32| -> Vec<f64> {
        let key = Key::new(update, 10 + u64::from(batch), 0);
        let length = |i: u32| (USUAL_SECONDS + SPREAD_SECONDS * f64::from(key.normal(i))).max(1.5).min(most);
        match recipe.data.batching {
            RecordingBatchingSpec::Seconds { max_seconds } => {
                let mut sum = 0.0;
                let fits = |length: &f64| {
                    sum += length;
                    sum <= max_seconds.max(most)
                };
                (0..).map(length).take_while(fits).collect()
            }
            RecordingBatchingSpec::Utterances { utterances } => (0..utterances).map(length).collect(),
        }
    };
    let per_second = 1000.0 / hop_ms(recipe);
    let update = |update: u64| -> Update<SpeechBatch> {
        let batches = 0..recipe.train.batches_per_update;
        batches.map(|batch| fetched(frames, &lengths(update, batch), per_second, update)).collect()
    };
    Updates { updates: (0..KEPT_UPDATES.min(4)).map(update).collect(), seconds: None }
}

/// An endless iterator of updates with one batch each. All utterances have `length` frames.
pub fn full_batches(
    recipe: &Recipe,
    frames: &SpeechMaterial,
    utterances: u32,
    length: u32,
) -> impl Iterator<Item = Update<SpeechBatch>> {
    let per_second = 1000.0 / hop_ms(recipe);
    let lengths = vec![f64::from(length) / per_second; utterances as usize];
    (0..).map(move |update| vec![fetched(frames, &lengths, per_second, update)])
}

fn fetched(frames: &SpeechMaterial, seconds: &[f64], per_second: f64, update: u64) -> Fetched<SpeechBatch> {
    let lengths: Vec<usize> = seconds.iter().map(|s| ((s * per_second) as usize).max(1)).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut features = vec![0.0; lengths.len() * longest * frames.features];
    let labels_of_frame = LABELS_PER_SECOND / per_second;
    let spoken = frames.classes.blank().max(1);
    let mut labels = Vec::with_capacity(lengths.len());
    for (i, (&length, to)) in
        lengths.iter().zip(features.chunks_exact_mut((longest * frames.features).max(1))).enumerate()
    {
        let (noise, said) = (Key::new(update, i as u64, 1), Key::new(update, i as u64, 2));
        let values = &mut to[..length * frames.features];
        values.iter_mut().zip(0..).for_each(|(x, at)| *x = noise.normal(at));
        let count = (length as f64 * labels_of_frame) as u32;
        // Adjacent labels differ, so that every utterance has a CTC alignment if the model outputs
        // one frame per label.
        let label = |at: u32| said.bits(0).wrapping_add(at) % spoken;
        labels.push((0..count).map(label).collect());
    }
    let tokens = lengths.iter().sum::<usize>() as u64;
    Fetched { batch: SpeechBatch { features, lengths, labels }, tokens }
}
