//! Parity fixture of synthesizers: models with the same kinds of parts, and their losses.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::precision::Compute;
use zoo_recipes::tasks::speech_synthesis::{SpectrogramLossSpec, SynthesisModelSpec};
use zoo_training::tasks::speech_synthesis::SynthesisCase;

use super::Recipe;
use super::kinds::same_loss;
use crate::kinds::differences;
use crate::task::aligner::{Aligner, Found};
use crate::task::fixtures::FIXTURES;

/// File name of the fixture.
const FILE: &str = "tacotron.safetensors";

/// Description of the fixture's models.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    model: SynthesisModelSpec,
    loss: SpectrogramLossSpec,
}

static DESCRIBED: LazyLock<Described> = LazyLock::new(|| FIXTURES.described(FILE));

/// The fixture's path, if one of its models has the same kinds of parts and the same loss.
pub fn parity(recipe: &Recipe) -> Found {
    let alike = |case: &&Case| {
        differences("model", &recipe.model.kinds(), &case.model.kinds()).is_empty()
            && same_loss(&recipe.loss, &case.loss)
    };
    match DESCRIBED.cases.values().find(alike) {
        Some(_) => Ok(format!("tests/fixtures/{FILE}")),
        None => Err("no fixture has these kinds of parts".to_owned()),
    }
}

/// Recomputes the models of the fixture.
pub fn align(recipe: &Recipe, aligner: &mut Aligner) -> Found {
    parity(recipe)?;
    aligner.models(FILE, SynthesisCase::read_all, |case: &SynthesisCase, device: &Device, compute| {
        // In half precision, a search's errors exceed the effects that it would test.
        let spoken = if compute == Compute::FP32 { case.speak(device)? } else { 0 };
        Ok(case.train(device, compute)? + spoken)
    })
}
