//! Parity fixture of acoustic models, which covers every kind of layer with each of its options.
//! Unit tests compare the searches with an enumeration of all paths.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use zoo_recipes::RecurrentCell;
use zoo_recipes::tasks::speech_recognition::{
    AcousticLayerSpec, AcousticSpec, Activation, FramePadding, Residual,
};
use zoo_training::tasks::speech_recognition::AcousticCase;

use crate::task::aligner::{Aligner, Found, covered};
use crate::task::fixtures::FIXTURES;

/// File name of the fixture.
const FILE: &str = "acoustic.safetensors";

/// Description of the fixture's models: the layers of each.
#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, Vec<AcousticLayerSpec>>,
}

static KNOWN: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let described: Described = FIXTURES.described(FILE);
    described.cases.values().flatten().flat_map(parts).collect()
});

/// The fixture's path, if its models contain each kind of layer of `spec` with each of its options.
pub fn parity(spec: &AcousticSpec) -> Found {
    covered(FILE, &KNOWN, spec.layer.iter().flat_map(parts))
}

/// Recomputes the models of the fixture.
pub fn align(spec: &AcousticSpec, aligner: &mut Aligner) -> Found {
    parity(spec)?;
    aligner.models(FILE, AcousticCase::read_all, AcousticCase::follow)
}

/// Names of a layer's kind and options, without sizes and rates.
fn parts(layer: &AcousticLayerSpec) -> Vec<&'static str> {
    let activated = |activation: Activation| match activation {
        Activation::None => "layer without activation",
        Activation::Relu => "ReLU",
        Activation::Relu20 => "ReLU cut at 20",
    };
    match layer {
        AcousticLayerSpec::Convolution2d(layer) => vec!["2-D convolution", activated(layer.activation)],
        AcousticLayerSpec::Convolution(layer) => {
            let residual = match layer.residual {
                Residual::None => None,
                Residual::Block => Some("residual"),
                Residual::Dense => Some("dense residual"),
            };
            let options = [
                (layer.stride > 1, "stride"),
                (layer.dilation > 1, "dilation"),
                (layer.separable, "separable convolution"),
                (layer.padding == FramePadding::None, "convolution without padding"),
                (layer.bias, "convolution with a bias"),
                (layer.activation_before_norm, "activation before the norm"),
            ];
            let options = options.into_iter().filter(|(there, _)| *there).map(|(_, name)| name);
            ["convolution", activated(layer.activation)].into_iter().chain(residual).chain(options).collect()
        }
        AcousticLayerSpec::Recurrent(layer) => {
            let cell = match layer.cell {
                RecurrentCell::Lstm => "LSTM",
                RecurrentCell::Gru => "GRU",
            };
            [cell].into_iter().chain(layer.bidirectional.then_some("both directions")).collect()
        }
        AcousticLayerSpec::RowConvolution(layer) => vec!["row convolution", activated(layer.activation)],
        AcousticLayerSpec::Dense(layer) => vec!["dense layer", activated(layer.activation)],
    }
}
