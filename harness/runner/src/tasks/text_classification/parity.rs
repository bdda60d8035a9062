//! Parity fixtures of classifiers of texts, which cover every kind of layer with each of its
//! options: one for those with the layers of a language model, and one for all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::text_classification::{GateFunction, StateOutput, TextClassifierSpec, TextLayerSpec};
use zoo_training::tasks::text_classification::TextCase;

use crate::task::aligner::{Aligner, Found, covered};
use crate::task::fixtures::FIXTURES;

/// File names of the fixtures.
const FILE: &str = "text_classifier.safetensors";
const TRANSFER: &str = "transfer.safetensors";

/// Description of a fixture's models: the layers of each.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
}

/// A model of the fixture.
#[derive(Deserialize)]
struct DescribedCase {
    layer: Vec<TextLayerSpec>,
}

/// Parts of the models of each fixture.
static KNOWN: LazyLock<BTreeMap<&'static str, BTreeSet<&'static str>>> = LazyLock::new(|| {
    let known = |file: &'static str| {
        let described: Described = FIXTURES.described(file);
        (file, described.cases.values().flat_map(|model| parts(&model.layer)).collect())
    };
    [FILE, TRANSFER].map(known).into()
});

/// The fixture for a model.
fn file(spec: &TextClassifierSpec) -> &'static str {
    let of_language_model = |layer: &TextLayerSpec| matches!(layer, TextLayerSpec::LayerNormLstm { .. });
    if spec.layer.iter().any(of_language_model) { TRANSFER } else { FILE }
}

/// The fixture's path, if its models contain each kind of layer of `spec`.
pub fn parity(spec: &TextClassifierSpec) -> Found {
    let file = file(spec);
    covered(file, &KNOWN[file], parts(&spec.layer))
}

/// Recomputes the models of the fixture.
pub fn align(spec: &TextClassifierSpec, aligner: &mut Aligner) -> Found {
    parity(spec)?;
    aligner.models(file(spec), TextCase::read_all, TextCase::follow)
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
        TextLayerSpec::LayerNormLstm { state: StateOutput::Output, .. } => "layer-normalised LSTM",
        TextLayerSpec::LayerNormLstm { state: StateOutput::OutputAndCell, .. } => {
            "layer-normalised LSTM with its cell state"
        }
        TextLayerSpec::Dense { row_norm: None, .. } => "dense layer",
        TextLayerSpec::Dense { row_norm: Some(_), .. } => "dense layer with a row norm",
        TextLayerSpec::Relu {} => "ReLU",
        TextLayerSpec::Dropout { .. } => "dropout",
    }
}
