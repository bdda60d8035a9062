//! Pre-net: the decoder's layers on the previous frame.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use zoo_recipes::tasks::speech_synthesis::{PrenetSpec, SynthesisInit};

use super::start;
use crate::Pass;
use crate::nn::{Init, Linear};
use crate::ops;
use crate::precision::to_f32;
use crate::random::Key;

/// Seed of the dropout outside training.
const SEED: u64 = 0x7ac0_7202;

/// Linear layers with ReLU, and dropout that stays on at inference.
#[derive(Module, Debug)]
pub struct Prenet {
    layers: Vec<Linear>,
    #[module(skip)]
    dropout: f64,
}

/// Range of frames of a batch.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// Number of sequences.
    pub sequences: usize,
    /// Index of the first frame of each sequence.
    pub first: usize,
    /// Number of frames of each sequence.
    pub frames: usize,
}

impl Prenet {
    /// Builds the pre-net for frames of `input` numbers.
    pub fn new(init: &Init, spec: &PrenetSpec, input: usize, from: SynthesisInit) -> Self {
        let mut input = input;
        let layer = |(i, &units): (usize, &u32)| {
            let read = std::mem::replace(&mut input, units as usize);
            start::linear(&init.at("layers").at(i), read, units as usize, spec.bias, 1.0, from)
        };
        Self { layers: spec.units.iter().enumerate().map(layer).collect(), dropout: spec.dropout }
    }

    /// frames `[sequences x frames, numbers]` -> `[sequences x frames, units]` FP32. Outside
    /// training the dropout mask depends on the frame's index alone: it is equal for all sequences
    /// (as in NVIDIA's inference), for every batch and for every call.
    pub fn forward(&self, frames: Tensor<2>, at: At, pass: &mut Pass) -> Tensor<2> {
        let mut x = frames;
        for (i, layer) in self.layers.iter().enumerate() {
            let y = layer.forward(x, pass);
            x = match pass.is_training() {
                true => to_f32(ops::relu_dropout(y, self.dropout, pass)),
                false => {
                    let y = to_f32(ops::relu_dropout(y, 0.0, pass));
                    if self.dropout == 0.0 { y } else { self.dropped(y, i, at) }
                }
            };
        }
        x
    }

    fn dropped(&self, y: Tensor<2>, layer: usize, at: At) -> Tensor<2> {
        let [rows, units] = y.dims();
        let threshold = (self.dropout * 4_294_967_296.0) as u32;
        let scale = (1.0 / (1.0 - self.dropout)) as f32;
        let factors: Vec<f32> = (at.first..at.first + at.frames)
            .flat_map(|frame| {
                let key = Key::new(SEED, layer as u64, frame as u64);
                (0..units).map(move |unit| if key.bits(unit as u32) >= threshold { scale } else { 0.0 })
            })
            .collect();
        let factors = Tensor::<3>::from_data(TensorData::new(factors, [1, at.frames, units]), &y.device());
        (y.reshape([at.sequences, at.frames, units]) * factors).reshape([rows, units])
    }
}
