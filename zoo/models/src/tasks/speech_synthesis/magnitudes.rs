//! Linear magnitudes, predicted from the post-net's mel frames (OpenSeq2Seq).

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::tasks::speech_synthesis::{FrameConvolutionsSpec, MagnitudesSpec, SynthesisInit};

use super::convolutions::{Behind, FrameConvolution};
use crate::Pass;
use crate::nn::{Channels, Init, Linear};
use crate::ops::Statistics;
use crate::precision::to_f32;

/// Convolutions, an optional exponential of their output, and a projection.
#[derive(Module, Debug)]
pub struct Magnitudes {
    convolutions: Vec<FrameConvolution>,
    projection: Linear,
    #[module(skip)]
    exponential: bool,
}

impl Magnitudes {
    /// Builds the network from `mels` bands to `bins` magnitudes.
    pub fn new(init: &Init, spec: &MagnitudesSpec, mels: usize, bins: usize, start: SynthesisInit) -> Self {
        let mut input = mels;
        let convolution = |(i, &channels): (usize, &u32)| {
            let each = FrameConvolutionsSpec {
                layers: 1,
                channels,
                kernel: spec.kernel,
                bias: false,
                dropout: 0.0,
                norm: spec.norm,
            };
            let output = channels as usize;
            let between = Channels::new(std::mem::replace(&mut input, output), output);
            FrameConvolution::new(&init.at("convolutions").at(i), &each, between, Behind::Relu, start)
        };
        let convolutions = spec.channels.iter().enumerate().map(convolution).collect();
        Self {
            convolutions,
            projection: Linear::new(&init.at("projection"), input, bins, false, 1.0),
            exponential: spec.exponential,
        }
    }

    /// mels `[sequences, frames, mels]` -> `[sequences x frames, bins]` FP32.
    pub fn forward(
        &self,
        mels: Tensor<3>,
        lengths: Option<&[usize]>,
        pass: &mut Pass,
        seen: &mut Vec<Statistics>,
    ) -> Tensor<2> {
        let mut x = mels;
        for convolution in &self.convolutions {
            x = convolution.forward(x, lengths, pass, seen);
        }
        let [sequences, frames, channels] = x.dims();
        let x = x.reshape([sequences * frames, channels]);
        let x = if self.exponential { x.exp() } else { x };
        to_f32(self.projection.forward(x, pass))
    }

    /// Updates the running statistics of the norms.
    pub fn fold<'s>(self, seen: &mut impl Iterator<Item = &'s crate::ops::Statistics>) -> Self {
        Self { convolutions: self.convolutions.into_iter().map(|layer| layer.fold(seen)).collect(), ..self }
    }
}
