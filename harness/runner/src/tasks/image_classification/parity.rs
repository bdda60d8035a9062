//! Parity fixture of classifiers, which covers every kind of layer with each of its options.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::image_classification::{ClassifierLayerSpec, ClassifierSpec, FlattenOrder};
use zoo_training::tasks::image_classification::ClassifierCase;

use crate::task::aligner::{Aligner, Found};
use crate::task::fixtures::FIXTURES;

/// File name of the fixture.
const FILE: &str = "classifier.safetensors";

/// Description of the fixture's models: the layers of each.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
}

/// A model of the fixture.
#[derive(Deserialize)]
struct DescribedCase {
    layer: Vec<ClassifierLayerSpec>,
}

static KNOWN: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let described: Described = FIXTURES.described(FILE);
    described.cases.values().flat_map(|model| &model.layer).map(part).collect()
});

/// The fixture's path, if its models contain each kind of layer of `spec`.
pub fn parity(spec: &ClassifierSpec) -> Found {
    let unknown: BTreeSet<&str> = spec.layer.iter().map(part).filter(|part| !KNOWN.contains(part)).collect();
    match unknown.is_empty() {
        true => Ok(format!("tests/fixtures/{FILE}")),
        false => {
            let unknown: Vec<&str> = unknown.into_iter().collect();
            Err(format!("tests/fixtures/{FILE} has no {}", unknown.join(", ")))
        }
    }
}

/// Recomputes the models of the fixture, always in FP32.
pub fn align(spec: &ClassifierSpec, aligner: &mut Aligner) -> Found {
    parity(spec)?;
    aligner.once(FILE, |aligner| {
        let cases = ClassifierCase::read_all(&aligner.bytes(FILE)?)?;
        let mut tensors = 0;
        for case in &cases {
            tensors += case.follow(aligner.device())?;
        }
        Ok(format!("{FILE}: {} models, {tensors} tensors", cases.len()))
    })
}

/// Name of a layer's kind and option, without sizes and rates.
fn part(layer: &ClassifierLayerSpec) -> &'static str {
    match layer {
        ClassifierLayerSpec::Convolution { .. } => "convolution",
        ClassifierLayerSpec::Pool { of: PoolKind::Max, .. } => "maximum pool",
        ClassifierLayerSpec::Pool { of: PoolKind::Average, .. } => "average pool",
        ClassifierLayerSpec::Flatten { order: FlattenOrder::ChannelsFirst } => "flattening, channels first",
        ClassifierLayerSpec::Flatten { order: FlattenOrder::ChannelsLast } => "flattening, channels last",
        ClassifierLayerSpec::Dense { .. } => "dense layer",
        ClassifierLayerSpec::Relu {} => "ReLU",
        ClassifierLayerSpec::Sigmoid {} => "sigmoid",
        ClassifierLayerSpec::Dropout { .. } => "dropout",
    }
}
