//! Convolutional encoders and decoders (Gehring et al. 2017): gated convolutions instead of
//! recurrence.
//!
//! A sum of two terms is scaled by sqrt(0.5), and every layer is weight-normalised. The residual
//! stream consists of FP32 tensors; in an FP16 pass they hold values rounded to FP16. Sequences are
//! packed. For a convolution they are laid out in [`Lanes`], where zeros separate them, as
//! published code masks padding. The context of an attention is scaled by the square root of its
//! source's length, with or without padding, as the recipe says.

mod cost;
mod decoder;
mod encoder;
mod lanes;

pub use decoder::ConvolutionalDecoder;
pub use encoder::ConvolutionalEncoder;
use lanes::Lanes;

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::EmbeddingSpec;
use zoo_recipes::tasks::translation::{GatedConvolutionSpec, LearnedPositions};

use crate::Pass;
use crate::nn::{Init, NormalizedConv1d, NormalizedLinear};
use crate::ops::{self, Axis};
use crate::precision::to_f32;

/// sqrt(0.5): keeps the variance of a sum of two terms.
const HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// One gated convolution, and a projection of its input where the widths differ.
#[derive(Module, Debug)]
pub struct GatedConvolution {
    /// Convolution to twice the channels: values and gates.
    pub convolution: NormalizedConv1d,
    /// Projection of the input for the residual sum.
    pub shortcut: Option<NormalizedLinear>,
    #[module(skip)]
    dropout: f64,
}

impl GatedConvolution {
    /// `time` must keep the length.
    fn new(init: &Init, [input, channels]: [usize; 2], kernel: usize, time: Axis, dropout: f64) -> Self {
        let std = (4.0 * (1.0 - dropout) / (kernel * input) as f64).sqrt();
        let shape = [input, 2 * channels];
        Self {
            convolution: NormalizedConv1d::new(&init.at("convolution"), shape, kernel, time, std),
            shortcut: (input != channels).then(|| linear(&init.at("shortcut"), input, channels, 0.0)),
            dropout,
        }
    }

    /// x `[rows, in]` -> `[rows, channels]`, the output of the gate.
    fn gated(&self, x: Tensor<2>, lanes: &Lanes, pass: &mut Pass) -> Tensor<2> {
        let x = ops::dropout(x, self.dropout, pass);
        lanes.through(x, |x| {
            let y = self.convolution.forward(x, pass);
            let [lanes, steps, channels] = y.dims();
            ops::stored(ops::gated(y.reshape([lanes * steps, channels])), pass.compute)
        })
    }

    /// The residual that is added to the layer's output.
    fn residual(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match &self.shortcut {
            Some(shortcut) => to_f32(shortcut.forward(x, pass)),
            None => x,
        }
    }
}

/// Table of learned positions.
#[derive(Module, Debug)]
pub struct PositionEmbedding {
    /// Shape `[rows, width]`.
    pub weight: burn::module::Param<Tensor<2>>,
    #[module(skip)]
    first_is_zero: bool,
}

impl PositionEmbedding {
    /// Initialised like the token embedding.
    fn new(init: &Init, spec: LearnedPositions, embedding: &EmbeddingSpec, width: usize) -> Self {
        let std = embedding.init_std.unwrap_or(0.1);
        Self {
            weight: init.at("weight").normal([spec.rows as usize, width], std),
            first_is_zero: spec.first_is_zero,
        }
    }

    /// Adds the embedding of the given positions.
    fn add(&self, x: Tensor<2>, positions: impl Iterator<Item = usize>) -> Tensor<2> {
        let rows = self.weight.dims()[0];
        let there = |&position: &usize| position < rows && !(position == 0 && self.first_is_zero);
        let ids: Vec<_> = positions.map(|position| Some(position).filter(there).map(|p| p as u32)).collect();
        x + ops::embedding(self.weight.val(), &ids)
    }
}

/// Positions of packed sequences.
fn positions(lengths: &[u32]) -> impl Iterator<Item = usize> + '_ {
    lengths.iter().flat_map(|&length| 0..length as usize)
}

/// A linear layer whose input is subject to dropout with rate `dropped`.
fn linear(init: &Init, input: usize, output: usize, dropped: f64) -> NormalizedLinear {
    NormalizedLinear::new(init, input, output, ((1.0 - dropped) / input as f64).sqrt())
}

/// Sizes of all layers, in order: `[input, output]` and taps.
fn sizes(layers: &[GatedConvolutionSpec]) -> Vec<([usize; 2], usize)> {
    let all = layers.iter().flat_map(|layer| std::iter::repeat_n(layer, layer.repeat as usize));
    let mut input = layers.first().map_or(0, |layer| layer.channels as usize);
    all.map(|layer| {
        let channels = [input, layer.channels as usize];
        input = layer.channels as usize;
        (channels, layer.kernel as usize)
    })
    .collect()
}
