//! Parity fixture of classifiers, which covers every kind of layer with each of its options.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::image_classification::{ClassifierLayerSpec, ClassifierSpec, FlattenOrder};
use zoo_training::tasks::image_classification::ClassifierCase;

use crate::task::aligner::{Aligner, Found, covered};
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
    covered(FILE, &KNOWN, spec.layer.iter().map(part))
}

/// Recomputes the models of the fixture.
pub fn align(spec: &ClassifierSpec, aligner: &mut Aligner) -> Found {
    parity(spec)?;
    aligner.models(FILE, ClassifierCase::read_all, ClassifierCase::follow)
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
