//! Parity fixture of language models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::RecurrentBiases;
use zoo_recipes::tasks::language_modelling::LanguageModelSpec;
use zoo_training::tasks::language_modelling::LanguageCase;

use crate::task::aligner::{Aligner, Found};
use crate::task::fixtures::FIXTURES;

/// File name of the fixture.
const FILE: &str = "language.safetensors";

/// Description of the fixture's models.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
}

/// A model of the fixture.
#[derive(Deserialize)]
struct DescribedCase {
    model: LanguageModelSpec,
}

static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let described: Described = FIXTURES.described(FILE);
    described.cases.values().map(|case| wiring(&case.model)).collect()
});

/// The fixture's path, if it has a model with the wiring of `spec`.
pub fn parity(spec: &LanguageModelSpec) -> Found {
    let wiring = wiring(spec);
    match KNOWN.contains(&wiring) {
        true => Ok(format!("tests/fixtures/{FILE}")),
        false => Err(format!("tests/fixtures/{FILE} has no {wiring}")),
    }
}

/// Recomputes the models of the fixture.
pub fn align(spec: &LanguageModelSpec, aligner: &mut Aligner) -> Found {
    parity(spec)?;
    aligner.models(FILE, LanguageCase::read_all, LanguageCase::follow)
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
            format!("{softmax} LSTM with {biases}")
        }
        LanguageModelSpec::LayerNormLstm(_) => "tied layer-normalised LSTM".to_owned(),
        LanguageModelSpec::Gpt(_) => "Transformer without biases".to_owned(),
    }
}
