//! Random texts and frames with the length distribution of LJSpeech, for timing without the data.

use zoo_models::random::Key;
use zoo_models::tasks::speech_synthesis::SynthesisBatch;
use zoo_recipes::RecordingBatchingSpec;
use zoo_training::batches::Fetched;

use super::Recipe;
use super::material::SynthesisMaterial;
use crate::stages::timed_arm::{KEPT_UPDATES, Update, Updates};
use crate::tasks::recordings::hop_ms;

/// Mean length of an LJSpeech clip, in seconds. Lengths are spread evenly, mostly from 3 to 10
/// seconds.
const USUAL_SECONDS: f64 = 6.57;
/// Standard deviation of the clip length, in seconds.
const SPREAD_SECONDS: f64 = 2.18;
/// Symbols per second of speech in LJSpeech.
const SYMBOLS_PER_SECOND: f64 = 15.2;

/// Generated batches for `KEPT_UPDATES` updates.
pub fn updates(recipe: &Recipe, material: &SynthesisMaterial) -> Updates<SynthesisBatch> {
    let utterances = match recipe.data.batching {
        RecordingBatchingSpec::Seconds { max_seconds } => (max_seconds / USUAL_SECONDS).max(1.0) as u32,
        RecordingBatchingSpec::Utterances { utterances } => utterances,
    };
    let update = |update: u64| -> Update<SynthesisBatch> {
        let batch = |batch: u32| {
            let key = Key::new(update, 20 + u64::from(batch), 0);
            let seconds = (0..utterances)
                .map(|i| (USUAL_SECONDS + SPREAD_SECONDS * f64::from(key.normal(i))).clamp(1.1, 10.1));
            let frames: Vec<usize> = seconds.map(|s| (1000.0 * s / hop_ms(recipe)) as usize).collect();
            fetched(recipe, material, &frames, update)
        };
        (0..recipe.train.batches_per_update).map(batch).collect()
    };
    Updates { updates: (0..KEPT_UPDATES.min(2)).map(update).collect(), seconds: None }
}

/// An endless iterator of updates with one batch each. All utterances have `frames` frames.
pub fn full_batches(
    recipe: &Recipe,
    material: &SynthesisMaterial,
    utterances: u32,
    frames: u32,
) -> impl Iterator<Item = Update<SynthesisBatch>> {
    let lengths = vec![frames as usize; utterances as usize];
    (0..).map(move |update| vec![fetched(recipe, material, &lengths, update)])
}

fn fetched(
    recipe: &Recipe,
    material: &SynthesisMaterial,
    lengths: &[usize],
    update: u64,
) -> Fetched<SynthesisBatch> {
    let lengths: Vec<usize> = lengths.iter().map(|&length| length.max(2)).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let width = material.width.mels + material.width.bins;
    let key = Key::new(update, 30, 0);
    let mut frames = vec![0.0; lengths.len() * longest * width];
    for (&length, to) in lengths.iter().zip(frames.chunks_exact_mut((longest * width).max(1))) {
        for (i, x) in to[..length * width].iter_mut().enumerate() {
            *x = key.normal(i as u32) - 5.0;
        }
    }
    let per_frame = SYMBOLS_PER_SECOND * hop_ms(recipe) / 1000.0;
    let most = (material.symbols as u32).max(2) - 1;
    let text = |length: usize| {
        let symbols = ((length as f64 * per_frame) as u32).max(1);
        (0..symbols).map(|i| 1 + key.bits(i) % most).collect()
    };
    let batch = SynthesisBatch {
        symbols: lengths.iter().map(|&length| text(length)).collect(),
        frames,
        width,
        stops: lengths.iter().map(|&length| length - 1).collect(),
        lengths,
    };
    let tokens = batch.lengths.iter().sum::<usize>() as u64;
    Fetched { batch, tokens }
}
