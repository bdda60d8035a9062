//! Number of parameters and operations of an acoustic model, computed from its spec without
//! building it.

use zoo_recipes::RecurrentCell;
use zoo_recipes::tasks::speech_recognition::{AcousticLayerSpec, AcousticSpec, FramePadding, Residual};

use crate::Cost;

/// Counts the parameters and operations of a spec. Parameters are the trained numbers, without
/// running statistics of batch norms. Operations are those of one input frame; layers after a
/// stride run on fewer frames.
pub fn cost(spec: &AcousticSpec, features: u64, classes: u64) -> Cost {
    let norm = |channels: u64| if spec.norm.affine { 2 * channels } else { 0 };
    let (mut frequencies, mut channels, mut dense) = (features, 1u64, Vec::new());
    let (mut parameters, mut operations) = (0, 0.0);
    // Number of input frames for each frame of this layer.
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

/// How the output frames of a model are placed on its input frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameGrid {
    /// Input frames between two output frames.
    pub stride: usize,
    /// Number of input frames that kernels without padding remove, half of them on either side.
    pub lost: usize,
}

impl FrameGrid {
    /// Computes the grid of a spec.
    pub fn of(spec: &AcousticSpec) -> Self {
        let mut grid = Self { stride: 1, lost: 0 };
        for layer in &spec.layer {
            match layer {
                AcousticLayerSpec::Convolution2d(layer) => grid.stride *= layer.stride[0] as usize,
                AcousticLayerSpec::Convolution(layer) => {
                    if layer.padding == FramePadding::None {
                        let reach = layer.dilation as usize * (layer.kernel as usize).saturating_sub(1);
                        grid.lost += grid.stride * reach * layer.repeat as usize;
                    }
                    grid.stride *= layer.stride as usize;
                }
                AcousticLayerSpec::Recurrent(_)
                | AcousticLayerSpec::RowConvolution(_)
                | AcousticLayerSpec::Dense(_) => {}
            }
        }
        grid
    }

    /// The smallest number of input frames for which a model has output.
    pub fn least(self) -> usize {
        self.lost + 1
    }

    /// The input frame at the centre of an output frame.
    pub fn position(self, out: usize) -> f64 {
        (self.stride * out) as f64 + self.lost as f64 / 2.0
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, ListedTask, Selection, SpeechRecognition};

    use super::*;

    fn grid(name: &str) -> FrameGrid {
        let recipe = Document::load(name).unwrap().resolve(&Selection::default()).unwrap().recipe;
        let recipe = SpeechRecognition::take(recipe).unwrap();
        FrameGrid::of(recipe.model.layers())
    }

    #[test]
    fn frames_lie_where_strides_and_kernels_put_them() {
        // 2 + 2 x 4 + 4 x 4.
        assert_eq!(grid("yesno-tdnn"), FrameGrid { stride: 1, lost: 26 });
        assert_eq!(grid("yesno-tdnn").position(3), 16.0);
        assert_eq!(grid("wave2letter-plus"), FrameGrid { stride: 2, lost: 0 });
        assert_eq!(grid("deepspeech2-large"), FrameGrid { stride: 2, lost: 0 });
        assert_eq!(grid("deepspeech2-large").position(10), 20.0);
    }
}
