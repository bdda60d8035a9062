//! Convolutions over time: plain, residual, dense residual and separable; and row convolutions of
//! single channels.

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::tasks::speech_recognition::{
    AcousticSpec, Activation, ConvolutionSpec, FramePadding, PaddedFrames, Residual, RowConvolutionSpec,
};

use super::{Frames, Shape, cut, norm, normalized, start};
use crate::Pass;
use crate::nn::{BatchNorm, Channels, Conv1d, Init, same};
use crate::ops::{self, Axis, Statistics};

/// A sequence of convolutions, each with its norm, activation and dropout.
#[derive(Module, Debug)]
pub struct ConvolutionBlock {
    convolutions: Vec<TimeConvolution>,
    norms: Vec<BatchNorm>,
    shortcuts: Vec<Shortcut>,
    #[module(skip)]
    how: How,
}

/// Settings of a block.
#[derive(Debug, Clone, Copy)]
struct How {
    stride: usize,
    /// Number of frames that the kernels of all convolutions of the block remove.
    lost: usize,
    residual: Residual,
    activation: Activation,
    before_norm: bool,
    dropout: f64,
    padded: PaddedFrames,
}

/// A convolution, or a depthwise convolution followed by a pointwise one.
#[derive(Module, Debug)]
struct TimeConvolution {
    over_time: Conv1d,
    over_channels: Option<Conv1d>,
}

/// A residual addend: a projection of an earlier input, with its own norm.
#[derive(Module, Debug)]
struct Shortcut {
    projection: Conv1d,
    norm: BatchNorm,
}

impl TimeConvolution {
    fn new(init: &Init, layer: &ConvolutionSpec, spec: &AcousticSpec, input: usize) -> Self {
        let (kernel, stride) = (layer.kernel as usize, layer.stride as usize);
        let time = match layer.padding {
            FramePadding::Same => same(stride, layer.dilation as usize, kernel),
            FramePadding::None => Axis::default().strided(stride).dilated(layer.dilation as usize),
        };
        let (output, start) = (layer.channels as usize, start(spec.init));
        if !layer.separable {
            let at = init.at("over_time");
            let over_time = Conv1d::new(&at, Channels::new(input, output), kernel, time, layer.bias, start);
            return Self { over_time, over_channels: None };
        }
        let each = Channels { input, output: input, groups: input };
        let over_time = Conv1d::new(&init.at("over_time"), each, kernel, time, false, start);
        let all = Channels::new(input, output);
        let over_channels =
            Conv1d::new(&init.at("over_channels"), all, 1, Axis::default(), layer.bias, start);
        Self { over_time, over_channels: Some(over_channels) }
    }

    fn forward(&self, x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let x = self.over_time.forward(x, pass);
        match &self.over_channels {
            Some(layer) => layer.forward(x, pass),
            None => x,
        }
    }
}

impl ConvolutionBlock {
    pub fn new(init: &Init, layer: &ConvolutionSpec, spec: &AcousticSpec, shape: &mut Shape) -> Self {
        let (repeat, channels, input) = (layer.repeat as usize, layer.channels as usize, shape.flat());
        let convolution = |i: usize| {
            let input = if i == 0 { input } else { channels };
            TimeConvolution::new(&init.at("convolutions").at(i), layer, spec, input)
        };
        // A residual sum or a norm may come between a norm and its activation.
        let inside = |i: usize| match layer.residual {
            _ if layer.activation_before_norm => Activation::None,
            Residual::Block | Residual::Dense if i + 1 == repeat => Activation::None,
            _ => layer.activation,
        };
        if layer.residual == Residual::Dense {
            shape.dense.push(input);
        }
        let added = match layer.residual {
            Residual::None => Vec::new(),
            Residual::Block => vec![input],
            Residual::Dense => shape.dense.clone(),
        };
        let shortcut = |(i, input): (usize, usize)| {
            let at = init.at("shortcuts").at(i);
            let (project, one) = (Channels::new(input, channels), Axis::default());
            Shortcut {
                projection: Conv1d::new(&at.at("projection"), project, 1, one, false, start(spec.init)),
                norm: norm(&at.at("norm"), spec, channels, Activation::None),
            }
        };
        shape.becomes(channels);
        let reach = (layer.kernel as usize - 1) * layer.dilation as usize;
        Self {
            convolutions: (0..repeat).map(convolution).collect(),
            norms: (0..repeat).map(|i| norm(&init.at("norms").at(i), spec, channels, inside(i))).collect(),
            shortcuts: added.into_iter().enumerate().map(shortcut).collect(),
            how: How {
                stride: layer.stride as usize,
                lost: if layer.padding == FramePadding::None { reach } else { 0 },
                residual: layer.residual,
                activation: layer.activation,
                before_norm: layer.activation_before_norm,
                dropout: layer.dropout,
                padded: spec.padded_frames,
            },
        }
    }

