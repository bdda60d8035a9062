//! Parameters of a spec by arithmetic, without building it.

use zoo_recipes::{AcousticLayerSpec, AcousticSpec, RecurrentCell, Residual};

/// Learned numbers; the running statistics of batch norms do not count.
pub fn parameters(spec: &AcousticSpec, features: u64, classes: u64) -> u64 {
    let norm = |channels: u64| if spec.norm.affine { 2 * channels } else { 0 };
    let (mut frequencies, mut channels, mut dense) = (features, 1u64, Vec::new());
    let mut all = 0;
    for layer in &spec.layer {
        let input = frequencies * channels;
        match layer {
            AcousticLayerSpec::Convolution2d(layer) => {
                let taps = u64::from(layer.kernel[0]) * u64::from(layer.kernel[1]);
                all += channels * u64::from(layer.channels) * taps + norm(layer.channels.into());
                channels = layer.channels.into();
                frequencies = frequencies.div_ceil(layer.stride[1].into());
                continue;
            }
            AcousticLayerSpec::Convolution(layer) => {
                let (out, taps) = (u64::from(layer.channels), u64::from(layer.kernel));
                let bias = if layer.bias { out } else { 0 };
                for i in 0..layer.repeat {
                    let input = if i == 0 { input } else { out };
                    let weights = if layer.separable { input * (taps + out) } else { input * out * taps };
                    all += weights + bias + norm(out);
                }
                match layer.residual {
                    Residual::None => {}
                    Residual::Block => all += input * out + norm(out),
                    Residual::Dense => {
                        dense.push(input);
                        all += dense.iter().map(|input| input * out + norm(out)).sum::<u64>();
                    }
                }
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
                    all += ways * gates * hidden * (input + hidden + u64::from(layer.biases.min(2)));
                }
                channels = ways * hidden;
            }
            AcousticLayerSpec::RowConvolution(layer) => {
                all += input * u64::from(layer.width) + norm(input);
                channels = input;
            }
            AcousticLayerSpec::Dense(layer) => {
                let units = u64::from(layer.units);
                all += input * units + units;
                channels = units;
            }
        }
        frequencies = 1;
    }
    all + (frequencies * channels + 1) * classes
}
