//! Convolutions over time and frequency.

use burn::module::Module;
use zoo_recipes::tasks::speech_recognition::{AcousticSpec, Activation, Convolution2dSpec, PaddedFrames};

use super::{Frames, Shape, cut, norm, normalized, start};
use crate::Pass;
use crate::nn::{BatchNorm, Channels, Conv2d, Init, same};
use crate::ops::{Axis, Rows, Statistics};

/// A two-dimensional convolution with batch norm and activation. A frame holds its frequencies one
/// after the other, each with all its channels.
#[derive(Module, Debug)]
pub struct ImageConvolution {
    convolution: Conv2d,
    norm: BatchNorm,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    stride: usize,
    #[module(skip)]
    frequencies: usize,
    #[module(skip)]
    padded: PaddedFrames,
}

impl ImageConvolution {
    pub fn new(init: &Init, layer: &Convolution2dSpec, spec: &AcousticSpec, shape: &mut Shape) -> Self {
        let frequencies = shape.frequencies.expect("frequencies before layers that mix them");
        let [kernel, stride] = [layer.kernel, layer.stride].map(|pair| pair.map(|n| n as usize));
        let time = same(stride[0], 1, kernel[0]);
        let across = Axis::default().strided(stride[1]).same(frequencies, kernel[1]);
        let channels = Channels::new(shape.channels, layer.channels as usize);
        let init_of = init.at("convolution");
        let convolution = Conv2d::new(&init_of, channels, kernel, [time, across], false, start(spec.init));
        shape.channels = channels.output;
        shape.frequencies = Some(across.outputs(frequencies, kernel[1]));
        let norm = norm(&init.at("norm"), spec, channels.output, layer.activation);
        Self {
            convolution,
            norm,
            activation: layer.activation,
            stride: stride[0],
            frequencies,
            padded: spec.padded_frames,
        }
    }

    pub fn forward(&self, frames: Frames, pass: &Pass, seen: &mut Vec<Statistics>) -> Frames {
        let frames = frames.padded_to(self.stride);
        let [utterances, longest, width] = frames.x.dims();
        let x = frames.x.reshape([utterances, longest, self.frequencies, width / self.frequencies]);
        let y = self.convolution.forward(x, pass);
        let [_, longest, frequencies, channels] = y.dims();
        let lengths: Vec<usize> = frames.lengths.iter().map(|length| length.div_ceil(self.stride)).collect();
        // All positions of a valid frame are valid.
        let positions: Vec<usize> = lengths.iter().map(|length| length * frequencies).collect();
        let valid = Rows::of_lengths(&positions, longest * frequencies);
        let rows = y.reshape([utterances * longest * frequencies, channels]);
        let y = normalized(&self.norm, rows, valid, self.padded, pass, seen);
        let x = cut(y, self.activation).reshape([utterances, longest, frequencies * channels]);
        Frames { x, lengths }
    }

    pub fn fold<'s>(self, seen: &mut impl Iterator<Item = &'s Statistics>) -> Self {
        Self { norm: self.norm.fold(seen.next().expect("statistics for every norm")), ..self }
    }
}