    /// Runs the block. `earlier` holds the inputs of the dense residual blocks so far.
    pub fn forward(
        &self,
        frames: Frames,
        earlier: &mut Vec<Frames>,
        pass: &mut Pass,
        seen: &mut Vec<Statistics>,
    ) -> Frames {
        let How { stride, lost, residual, activation, before_norm, dropout, padded } = self.how;
        let added = match residual {
            Residual::None => Vec::new(),
            Residual::Block => vec![frames.clone()],
            Residual::Dense => {
                earlier.push(frames.clone());
                earlier.clone()
            }
        };
        let mut frames = frames;
        let last = self.convolutions.len() - 1;
        for (i, (convolution, norm)) in self.convolutions.iter().zip(&self.norms).enumerate() {
            frames = frames.padded_to(stride);
            let lengths = frames.lengths.iter().map(|length| length.saturating_sub(lost).div_ceil(stride));
            let lengths = lengths.collect();
            let mut x = convolution.forward(frames.x, pass);
            if before_norm && activation != Activation::None {
                let [utterances, longest, channels] = x.dims();
                let rows = ops::relu_dropout(x.reshape([utterances * longest, channels]), 0.0, pass);
                x = cut(rows, activation).reshape([utterances, longest, channels]);
            }
            frames = norm_of(norm, Frames { x, lengths }, padded, pass, seen);
            if i == last && !added.is_empty() {
                for (shortcut, input) in self.shortcuts.iter().zip(&added) {
                    let x = shortcut.projection.forward(input.x.clone(), pass);
                    let lengths = input.lengths.clone();
                    let addend = norm_of(&shortcut.norm, Frames { x, lengths }, padded, pass, seen);
                    frames.x = ops::stored(frames.x + addend.x, pass.compute);
                }
                if !before_norm && activation != Activation::None {
                    frames = frames.map_rows(|x| ops::relu_dropout(x, 0.0, pass));
                }
            }
            if !before_norm {
                frames.x = cut(frames.x, activation);
            }
            frames.x = ops::dropout(frames.x, dropout, pass);
        }
        frames
    }

    pub fn fold<'s>(self, seen: &mut impl Iterator<Item = &'s Statistics>) -> Self {
        let mut fold = |norm: BatchNorm| norm.fold(seen.next().expect("statistics for every norm"));
        let norms = self.norms.into_iter().map(&mut fold).collect();
        let shortcut = |shortcut: Shortcut| Shortcut { norm: fold(shortcut.norm), ..shortcut };
        Self { norms, shortcuts: self.shortcuts.into_iter().map(shortcut).collect(), ..self }
    }
}

/// Applies the norm to all frames.
fn norm_of(
    norm: &BatchNorm,
    frames: Frames,
    padded: PaddedFrames,
    pass: &Pass,
    seen: &mut Vec<Statistics>,
) -> Frames {
    let valid = frames.valid();
    frames.map_rows(|x| normalized(norm, x, valid, padded, pass, seen))
}

/// A convolution of each channel over a few frames, with norm and activation.
#[derive(Module, Debug)]
pub struct RowConvolution {
    convolution: Conv1d,
    norm: BatchNorm,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    padded: PaddedFrames,
}

impl RowConvolution {
    pub fn new(init: &Init, layer: &RowConvolutionSpec, spec: &AcousticSpec, shape: &mut Shape) -> Self {
        let (channels, width) = (shape.flat(), layer.width as usize);
        let each = Channels { input: channels, output: channels, groups: channels };
        let init_of = init.at("convolution");
        let convolution = Conv1d::new(&init_of, each, width, same(1, 1, width), false, start(spec.init));
        shape.becomes(channels);
        let norm = norm(&init.at("norm"), spec, channels, layer.activation);
        Self { convolution, norm, activation: layer.activation, padded: spec.padded_frames }
    }

    pub fn forward(&self, frames: Frames, pass: &Pass, seen: &mut Vec<Statistics>) -> Frames {
        let Frames { x, lengths } = frames;
        let x = self.convolution.forward(x, pass);
        let frames = norm_of(&self.norm, Frames { x, lengths }, self.padded, pass, seen);
        Frames { x: cut(frames.x, self.activation), lengths: frames.lengths }
    }

    pub fn fold<'s>(self, seen: &mut impl Iterator<Item = &'s Statistics>) -> Self {
        Self { norm: self.norm.fold(seen.next().expect("statistics for every norm")), ..self }
    }
}
