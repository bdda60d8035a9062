//! Parity fixtures of language models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::RecurrentBiases;
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LanguageModelSpec};
use zoo_training::tasks::language_modelling::LanguageCase;

use super::Recipe;
use crate::task::aligner::{Aligner, Found};
use crate::task::fixtures::FIXTURES;

/// File name of the fixture.
const FILE: &str = "language.safetensors";

/// File name of the fixture of models that are trained with a sampled softmax.
const SAMPLED: &str = "big_lstm.safetensors";

/// Description of a fixture's models.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
}

/// A model of a fixture.
#[derive(Deserialize)]
struct DescribedCase {
    model: LanguageModelSpec,
}

/// Wirings of the models of a fixture.
fn known(file: &str) -> BTreeSet<String> {
    let described: Described = FIXTURES.described(file);
    described.cases.values().map(|case| wiring(&case.model)).collect()
}

static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| known(FILE));
static KNOWN_SAMPLED: LazyLock<BTreeSet<String>> = LazyLock::new(|| known(SAMPLED));

/// The fixture of a recipe's loss, and the wirings of its models.
fn fixture(recipe: &Recipe) -> (&'static str, &'static BTreeSet<String>) {
    match recipe.loss {
        LanguageLossSpec::CrossEntropy { .. } => (FILE, &KNOWN),
        LanguageLossSpec::SampledSoftmax { .. } => (SAMPLED, &KNOWN_SAMPLED),
    }
}

/// The fixture's path, if it has a model with the wiring of the recipe's, and its loss.
pub fn parity(recipe: &Recipe) -> Found {
    let wiring = wiring(&recipe.model);
    let (file, known) = fixture(recipe);
    match known.contains(&wiring) {
        true => Ok(format!("tests/fixtures/{file}")),
        false => Err(format!("tests/fixtures/{file} has no {wiring}")),
    }
}

/// Recomputes the models of the recipe's fixture.
pub fn align(recipe: &Recipe, aligner: &mut Aligner) -> Found {
    parity(recipe)?;
    aligner.models(fixture(recipe).0, LanguageCase::read_all, LanguageCase::follow)
}

/// Kind of a model and its options, without sizes and initial values.
fn wiring(spec: &LanguageModelSpec) -> String {
    match spec {
        LanguageModelSpec::Lstm(spec) => {
            let softmax = if spec.tied { "tied" } else { "untied" };
            let biases = match spec.biases.kind() {
                RecurrentBiases::OneOfZeros => "one bias",
                _ => "two biases",
            };
            let projection = if spec.projection.is_some() { " and projections" } else { "" };
            format!("{softmax} LSTM with {biases}{projection}")
        }
        LanguageModelSpec::LayerNormLstm(_) => "tied layer-normalised LSTM".to_owned(),
        LanguageModelSpec::Gpt(_) => "Transformer without biases".to_owned(),
    }
}
