//! Effects of FP16 on the training of a real model, and of each mechanism of mixed precision. The
//! model is the smoke size of `reversal-transformer` with its recipe's settings, trained on strings
//! to be reversed.
//!
//! Each mechanism is switched off in turn. The CPU computes FP16 exactly, so the numbers are those
//! of a tensor core up to the order of FP32 sums.

use burn::tensor::{Device, FloatDType};
use zoo_models::Packed;
use zoo_models::ops::Islands;
use zoo_models::precision::Compute;
use zoo_models::random::Key;
use zoo_models::tasks::translation::{PairBatch, Seq2Seq, TranslationLoss, Vocabularies};
use zoo_models::{Objective, Pass, parameters};
use zoo_recipes::tasks::translation::TokenLossSpec;
use zoo_recipes::{
    Document, ListedTask, LossScalingSpec, RecipeOf, ScheduleSpec, Selection, Smoothing, Translation,
};
use zoo_training::Phase;
use zoo_training::parts::Unwatched;
use zoo_training::reduce::Local;
use zoo_training::scaling::LossScaler;
use zoo_training::update::{MicroBatch, PhaseReport, Surroundings, run_phase};

const F16: Compute = Compute(FloatDType::F16);
/// Number of words of the vocabulary. The strings use few of them, so most gradients of the logits
/// are small, as with a real vocabulary.
const WORDS: u32 = 8_000;
const SYMBOLS: u32 = 20;
/// Number of special tokens before the symbols: padding, unknown, begin, end.
const SPECIALS: u32 = 4;
const END: u32 = 3;

fn recipe() -> RecipeOf<Translation> {
    changed(Vec::new())
}

/// The recipe with the norms of its layers at another place.
fn with_norms(place: &str) -> RecipeOf<Translation> {
    changed(["encoder", "decoder"].map(|part| format!("model.{part}.norm={place}")).to_vec())
}

fn changed(overrides: Vec<String>) -> RecipeOf<Translation> {
    let document = Document::load("reversal-transformer").unwrap();
    let selection = Selection { arm: Some("mixed".into()), tier: Some("smoke".into()), overrides };
    Translation::take(document.resolve(&selection).unwrap().recipe).unwrap()
}

fn model(recipe: &RecipeOf<Translation>) -> Seq2Seq {
    let words = WORDS as usize;
    let vocabularies =
        Vocabularies { source: words, target: words, languages: 1, pad: 0, begin: 2, end: END };
    Seq2Seq::new(&recipe.model, &vocabularies, 1, &Device::flex().autodiff())
}

/// 1,024 strings of 4 symbols, and the reversed strings.
fn batch(index: u64) -> PairBatch {
    let (strings, length) = (1_024, 4);
    let key = Key::new(17, 0, index);
    let symbol = |i: u32| SPECIALS + (key.uniform(i) * SYMBOLS as f32) as u32 % SYMBOLS;
    let forward: Vec<Vec<u32>> =
        (0..strings).map(|i| (0..length).map(|j| symbol(i * length + j)).chain([END]).collect()).collect();
    let backward: Vec<Vec<u32>> = forward
        .iter()
        .map(|string| string[..length as usize].iter().rev().copied().chain([END]).collect())
        .collect();
    let target = Packed::new(&backward);
    let target_positions = target.tokens.len() as u64;
    PairBatch { source: Packed::new(&forward), target, language: 0, target_positions }
}

/// Of the gradients that are not zero in FP32, the share that is exactly zero. The loss is the mean
/// over the batch's tokens, times the scale.
fn vanished(recipe: &RecipeOf<Translation>, model: &Seq2Seq, scale: f32) -> f64 {
    let objective = TranslationLoss::new(&recipe.loss);
    let batch = batch(1_000);
    let of = |compute: Compute| -> Vec<f32> {
        let total = objective.counts(&batch)[0].1;
        let loss = objective.terms(model, &batch, &mut Pass::evaluation(compute)).remove(0).sum;
        let mut gradients = (loss * scale / total as f32).backward();
        let found = parameters::take_gradients(model, &mut gradients);
        found.into_iter().flatten().flat_map(parameters::host_values).collect()
    };
    let (exact, half) = (of(Compute::FP32), of(F16));
    assert!(half.iter().all(|x| x.is_finite()));
    let there: Vec<&f32> =
        exact.iter().zip(half.iter()).filter(|(exact, _)| **exact != 0.0).map(|(_, half)| half).collect();
    there.iter().filter(|half| ***half == 0.0).count() as f64 / there.len() as f64
}

