//! Parity fixture of classifiers of texts, which covers every kind of layer with each of its
//! options.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::text_classification::{GateFunction, TextClassifierSpec, TextLayerSpec};
use zoo_training::tasks::text_classification::TextCase;

use crate::task::aligner::{Aligner, Found, covered};
use crate::task::fixtures::FIXTURES;

/// File name of the fixture.
const FILE: &str = "text_classifier.safetensors";

/// Description of the fixture's models: the layers of each.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
}

/// A model of the fixture.
#[derive(Deserialize)]
struct DescribedCase {
    layer: Vec<TextLayerSpec>,
}

static KNOWN: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let described: Described = FIXTURES.described(FILE);
    described.cases.values().flat_map(|model| parts(&model.layer)).collect()
});

/// The fixture's path, if its models contain each kind of layer of `spec`.
pub fn parity(spec: &TextClassifierSpec) -> Found {
    covered(FILE, &KNOWN, parts(&spec.layer))
}

/// Recomputes the models of the fixture.
pub fn align(spec: &TextClassifierSpec, aligner: &mut Aligner) -> Found {
    parity(spec)?;
    aligner.models(FILE, TextCase::read_all, TextCase::follow)
}

/// The kinds and options of layers, without sizes and rates; and the number of outputs, if it is
/// one.
fn parts(layers: &[TextLayerSpec]) -> Vec<&'static str> {
    let one_output = matches!(layers.last(), Some(TextLayerSpec::Dense { units: 1, .. }));
    layers.iter().map(part).chain(one_output.then_some("binary output")).collect()
}

/// Name of a layer's kind and option.
fn part(layer: &TextLayerSpec) -> &'static str {
    match layer {
        TextLayerSpec::Embedding { zero_padding: false, .. } => "embedding",
        TextLayerSpec::Embedding { zero_padding: true, .. } => "embedding without padding",
        TextLayerSpec::Convolution { .. } => "convolution",
        TextLayerSpec::Kernels { .. } => "kernels side by side",
        TextLayerSpec::Pool { of: PoolKind::Max, .. } => "maximum pool",
        TextLayerSpec::Pool { of: PoolKind::Average, .. } => "average pool",
        TextLayerSpec::OverPositions { of: PoolKind::Max } => "maximum over positions",
        TextLayerSpec::OverPositions { of: PoolKind::Average } => "average over positions",
        TextLayerSpec::Lstm { gates: GateFunction::Sigmoid, bidirectional: false, .. } => "LSTM",
        TextLayerSpec::Lstm { gates: GateFunction::Sigmoid, bidirectional: true, .. } => "bidirectional LSTM",
        TextLayerSpec::Lstm { gates: GateFunction::HardSigmoid, bidirectional: false, .. } => {
            "LSTM with hard gates"
        }
        TextLayerSpec::Lstm { gates: GateFunction::HardSigmoid, bidirectional: true, .. } => {
            "bidirectional LSTM with hard gates"
        }
        TextLayerSpec::Dense { row_norm: None, .. } => "dense layer",
        TextLayerSpec::Dense { row_norm: Some(_), .. } => "dense layer with a row norm",
        TextLayerSpec::Relu {} => "ReLU",
        TextLayerSpec::Dropout { .. } => "dropout",
    }
}
