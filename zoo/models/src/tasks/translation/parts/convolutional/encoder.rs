//! Convolutional encoder.

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::tasks::translation::{ConvolutionalEncoderSpec, TranslationModelSpec};

use super::{GatedConvolution, HALF, Lanes, PositionEmbedding, cost, linear, positions, sizes};
use crate::nn::{Init, NormalizedLinear};
use crate::ops::{self, Axis};
use crate::precision::to_f32;
use crate::tasks::translation::{Memory, TokenEncoder};
use crate::{Cost, Pass};

/// A stack of gated convolutions between two linear layers.
#[derive(Module, Debug)]
pub struct ConvolutionalEncoder {
    pub positions: Option<PositionEmbedding>,
    /// Projection to the width of the first layer.
    pub input: NormalizedLinear,
    pub layers: Vec<GatedConvolution>,
    /// Projection back to the tokens' width.
    pub output: NormalizedLinear,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    kernel: usize,
    /// Factor of the gradient that the encoder receives from the decoder.
    #[module(skip)]
    gradient: f64,
}

impl TokenEncoder for ConvolutionalEncoder {
    type Spec = ConvolutionalEncoderSpec;

    fn new(init: &Init, spec: &ConvolutionalEncoderSpec, model: &TranslationModelSpec) -> Self {
        let width = model.width as usize;
        let sizes = sizes(&spec.layer);
        let layer = |(i, &(channels, kernel)): (usize, &([usize; 2], usize))| {
            let time = Axis::default().centred(kernel);
            GatedConvolution::new(&init.at("layers").at(i), channels, kernel, time, spec.dropout)
        };
        let [first, _] = sizes[0].0;
        let [_, last] = sizes[sizes.len() - 1].0;
        Self {
            positions: spec
                .positions
                .map(|spec| PositionEmbedding::new(&init.at("positions"), spec, &model.embedding, width)),
            input: linear(&init.at("input"), width, first, spec.dropout),
            layers: sizes.iter().enumerate().map(layer).collect(),
            output: linear(&init.at("output"), last, width, 0.0),
            dropout: spec.dropout,
            kernel: sizes.iter().map(|&(_, kernel)| kernel).max().unwrap_or(1),
            gradient: 0.5 / f64::from(spec.attentions),
        }
    }

    /// The values also contain the embedded tokens.
    fn forward(&self, x: Tensor<2>, lengths: &[u32], pass: &mut Pass) -> Memory {
        let x = match &self.positions {
            Some(table) => table.add(x, positions(lengths)),
            None => x,
        };
        let tokens = ops::stored(ops::dropout(x, self.dropout, pass), pass.compute);
        let lanes = Lanes::new(lengths, self.kernel);
        let mut x = to_f32(self.input.forward(tokens.clone(), pass));
        for layer in &self.layers {
            let residual = layer.residual(x.clone(), pass);
            x = ops::stored((layer.gated(x, &lanes, pass) + residual) * HALF, pass.compute);
        }
        let out = to_f32(self.output.forward(x, pass));
        // Scales the gradient without changing the value.
        let keys = if out.device().is_autodiff() {
            out.clone().detach() * (1.0 - self.gradient) + out * self.gradient
        } else {
            out
        };
        let keys = ops::stored(keys, pass.compute);
        let values = ops::stored((keys.clone() + tokens) * HALF, pass.compute);
        Memory { values, keys, lengths: lengths.to_vec() }
    }

    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost {
        let width = u64::from(model.width);
        let (first, last) = cost::ends(&spec.layer);
        cost::positions(spec.positions, width)
            + cost::normalized(true, [width, first])
            + cost::layers(true, &spec.layer)
            + cost::normalized(true, [last, width])
    }
}
