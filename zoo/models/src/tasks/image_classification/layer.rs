//! Layers of a classifier, and the order in which they are computed.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::image_classification::{BiasInit, ClassifierLayerSpec, FlattenOrder, WeightInit};

use crate::Pass;
use crate::nn::{Channels, Conv2d, ConvInit, Init, Linear};
use crate::ops::{self, Axis, Pooling};

/// One layer.
#[derive(Module, Debug)]
pub enum Layer {
    Convolution(Conv2d),
    Dense(Linear),
    Plain(Plain),
}

/// A layer without parameters.
#[derive(Module, Debug)]
pub struct Plain {
    #[module(skip)]
    step: Step,
}

/// Computation of a layer without parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    Pool(Pooling),
    Flatten(FlattenOrder),
    Relu,
    Sigmoid,
    Dropout(f64),
    /// ReLU and dropout as one operation.
    ReluDropout(f64),
    /// The layer is computed as part of another one.
    Done,
}

/// The numbers of a batch between two layers.
#[derive(Debug)]
pub enum Flow {
    /// `[pictures, height, width, channels]`.
    Picture(Tensor<4>),
    /// `[pictures, units]`.
    Row(Tensor<2>),
}

impl From<Step> for Layer {
    fn from(step: Step) -> Self {
        Self::Plain(Plain { step })
    }
}

impl Layer {
    pub fn forward(&self, flow: Flow, pass: &mut Pass) -> Flow {
        match self {
            Self::Convolution(layer) => Flow::Picture(layer.forward(flow.picture(), pass)),
            Self::Dense(layer) => Flow::Row(layer.forward(flow.row(), pass)),
            Self::Plain(layer) => match layer.step {
                Step::Pool(how) => Flow::Picture(ops::pool(flow.picture(), how)),
                Step::Flatten(order) => Flow::Row(flattened(flow.picture(), order)),
                Step::Relu => flow.map(|x| ops::relu_dropout(x, 0.0, pass)),
                Step::ReluDropout(rate) => flow.map(|x| ops::relu_dropout(x, rate, pass)),
                Step::Sigmoid => flow.map(ops::sigmoid),
                Step::Dropout(rate) => flow.map(|x| ops::dropout(x, rate, pass)),
                Step::Done => flow,
            },
        }
    }
}

impl Flow {
    /// The pixels.
    ///
    /// # Panics
    /// If the pixels are flattened already; the shapes of a model's spec exclude it.
    fn picture(self) -> Tensor<4> {
        match self {
            Self::Picture(x) => x,
            Self::Row(_) => unreachable!("a layer of pixels before `flatten`"),
        }
    }

    /// The rows.
    ///
    /// # Panics
    /// If the pixels are not flattened yet; the shapes of a model's spec exclude it.
    pub fn row(self) -> Tensor<2> {
        match self {
            Self::Row(x) => x,
            Self::Picture(_) => unreachable!("a layer of rows behind `flatten`"),
        }
    }

    /// Applies an operation to each number.
    fn map(self, mut of: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        match self {
            Self::Row(x) => Self::Row(of(x)),
            Self::Picture(x) => {
                let shape @ [pictures, height, width, channels] = x.dims();
                Self::Picture(of(x.reshape([pictures * height * width, channels])).reshape(shape))
            }
        }
    }
}

fn flattened(x: Tensor<4>, order: FlattenOrder) -> Tensor<2> {
    let [pictures, height, width, channels] = x.dims();
    let x = match order {
        FlattenOrder::ChannelsLast => x,
        FlattenOrder::ChannelsFirst => x.permute([0, 3, 1, 2]),
    };
    x.reshape([pictures, height * width * channels])
}

impl Step {
    /// The computation of a layer without parameters; [`Step::Done`] for others.
    pub fn of(layer: &ClassifierLayerSpec) -> Self {
        match *layer {
            ClassifierLayerSpec::Pool { of, size, stride } => {
                Self::Pool(Pooling::square(of, size as usize, stride as usize))
            }
            ClassifierLayerSpec::Flatten { order } => Self::Flatten(order),
            ClassifierLayerSpec::Relu {} => Self::Relu,
            ClassifierLayerSpec::Sigmoid {} => Self::Sigmoid,
            ClassifierLayerSpec::Dropout { rate } => Self::Dropout(rate),
            ClassifierLayerSpec::Convolution { .. } | ClassifierLayerSpec::Dense { .. } => Self::Done,
        }
    }
}

/// Two rewritings that keep every number and gradient:
///
/// - A ReLU before a maximum moves behind it, where fewer numbers remain. The maximum of a square
///   is at the same pixel if it is above 0, and has no gradient otherwise.
/// - A ReLU and a dropout behind it become one operation.
pub fn fused(mut layers: Vec<Layer>) -> Vec<Layer> {
    for i in 1..layers.len() {
        let (Some(before), Some(step)) = (step(&layers[i - 1]), step(&layers[i])) else { continue };
        let [first, second] = match (before, step) {
            (Step::Relu, Step::Pool(how)) if how.of == PoolKind::Max => [step, before],
            (Step::Relu, Step::Dropout(rate)) => [Step::ReluDropout(rate), Step::Done],
            _ => continue,
        };
        (layers[i - 1], layers[i]) = (first.into(), second.into());
    }
    layers
}

fn step(layer: &Layer) -> Option<Step> {
    match layer {
        Layer::Plain(layer) => Some(layer.step),
        Layer::Convolution(_) | Layer::Dense(_) => None,
    }
}

/// Bound of uniform weights.
fn bound(weights: WeightInit, fan_in: f64, fan_out: f64) -> f64 {
    match weights {
        WeightInit::XavierUniform => (6.0 / (fan_in + fan_out)).sqrt(),
        WeightInit::XavierFanIn => (3.0 / fan_in).sqrt(),
        WeightInit::Torch => fan_in.powf(-0.5),
    }
}

fn biases(init: &Init, bias: BiasInit, units: usize, fan_in: f64) -> Param<Tensor<1>> {
    match bias {
        BiasInit::Zero => init.at("bias").constant([units], 0.0),
        BiasInit::Torch => init.at("bias").uniform([units], fan_in.powf(-0.5)),
    }
}

/// A convolution of `input` channels; `None` for another kind of layer.
pub fn convolution(init: &Init, input: usize, layer: &ClassifierLayerSpec) -> Option<Conv2d> {
    let ClassifierLayerSpec::Convolution { channels, kernel, stride, padding, weights, bias } = *layer else {
        return None;
    };
    let [channels, kernel, stride, padding] = [channels, kernel, stride, padding].map(|n| n as usize);
    let taps = (kernel * kernel) as f64;
    let fan_in = input as f64 * taps;
    let start = ConvInit::Uniform(bound(weights, fan_in, channels as f64 * taps));
    let axis = Axis::default().strided(stride).padded(padding, padding);
    let channels = Channels::new(input, channels);
    let mut convolution = Conv2d::new(init, channels, [kernel; 2], [axis; 2], false, start);
    convolution.bias = Some(biases(init, bias, channels.output, fan_in));
    Some(convolution)
}

/// A linear layer of `input` numbers.
pub fn dense(init: &Init, input: usize, units: usize, weights: WeightInit, bias: BiasInit) -> Linear {
    let bound = bound(weights, input as f64, units as f64);
    Linear {
        weight: init.at("weight").uniform([units, input], bound),
        bias: Some(biases(init, bias, units, input as f64)),
    }
}
