//! Speech recognition: acoustic models, which map feature frames to class logits of frames.
//!
//! Utterances of a batch are padded to the longest. At inference, and in training unless
//! `padded_frames` says otherwise, the padding is set to 0 before every layer that reads
//! neighbouring frames, and it is excluded from all statistics. The output for an utterance then
//! does not depend on the rest of its batch.

mod convolution;
mod dense;
mod frames;
mod image;
mod loss;
mod recurrent;
mod size;

pub use frames::Frames;
pub use loss::{CtcClasses, CtcLoss, SpeechBatch};
pub use size::{FrameGrid, cost};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::speech_recognition::{
    AcousticInit, AcousticLayerSpec, AcousticSpec, Activation, PaddedFrames,
};

use self::convolution::{ConvolutionBlock, RowConvolution};
use self::dense::{Dense, affine};
use self::image::ImageConvolution;
use self::recurrent::RecurrentStack;
use crate::Pass;
use crate::nn::{BatchNorm, BatchNormSpec, ConvInit, Init, Linear};
use crate::ops::{self, Rows, Statistics};

/// The layers of a spec, and the projection to the classes.
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
    /// Builds a model for the given number of features of a frame and of classes.
    ///
    /// # Panics
    /// If the spec is invalid ([`AcousticSpec::problems`]).
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

    /// Device of the parameters.
    pub fn device(&self) -> Device {
        self.output.weight.val().device()
    }

    /// Class logits of every frame, including padding, in the compute type. A training pass also
    /// returns the statistics of its batch norms, for [`Self::fold`].
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

    /// Updates the running statistics of the batch norms with the given statistics.
    ///
    /// # Panics
    /// If the statistics are not from this model's [`Self::forward`] in training.
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

/// Shape of a layer's input, while a model is built.
#[derive(Debug, Clone)]
struct Shape {
    /// Number of frequencies; `None` once a layer has merged them into the channels.
    frequencies: Option<usize>,
    channels: usize,
    /// Channels of the inputs of the dense residual blocks so far.
    dense: Vec<usize>,
}

impl Shape {
    /// Number of channels of a frame, frequencies included.
    fn flat(&self) -> usize {
        self.frequencies.unwrap_or(1) * self.channels
    }

    /// Sets the output of a layer that merges the frequencies: `channels` channels.
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

/// A batch norm with the spec's settings. It includes the ReLU where one follows directly.
fn norm(init: &Init, spec: &AcousticSpec, channels: usize, activation: Activation) -> BatchNorm {
    let zoo_recipes::BatchNormSpec { epsilon, momentum, affine, unbiased } = spec.norm;
    let relu = activation != Activation::None;
    BatchNorm::new(init, channels, BatchNormSpec { epsilon, momentum, unbiased, affine, relu })
}

/// Applies a norm to rows of frames. `valid` marks the rows that are not padding. A training pass
/// adds its statistics to `seen`.
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
    // The norm outputs zeros for rows that it excludes.
    let x = match (padded, valid.mask(&x)) {
        (PaddedFrames::Counted, Some(mask)) => x * mask,
        _ => x,
    };
    ops::stored(x, pass.compute)
}

/// The part of an activation that remains after a ReLU: the upper limit.
fn cut<const D: usize>(x: Tensor<D>, activation: Activation) -> Tensor<D> {
    if activation == Activation::Relu20 { x.clamp_max(20.0) } else { x }
}
