//! Parameters and operations of a spec by arithmetic, without building it.

use zoo_recipes::{AcousticLayerSpec, AcousticSpec, RecurrentCell, Residual};

use crate::models::Cost;

/// Counts a spec. Parameters are the learned numbers: running statistics of batch norms do not count. Operations are those of a frame
/// that the model reads; layers behind a stride compute for fewer.
pub fn cost(spec: &AcousticSpec, features: u64, classes: u64) -> Cost {
    let norm = |channels: u64| if spec.norm.affine { 2 * channels } else { 0 };
    let (mut frequencies, mut channels, mut dense) = (features, 1u64, Vec::new());
    let (mut parameters, mut operations) = (0, 0.0);
    // Frames of the features that one of this layer stands for.
    let mut stride = 1u64;
    for layer in &spec.layer {
        let input = frequencies * channels;
        let mut products = 0;
        match layer {
            AcousticLayerSpec::Convolution2d(layer) => {
                let taps = u64::from(layer.kernel[0]) * u64::from(layer.kernel[1]);
                let weights = channels * u64::from(layer.channels) * taps;
                parameters += weights + norm(layer.channels.into());
                channels = layer.channels.into();
                frequencies = frequencies.div_ceil(layer.stride[1].into());
                stride *= u64::from(layer.stride[0]);
                operations += (weights * frequencies) as f64 / stride as f64;
                continue;
            }
            AcousticLayerSpec::Convolution(layer) => {
                let (out, taps) = (u64::from(layer.channels), u64::from(layer.kernel));
                let bias = if layer.bias { out } else { 0 };
                for i in 0..layer.repeat {
                    let input = if i == 0 { input } else { out };
                    let weights = if layer.separable { input * (taps + out) } else { input * out * taps };
                    parameters += weights + bias + norm(out);
                    products += weights;
                }
                let mut shortcut = |input: u64| {
                    parameters += input * out + norm(out);
                    products += input * out;
                };
                match layer.residual {
                    Residual::None => {}
                    Residual::Block => shortcut(input),
                    Residual::Dense => {
                        dense.push(input);
                        dense.iter().copied().for_each(shortcut);
                    }
                }
                stride *= u64::from(layer.stride);
                channels = out;
            }
            AcousticLayerSpec::Recurrent(layer) => {
                let gates = match layer.cell {
                    RecurrentCell::Lstm => 4,
                    RecurrentCell::Gru => 3,
                };
                let (hidden, ways) = (u64::from(layer.hidden), if layer.bidirectional { 2 } else { 1 });
                for i in 0..layer.layers {
                    let input = if i == 0 { input } else { ways * hidden };
                    let weights = ways * gates * hidden * (input + hidden);
                    parameters += weights + ways * gates * hidden * u64::from(layer.biases.min(2));
                    products += weights;
                }
                channels = ways * hidden;
            }
            AcousticLayerSpec::RowConvolution(layer) => {
                let weights = input * u64::from(layer.width);
                parameters += weights + norm(input);
                products += weights;
                channels = input;
            }
            AcousticLayerSpec::Dense(layer) => {
                let units = u64::from(layer.units);
                parameters += input * units + units;
                products += input * units;
                channels = units;
            }
        }
        operations += products as f64 / stride as f64;
        frequencies = 1;
    }
    let last = frequencies * channels;
    operations += (last * classes) as f64 / stride as f64;
    Cost {
        parameters: parameters + (last + 1) * classes,
        source_token: operations.round() as u64,
        target_token: 0,
    }
}
