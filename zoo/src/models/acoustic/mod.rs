//! Speech: features of frames to the classes of frames.
//!
//! Utterances lie side by side, padded to the longest. At inference, and in training unless `padded_frames` says otherwise, what stands
//! behind an utterance's end is 0 before every layer that looks at neighbours, and counts in no statistic: what a model says of an
//! utterance does not depend on its batch.

mod convolution;
mod dense;
mod frames;
mod image;
mod recurrent;
mod size;

pub use frames::Frames;
pub use size::{FrameGrid, cost};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_recipes::{AcousticInit, AcousticLayerSpec, AcousticSpec, Activation, PaddedFrames};

use self::convolution::{ConvolutionBlock, RowConvolution};
use self::dense::{Dense, affine};
use self::image::ImageConvolution;
use self::recurrent::RecurrentStack;
use crate::contract::Pass;
use crate::nn::{BatchNorm, BatchNormSpec, ConvInit, Init, Linear};
use crate::ops::{self, Axis, Rows, Statistics};

/// Layers of a spec, and the projection to the classes.
#[derive(Module, Debug)]
pub struct AcousticModel {
    layers: Vec<Layer>,
    output: Linear,
}

#[derive(Module, Debug)]
enum Layer {
    Image(ImageConvolution),
    Convolution(ConvolutionBlock),
    Recurrent(RecurrentStack),
    Row(RowConvolution),
    Dense(Dense),
}

impl AcousticModel {
    /// For so many features of a frame, and classes.
    ///
    /// # Panics
    /// If the spec has a problem ([`AcousticSpec::problems`]).
    pub fn new(spec: &AcousticSpec, features: usize, classes: usize, seed: u64, device: &Device) -> Self {
        let init = Init::new(seed, device);
        let mut shape = Shape { frequencies: Some(features), channels: 1, dense: Vec::new() };
        let layers = spec.layer.iter().enumerate().map(|(i, layer)| {
            let at = init.at("layers").at(i);
            match layer {
                AcousticLayerSpec::Convolution2d(layer) => {
                    Layer::Image(ImageConvolution::new(&at, layer, spec, &mut shape))
                }
                AcousticLayerSpec::Convolution(layer) => {
                    Layer::Convolution(ConvolutionBlock::new(&at, layer, spec, &mut shape))
                }
                AcousticLayerSpec::Recurrent(layer) => {
                    Layer::Recurrent(RecurrentStack::new(&at, layer, &mut shape))
                }
                AcousticLayerSpec::RowConvolution(layer) => {
                    Layer::Row(RowConvolution::new(&at, layer, spec, &mut shape))
                }
                AcousticLayerSpec::Dense(layer) => Layer::Dense(Dense::new(&at, layer, spec, &mut shape)),
            }
        });
        let layers = layers.collect();
        let start = spec.output_init.unwrap_or(spec.init);
        let output = affine(&init.at("output"), start, shape.flat(), classes);
        Self { layers, output }
    }

    /// Where its parameters are.
    pub fn device(&self) -> Device {
        self.output.weight.val().device()
    }

    /// The classes' logits of every frame, padding included, in the compute type; and, of a training pass, what the batch norms saw,
    /// for [`Self::fold`].
    pub fn forward(&self, frames: Frames, pass: &mut Pass) -> (Frames, Vec<Statistics>) {
        let mut seen = Vec::new();
        let mut earlier = Vec::new();
        let mut frames = frames;
        for layer in &self.layers {
            frames = match layer {
                Layer::Image(layer) => layer.forward(frames, pass, &mut seen),
                Layer::Convolution(layer) => layer.forward(frames, &mut earlier, pass, &mut seen),
                Layer::Recurrent(layer) => layer.forward(frames, pass),
                Layer::Row(layer) => layer.forward(frames, pass, &mut seen),
                Layer::Dense(layer) => layer.forward(frames, pass),
            };
        }
        (frames.map_rows(|x| self.output.forward(x, pass)), seen)
    }

    /// With what the batch norms saw in their running statistics.
    ///
    /// # Panics
    /// If it is not of this model's [`Self::forward`] in training.
    pub fn fold(self, seen: &[Statistics]) -> Self {
        let mut seen = seen.iter();
        let layers = self.layers.into_iter().map(|layer| match layer {
            Layer::Image(layer) => Layer::Image(layer.fold(&mut seen)),
            Layer::Convolution(layer) => Layer::Convolution(layer.fold(&mut seen)),
            Layer::Row(layer) => Layer::Row(layer.fold(&mut seen)),
            other => other,
        });
        let layers = layers.collect();
        assert!(seen.next().is_none(), "statistics of this model");
        Self { layers, ..self }
    }
}

/// What a layer reads, while a model is built.
#[derive(Debug, Clone)]
struct Shape {
    /// Frequencies, until a layer takes them as channels.
    frequencies: Option<usize>,
    channels: usize,
    /// Channels of the inputs of the dense residual blocks so far.
    dense: Vec<usize>,
}

impl Shape {
    /// Channels of a frame as a whole.
    fn flat(&self) -> usize {
        self.frequencies.unwrap_or(1) * self.channels
    }

    /// A layer of a frame as a whole made so many channels.
    fn becomes(&mut self, channels: usize) {
        (self.frequencies, self.channels) = (None, channels);
    }
}

fn start(init: AcousticInit) -> ConvInit {
    match init {
        AcousticInit::XavierUniform => ConvInit::Xavier(1.0),
        AcousticInit::XavierNormal => ConvInit::XavierNormal,
        AcousticInit::XavierTruncatedNormal => ConvInit::XavierTruncatedNormal,
        AcousticInit::Torch => ConvInit::Torch,
    }
}

/// A norm as the spec has them; with the ReLU inside where one follows at once.
fn norm(init: &Init, spec: &AcousticSpec, channels: usize, activation: Activation) -> BatchNorm {
    let zoo_recipes::BatchNormSpec { epsilon, momentum, affine, unbiased } = spec.norm;
    let relu = activation != Activation::None;
    BatchNorm::new(init, channels, BatchNormSpec { epsilon, momentum, unbiased, affine, relu })
}

/// Rows of frames through a norm; `valid` are those that are no padding. Statistics are of a training pass.
fn normalized(
    norm: &BatchNorm,
    x: Tensor<2>,
    valid: Rows,
    padded: PaddedFrames,
    pass: &Pass,
    seen: &mut Vec<Statistics>,
) -> Tensor<2> {
    let padded = if pass.is_training() { padded } else { PaddedFrames::LeftOut };
    let counted = if padded == PaddedFrames::LeftOut { valid.clone() } else { Rows::all() };
    let (x, statistics) = norm.forward(x, counted, pass);
    seen.extend(statistics);
    // Rows that do not count come out of the norm as zeros.
    let x = match (padded, valid.mask(&x)) {
        (PaddedFrames::Counted, Some(mask)) => x * mask,
        _ => x,
    };
    ops::stored(x, pass.compute)
}

/// What is left of an activation behind a ReLU.
fn cut<const D: usize>(x: Tensor<D>, activation: Activation) -> Tensor<D> {
    if activation == Activation::Relu20 { x.clamp_max(20.0) } else { x }
}

/// Zeros that keep ceil(frames / stride) frames where these are a multiple of the stride: the same ones for every utterance.
pub(super) fn same(stride: usize, dilation: usize, kernel: usize) -> Axis {
    let long = stride * (dilation * kernel + 1);
    Axis::default().strided(stride).dilated(dilation).same(long, kernel)
}