/// Result of a run.
struct Run {
    model: Seq2Seq,
    /// Mean loss of the last ten updates.
    loss: f64,
    skipped: usize,
}

/// Trains a model. Weights of type FP32 are masters.
fn train(compute: Compute, weights: Compute, scaling: &LossScalingSpec, lr: f64, updates: u64) -> Run {
    let recipe = recipe();
    let objective = Box::new(TranslationLoss::new(&recipe.loss));
    let scaler = LossScaler::new(scaling).unwrap();
    let schedule = ScheduleSpec::Fixed { lr };
    let phase = Phase::single(objective, &recipe.train.optimizer, &schedule, scaler, None).unwrap();
    let mut phase = phase.with_weights(weights);
    let (mut model, mut losses, mut skipped) = (phase.begun(model(&recipe)).unwrap(), Vec::new(), 0);
    for micro_step in 0..updates {
        let batches = [MicroBatch { position: 0, batch: batch(micro_step) }];
        let around = Surroundings { compute, seed: 3, micro_step, group: 1 };
        let (moved, report) =
            run_phase(&mut phase, (0, 1), model, &batches, around, &mut Local, &mut Unwatched).unwrap();
        model = moved;
        skipped += usize::from(report.skipped);
        losses.push(report.loss());
    }
    let last = &losses[losses.len().saturating_sub(10)..];
    Run { model, loss: last.iter().sum::<f64>() / last.len() as f64, skipped }
}

fn values(model: &Seq2Seq) -> Vec<f32> {
    parameters::export(model).into_iter().flat_map(|parameter| parameter.values).collect()
}

/// Micikevicius et al. 2018, section 3.2. Most words never occur: once the model assigns them small
/// probabilities, these divided by the tokens of the batch are below the smallest fp16, and
/// gradients no longer reduce them.
#[test]
fn without_loss_scaling_gradients_vanish_and_the_loss_is_worse() {
    let [scaled, unscaled] = [LossScalingSpec::Static { scale: 1024.0 }, LossScalingSpec::None]
        .map(|scaling| train(F16, Compute::FP32, &scaling, 3e-3, 25));
    let [lost, saved] = [1.0, 1024.0].map(|scale| vanished(&recipe(), &scaled.model, scale));
    println!("{lost} {saved} of the gradients; losses {} {}", scaled.loss, unscaled.loss);
    assert!(lost > 0.4 && saved < 1e-4, "{lost} {saved}");
    assert!(unscaled.loss > scaled.loss + 0.1, "{} {}", unscaled.loss, scaled.loss);
}

/// Micikevicius et al. 2018, section 3.1. Steps of 1e-5 are less than half of the distance between
/// two fp16 values for every weight above 0.02.
#[test]
fn without_fp32_masters_updates_vanish() {
    let scaling = LossScalingSpec::Static { scale: 1024.0 };
    let [with, without] = [Compute::FP32, F16].map(|weights| {
        let start = values(&parameters::update(model(&recipe()), |_, value| weights.rounded(value)));
        let end = values(&train(F16, weights, &scaling, 1e-5, 3).model);
        start.iter().zip(&end).filter(|(start, end)| start == end).count() as f64 / end.len() as f64
    });
    println!("{with} {without} of the weights stand still");
    assert!(with < 0.01 && without > 0.5, "{with} {without}");
}

