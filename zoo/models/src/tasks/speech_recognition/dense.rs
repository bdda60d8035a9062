//! Dense layers, applied to each frame separately.

use burn::module::Module;
use zoo_recipes::tasks::speech_recognition::{AcousticInit, AcousticSpec, Activation, DenseSpec};

use super::{Frames, Shape, cut};
use crate::Pass;
use crate::nn::{Init, Linear};
use crate::ops;

/// A linear layer with the model's initialiser.
pub fn affine(init: &Init, start: AcousticInit, input: usize, output: usize) -> Linear {
    let fans = (input + output) as f64;
    let bound = (input as f64).powf(-0.5);
    let shape = [output, input];
    let (weight, bias) = (init.at("weight"), init.at("bias"));
    let (weight, bias) = match start {
        AcousticInit::XavierUniform => {
            (weight.uniform(shape, (6.0 / fans).sqrt()), bias.constant([output], 0.0))
        }
        AcousticInit::XavierNormal => {
            (weight.normal(shape, (2.0 / fans).sqrt()), bias.constant([output], 0.0))
        }
        AcousticInit::XavierTruncatedNormal => {
            (weight.truncated_normal(shape, (2.6 / fans).sqrt()), bias.constant([output], 0.0))
        }
        AcousticInit::Torch => (weight.uniform(shape, bound), bias.uniform([output], bound)),
    };
    Linear { weight, bias: Some(bias) }
}

/// A layer applied to each frame separately: linear map, activation, dropout.
#[derive(Module, Debug)]
pub struct Dense {
    linear: Linear,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    dropout: f64,
}

impl Dense {
    pub fn new(init: &Init, layer: &DenseSpec, spec: &AcousticSpec, shape: &mut Shape) -> Self {
        let units = layer.units as usize;
        let linear = affine(&init.at("linear"), spec.init, shape.flat(), units);
        shape.becomes(units);
        Self { linear, activation: layer.activation, dropout: layer.dropout }
    }

    pub fn forward(&self, frames: Frames, pass: &mut Pass) -> Frames {
        frames.map_rows(|x| {
            let x = self.linear.forward(x, pass);
            match self.activation {
                Activation::None => ops::dropout(x, self.dropout, pass),
                Activation::Relu => ops::relu_dropout(x, self.dropout, pass),
                Activation::Relu20 => {
                    let x = cut(ops::relu_dropout(x, 0.0, pass), Activation::Relu20);
                    ops::dropout(x, self.dropout, pass)
                }
            }
        })
    }
}
