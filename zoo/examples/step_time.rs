//! Time of a training step's forward and backward pass, on the CPU, without data: compare with `tests/reference/step_time.py`.
//!
//! `cargo run --release -p zoo-models --example step_time -- [reversal|multi30k] [fp32|bf16] [steps]`

use std::time::Instant;

use burn::tensor::{Device, FloatDType};
use zoo_models::models::{Packed, PairBatch, Seq2Seq, TranslationLoss, Vocabularies};
use zoo_models::precision::Compute;
use zoo_models::random::Key;
use zoo_models::{Objective, Pass, parameters};
use zoo_recipes::{Document, Selection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |i: usize, default: &str| arguments.get(i).cloned().unwrap_or_else(|| default.to_string());
    let (recipe, rows, sentences, shortest, longest) = match argument(0, "reversal").as_str() {
        "multi30k" => ("multi30k-transformer-tiny", 9_720, 256, 10, 16),
        _ => ("reversal-transformer", 14, 64, 6, 51),
    };
    let compute = if argument(1, "fp32") == "bf16" { Compute(FloatDType::BF16) } else { Compute::FP32 };
    let steps: u64 = argument(2, "10").parse()?;

    let recipe = Document::load(recipe)?.resolve(&Selection::arm("fp32"))?.recipe;
    let vocabularies = Vocabularies { source: rows, target: rows, languages: 1, pad: 0, begin: 2, end: 1 };
    let model = Seq2Seq::new(&recipe.model, &vocabularies, 1, &Device::flex().autodiff());
    let objective = TranslationLoss::new(&recipe.loss);
    let key = Key::new(1, 0, 0);
    let lengths: Vec<u32> =
        (0..sentences).map(|i| shortest + key.bits(i) % (longest + 1 - shortest)).collect();
    let tokens: u32 = lengths.iter().sum();
    let side = Packed { tokens: (0..tokens).map(|i| 4 + key.bits(i) % (rows as u32 - 4)).collect(), lengths };
    let batch = PairBatch { source: side.clone(), target: side, language: 0, target_positions: 0 };

    let mut seconds = Vec::new();
    for step in 0..steps {
        let start = Instant::now();
        let mut pass = Pass::training(compute, 1, step);
        let terms = objective.terms(&model, &batch, &mut pass);
        let forward = start.elapsed();
        let loss = terms.into_iter().next().expect("a term").sum / f64::from(tokens);
        let mut gradients = loss.backward();
        let gradients = parameters::take_gradients(&model, &mut gradients);
        assert!(gradients.iter().all(Option::is_some));
        seconds.push((start.elapsed().as_secs_f64(), forward.as_secs_f64()));
    }
    seconds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (total, forward) = seconds[seconds.len() / 2];
    println!("{tokens} tokens a side, {}: {total:.3} s a step, {forward:.3} s of it forward", compute.name());
    Ok(())
}