/// Weights and report of one update in FP16 with these islands.
fn updated(
    recipe: &RecipeOf<Translation>,
    label_smoothing: f64,
    islands: Islands,
) -> (Vec<f32>, PhaseReport) {
    let TokenLossSpec::CrossEntropy { denominator, .. } = recipe.loss;
    let loss = TokenLossSpec::CrossEntropy { label_smoothing, smoothing: Smoothing::AllClasses, denominator };
    let scaler = LossScaler::new(&LossScalingSpec::Static { scale: 1024.0 }).unwrap();
    let (objective, schedule) = (Box::new(TranslationLoss::new(&loss)), ScheduleSpec::Fixed { lr: 1e-3 });
    let phase = Phase::single(objective, &recipe.train.optimizer, &schedule, scaler, None).unwrap();
    let mut phase = phase.with_islands(islands);
    let around = Surroundings { compute: F16, seed: 3, micro_step: 0, group: 1 };
    let batches = [MicroBatch { position: 0, batch: batch(0) }];
    let begun = phase.begun(model(recipe)).unwrap();
    let (moved, report) =
        run_phase(&mut phase, (0, 1), begun, &batches, around, &mut Local, &mut Unwatched).unwrap();
    (values(&moved), report)
}

/// The logarithms of the probabilities of 8,000 words add up to at most -8,000 ln 8,000 = -71,900.
#[test]
fn a_smoothed_loss_without_fp32_overflows_at_every_update() {
    let recipe = recipe();
    let train = |label_smoothing, islands| updated(&recipe, label_smoothing, islands);
    let none = Islands { softmax: false, norms: false, loss: false };
    let (stays, overflowed) = train(0.1, none);
    assert!(overflowed.skipped && overflowed.loss() == f64::INFINITY, "{overflowed:?}");
    assert_eq!(stays, values(&model(&recipe)));
    let (_, kept) = train(0.1, Islands { loss: true, ..none });
    assert!(!kept.skipped, "{kept:?}");
    // Without smoothing the loss is that of FP32, but for its rounding.
    let ((halves, rounded), (exact, due)) = (train(0.0, none), train(0.0, Islands::ALL));
    assert!(!rounded.skipped && (rounded.loss() / due.loss() - 1.0).abs() < 0.01, "{rounded:?} {due:?}");
    assert_ne!(rounded.loss(), due.loss());
    assert_ne!(halves, exact);
}

#[test]
fn each_island_changes_the_update_of_a_transformer_whether_its_norms_come_before_or_after() {
    for place in ["pre", "post"] {
        let recipe = with_norms(place);
        let exact = updated(&recipe, 0.0, Islands::ALL).0;
        for one in [
            Islands { softmax: false, ..Islands::ALL },
            Islands { norms: false, ..Islands::ALL },
            Islands { loss: false, ..Islands::ALL },
        ] {
            assert_ne!(updated(&recipe, 0.0, one).0, exact, "{place} {one:?}");
        }
    }
}

/// Too large a scale becomes infinity in fp16. The update is skipped, and a scaler that backs off
/// reaches a scale that fits.
#[test]
fn an_overflow_leaves_the_update_out_and_the_scale_falls() {
    let (scale, start) = (2f64.powi(34), values(&model(&recipe())));
    let one = |compute| train(compute, Compute::FP32, &LossScalingSpec::Static { scale }, 1e-3, 1);
    let too_large = one(F16);
    assert_eq!((too_large.skipped, values(&too_large.model) == start), (1, true));
    let in_fp32 = one(Compute::FP32);
    assert_eq!((in_fp32.skipped, values(&in_fp32.model) == start), (0, false), "FP32 has the range");
    let backoff = LossScalingSpec::Backoff {
        scale_init: Some(scale),
        scale_min: 1.0,
        scale_max: scale,
        step_factor: 2.0,
        step_window: 2_000,
    };
    let backing_off = train(F16, Compute::FP32, &backoff, 1e-3, 20);
    println!("{} of 20 left out", backing_off.skipped);
    assert!((3..20).contains(&backing_off.skipped) && values(&backing_off.model) != start);
}
