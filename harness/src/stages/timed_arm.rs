//! An arm as a clock wants it: a fresh model, and the batches of a few updates in memory.

use std::sync::Arc;
use std::time::Instant;

use zoo_datasets::prepare::PreparedSplit;
use zoo_models::models::{PairBatch, Seq2Seq, Vocabularies};
use zoo_models::precision::Compute;
use zoo_recipes::Recipe;
use zoo_training::batches::Fetched;
use zoo_training::timing::TimedArm;

use super::InitialWeights;
use super::batches::TrainingBatches;
use super::train::phase;
use crate::context::Context;
use crate::error::Result;

/// Updates whose batches are kept in memory; a longer block goes through them again.
pub const KEPT_UPDATES: u64 = 16;

/// What an arm is trained on.
pub struct Material<'a> {
    /// A split for each target language.
    pub train: Vec<&'a Arc<PreparedSplit>>,
    /// Sizes and special ids.
    pub vocabularies: Vocabularies,
}

/// The batches of an update.
pub type Update = Vec<Fetched<PairBatch>>;

/// The batches of some updates.
pub struct FirstUpdates {
    /// In order.
    pub updates: Vec<Update>,
    /// Seconds that one thread takes to make those of an update, median; `None` where nobody looked.
    pub seconds: Option<f64>,
}

/// The arm of a recipe, trained on these batches.
pub fn timed_arm(
    ctx: &Context,
    recipe: &Recipe,
    vocabularies: &Vocabularies,
    updates: Vec<Update>,
    initial: Option<&InitialWeights>,
    seed: u64,
) -> Result<TimedArm<Seq2Seq, PairBatch>> {
    let device = ctx.open_device()?.autodiff();
    let model = Seq2Seq::new(&recipe.model, vocabularies, seed, &device);
    let model = match initial {
        Some(initial) => initial.put_into(model)?,
        None => model,
    };
    let compute = Compute::of(&recipe.precision, ctx.device.is_cpu());
    Ok(TimedArm::new(model, vec![phase(recipe)?], updates, compute, seed)?)
}

/// The batches of the first updates that training would see.
pub fn first_updates(recipe: &Recipe, material: &Material, seed: u64) -> Result<FirstUpdates> {
    let batching = &recipe.data.batching;
    let source = TrainingBatches::new(&material.train, batching, seed, &material.vocabularies)?;
    let mut batches = source.made_here(0);
    let (length, group) = (batches.len(), recipe.train.batches_per_update as usize);
    // The last update of an epoch may be a smaller one: it is no measure.
    let kept = (length / group).min(KEPT_UPDATES as usize);
    let (group, kept) = if kept == 0 { (length, 1) } else { (group, kept) };
    let (mut updates, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..kept {
        let start = Instant::now();
        updates.push(batches.by_ref().take(group).collect());
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(FirstUpdates { updates, seconds: seconds.get(kept / 2).copied() })
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use zoo_models::parameters::{host_values, reads};
    use zoo_recipes::{Document, Selection};

    use super::*;
    use crate::size;
    use crate::stages::generated::full_batches;

    #[test]
    fn an_update_of_several_batches_reads_from_its_device_once() {
        let document = Document::load("transformer-big-nvidia").unwrap();
        for arm in ["fp32", "mixed"] {
            let selection =
                Selection { arm: Some(arm.into()), tier: Some("smoke".into()), ..Selection::default() };
            let recipe = document.resolve(&selection).unwrap().recipe;
            let vocabularies = size::vocabularies(&recipe);
            let batches: Vec<_> = full_batches(&vocabularies, 4, 6).take(3).flatten().collect();
            assert!(batches.len() > 1, "several batches an update");
            let model = Seq2Seq::new(&recipe.model, &vocabularies, 1, &Device::flex().autodiff());
            let compute = Compute::of(&recipe.precision, true);
            let mut timed =
                TimedArm::new(model, vec![phase(&recipe).unwrap()], vec![batches], compute, 1).unwrap();
            let before = reads();
            timed.lap(2).unwrap();
            assert_eq!(reads() - before, 2, "{arm}: loss, norm and finiteness are read together");
        }
        let before = reads();
        host_values(burn::tensor::Tensor::<1>::zeros([1], &Device::flex()));
        assert_eq!(reads() - before, 1, "another read is seen");
    }
}
