//! Layers of a classifier of texts, and the order in which they are computed.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::text_classification::{GateFunction, StateOutput, TextLayerSpec, TextWeightInit};

use crate::Pass;
use crate::nn::{
    Channels, Conv1d, ConvInit, Init, LayerNormLstm, LayerNormLstmSpec, Linear, Lstm, LstmState, Recurrent,
};
use crate::ops::{self, Axis, Pooling, Sequences};

/// One layer behind the embedding.
// A model has a few layers, so the room that small variants waste does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Layer {
    Convolution(Conv1d),
    Kernels(Kernels),
    Lstm(LastOutput),
    LastState(LastState),
    Dense(Dense),
    Plain(Plain),
}

/// Convolutions side by side, each with ReLU and the maximum over positions.
#[derive(Module, Debug)]
pub struct Kernels {
    convolutions: Vec<Conv1d>,
}

/// LSTM whose output is that of the last position.
#[derive(Module, Debug)]
pub struct LastOutput {
    forward: Lstm,
    /// Reads from the last position to the first.
    backward: Option<Lstm>,
    #[module(skip)]
    gates: GateFunction,
}

/// Stack of layer-normalised LSTM layers whose output is the state of the last layer behind the
/// last word.
#[derive(Module, Debug)]
pub struct LastState {
    layers: Vec<LayerNormLstm>,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    state: StateOutput,
}

/// Linear layer; the norm of its rows may be set.
#[derive(Module, Debug)]
pub struct Dense {
    /// Shape `[units, in]`.
    pub weight: Param<Tensor<2>>,
    /// Shape `[units]`.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    row_norm: Option<f64>,
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
    /// Maximum or mean of groups of this many positions; `None`: of all positions.
    Pool(PoolKind, Option<usize>),
    Relu,
    Dropout(f64),
    /// ReLU and dropout as one operation.
    ReluDropout(f64),
    /// The layer is computed as part of another one.
    Done,
}

/// The numbers of a batch between two layers.
#[derive(Debug)]
pub enum Flow {
    /// `[texts, positions, width]`.
    Steps(Tensor<3>),
    /// `[texts, units]`.
    Row(Tensor<2>),
}

impl From<Step> for Layer {
    fn from(step: Step) -> Self {
        Self::Plain(Plain { step })
    }
}

impl Layer {
    /// The layer's output, in the compute type, or FP32 values that are rounded as the compute type
    /// stores them. `words` says of each position `[texts, positions]` of the input whether it has
    /// a word.
    pub fn forward(&self, flow: Flow, words: &[bool], pass: &mut Pass) -> Flow {
        let flow = match self {
            Self::Convolution(layer) => Flow::Steps(layer.forward(flow.steps(), pass)),
            Self::Kernels(layer) => Flow::Row(layer.forward(&flow.steps(), pass)),
            Self::Lstm(layer) => Flow::Row(layer.forward(flow.steps(), pass)),
            Self::LastState(layer) => Flow::Row(layer.forward(flow.steps(), words, pass)),
            Self::Dense(layer) => Flow::Row(layer.forward(flow.row(), pass)),
            Self::Plain(layer) => match layer.step {
                Step::Pool(of, Some(size)) => Flow::Steps(pooled(flow.steps(), of, size)),
                Step::Pool(of, None) => Flow::Row(over_positions(flow.steps(), of)),
                Step::Relu => flow.map(|x| ops::relu_dropout(x, 0.0, pass)),
                Step::ReluDropout(rate) => flow.map(|x| ops::relu_dropout(x, rate, pass)),
                Step::Dropout(rate) => flow.map(|x| ops::dropout(x, rate, pass)),
                Step::Done => return flow,
            },
        };
        flow.stored(pass)
    }

    /// The layer with rows of the norm that its spec sets.
    pub fn with_row_norm(self) -> Self {
        match self {
            Self::Dense(layer) => Self::Dense(layer.with_row_norm()),
            other => other,
        }
    }
}

impl Flow {
    /// The numbers of the positions.
    ///
    /// # Panics
    /// If the positions are put together already; the shapes of a model's spec exclude it.
    fn steps(self) -> Tensor<3> {
        match self {
            Self::Steps(x) => x,
            Self::Row(_) => unreachable!("a layer of positions behind `over-positions`"),
        }
    }

    /// The rows.
    ///
    /// # Panics
    /// If there are positions still; the shapes of a model's spec exclude it.
    pub fn row(self) -> Tensor<2> {
        match self {
            Self::Row(x) => x,
            Self::Steps(_) => unreachable!("a layer of rows before `over-positions`"),
        }
    }

    /// Applies an operation to each number.
    fn map(self, mut of: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        match self {
            Self::Row(x) => Self::Row(of(x)),
            Self::Steps(x) => {
                let shape @ [texts, positions, width] = x.dims();
                Self::Steps(of(x.reshape([texts * positions, width])).reshape(shape))
            }
        }
    }

    /// The numbers as they are stored between layers.
    pub fn stored(self, pass: &Pass) -> Self {
        match self {
            Self::Row(x) => Self::Row(ops::stored(x, pass.compute)),
            Self::Steps(x) => Self::Steps(ops::stored(x, pass.compute)),
        }
    }
}

/// Maximum or mean of groups of `size` positions: `[texts, positions / size, width]`.
fn pooled(x: Tensor<3>, of: PoolKind, size: usize) -> Tensor<3> {
    let [texts, positions, width] = x.dims();
    let groups = ops::pool(x.reshape([texts, positions, 1, width]), Pooling::of_steps(of, size));
    let [_, positions, _, _] = groups.dims();
    groups.reshape([texts, positions, width])
}

/// Maximum or mean over all positions: `[texts, width]`.
fn over_positions(x: Tensor<3>, of: PoolKind) -> Tensor<2> {
    let [texts, positions, width] = x.dims();
    pooled(x, of, positions).reshape([texts, width])
}

impl Kernels {
    /// x `[texts, positions, in]` -> `[texts, kernels x channels]`. A maximum and a ReLU behind it
    /// have the value and the gradient of a ReLU and a maximum behind it, but where the maximum is
    /// not above 0, both have none.
    fn forward(&self, x: &Tensor<3>, pass: &mut Pass) -> Tensor<2> {
        let mut of = |convolution: &Conv1d| {
            let largest = convolution.forward_maximum(x.clone(), pass);
            ops::relu_dropout(largest, 0.0, pass)
        };
        Tensor::cat(self.convolutions.iter().map(&mut of).collect(), 1)
    }
}

impl LastOutput {
    /// x `[texts, positions, in]` -> `[texts, units]`, FP32; with both directions twice as many.
    fn forward(&self, x: Tensor<3>, pass: &Pass) -> Tensor<2> {
        let [texts, positions, width] = x.dims();
        let x = x.reshape([texts * positions, width]);
        let sequences = Sequences::new(&vec![positions as u32; texts]);
        let last = |lstm: &Lstm, x: Tensor<2>, sequences: &Sequences| match self.gates {
            GateFunction::Sigmoid => lstm.forward(x, sequences, None, pass).1.h,
            GateFunction::HardSigmoid => lstm.forward_hard(x, sequences, pass).1.h,
        };
        match &self.backward {
            None => last(&self.forward, x, &sequences),
            Some(backward) => {
                let ahead = last(&self.forward, x.clone(), &sequences);
                Tensor::cat(vec![ahead, last(backward, x, &sequences.reversed())], 1)
            }
        }
    }
}

impl LastState {
    /// x `[texts, positions, in]` -> `[texts, units]`, FP32; with the cell state twice as many. A
    /// text without words has zeros.
    fn forward(&self, x: Tensor<3>, words: &[bool], pass: &mut Pass) -> Tensor<2> {
        let ([texts, positions, width], device) = (x.dims(), x.device());
        let at = |step: usize| (0..texts).map(move |text| words[text * positions + step]);
        let read: Vec<usize> = (0..positions).filter(|step| at(*step).any(|word| word)).collect();
        // Steps before the first word of all texts and behind the last one change no state.
        let [first, end] = [read.first().copied().unwrap_or(0), read.last().map_or(1, |last| last + 1)];
        let mask = |step: usize| {
            let values: Vec<f32> = at(step).map(|word| if word { 1.0 } else { 0.0 }).collect();
            let all = values.iter().all(|read| *read == 1.0);
            (!all).then(|| Tensor::<2>::from_data(TensorData::new(values, [texts, 1]), &device))
        };
        let masks: Vec<_> = (first..end).map(mask).collect();
        let mut x = x.narrow(1, first, end - first).reshape([texts * (end - first), width]);
        let mut last = None;
        for (at, layer) in self.layers.iter().enumerate() {
            // The output of the last layer is not read.
            let input = if at == 0 { x } else { ops::dropout(x, self.dropout, pass) };
            let (out, state) = layer.forward_over(input, texts, None, &masks, pass);
            (x, last) = (out, Some(state));
        }
        match (last, self.state) {
            (Some(LstmState { h, .. }), StateOutput::Output) => h,
            (Some(LstmState { h, c }), StateOutput::OutputAndCell) => Tensor::cat(vec![h, c], 1),
            (None, _) => unreachable!("`shapes` requires a layer"),
        }
    }
}

impl Dense {
    /// A linear layer of `input` numbers, with biases of 0.
    pub fn new(
        init: &Init,
        input: usize,
        units: usize,
        weights: TextWeightInit,
        row_norm: Option<f64>,
    ) -> Self {
        let (at, shape) = (init.at("weight"), [units, input]);
        let weight = match weights {
            TextWeightInit::XavierUniform {} => Linear::new(init, input, units, false, 1.0).weight,
            TextWeightInit::Uniform { bound } => at.uniform(shape, bound),
            TextWeightInit::Normal { deviation } => at.normal(shape, deviation),
        };
        Self { weight, bias: init.at("bias").constant([units], 0.0), row_norm }
    }

    /// x `[rows, in]` -> `[rows, units]`, in the compute type.
    pub fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        ops::linear(x, self.weight.val(), Some(self.bias.val()), pass)
    }

    /// The layer with each row of its weight multiplied by norm / (1e-7 + |row|), if the norm is
    /// set (sent-conv-torch's `renorm`).
    pub fn with_row_norm(self) -> Self {
        let Some(norm) = self.row_norm else { return self };
        let weight = self.weight.map(|weight| {
            let tracked = weight.device().is_autodiff();
            let rows = if tracked { weight.inner() } else { weight };
            let length = (rows.clone() * rows.clone()).sum_dim(1).sqrt();
            let rows = rows * norm / (length + 1e-7);
            if tracked { Tensor::from_inner(rows).require_grad() } else { rows }
        });
        Self { weight, ..self }
    }
}

impl Step {
    /// The computation of a layer without parameters; [`Step::Done`] for others.
    pub fn of(layer: &TextLayerSpec) -> Self {
        match *layer {
            TextLayerSpec::Pool { of, size } => Self::Pool(of, Some(size as usize)),
            TextLayerSpec::OverPositions { of } => Self::Pool(of, None),
            TextLayerSpec::Relu {} => Self::Relu,
            TextLayerSpec::Dropout { rate } => Self::Dropout(rate),
            TextLayerSpec::Embedding { .. }
            | TextLayerSpec::Convolution { .. }
            | TextLayerSpec::Kernels { .. }
            | TextLayerSpec::Lstm { .. }
            | TextLayerSpec::LayerNormLstm { .. }
            | TextLayerSpec::Dense { .. } => Self::Done,
        }
    }
}

/// Two rewritings that keep every number and gradient:
///
/// - A ReLU before a maximum moves behind it, where fewer numbers remain. The maximum of a group is
///   at the same position if it is above 0, and has no gradient otherwise.
/// - A ReLU and a dropout behind it become one operation; so do a dropout and a ReLU behind it,
///   whose factors are not negative.
pub fn fused(mut layers: Vec<Layer>) -> Vec<Layer> {
    for i in 1..layers.len() {
        let (Some(before), Some(step)) = (step(&layers[i - 1]), step(&layers[i])) else { continue };
        let [first, second] = match (before, step) {
            (Step::Relu, Step::Pool(PoolKind::Max, _)) => [step, before],
            (Step::Relu, Step::Dropout(rate)) | (Step::Dropout(rate), Step::Relu) => {
                [Step::ReluDropout(rate), Step::Done]
            }
            _ => continue,
        };
        (layers[i - 1], layers[i]) = (first.into(), second.into());
    }
    layers
}

pub(super) fn step(layer: &Layer) -> Option<Step> {
    match layer {
        Layer::Plain(layer) => Some(layer.step),
        Layer::Convolution(_)
        | Layer::Kernels(_)
        | Layer::Lstm(_)
        | Layer::LastState(_)
        | Layer::Dense(_) => None,
    }
}

/// A convolution of `input` channels over positions.
fn convolution(init: &Init, input: usize, channels: u32, kernel: u32, weights: TextWeightInit) -> Conv1d {
    let (channels, kernel) = (Channels::new(input, channels as usize), kernel as usize);
    let start = match weights {
        TextWeightInit::XavierUniform {} => ConvInit::Xavier(1.0),
        TextWeightInit::Uniform { bound } => ConvInit::Uniform(bound),
        TextWeightInit::Normal { deviation } => ConvInit::Normal(deviation),
    };
    Conv1d::new(init, channels, kernel, Axis::default(), true, start)
}

/// The layer of a spec on positions of `width` numbers, or on a row of them. `init` is its place.
pub fn layer(init: &Init, width: usize, spec: &TextLayerSpec) -> Layer {
    match *spec {
        TextLayerSpec::Convolution { channels, kernel, weights } => {
            Layer::Convolution(convolution(init, width, channels, kernel, weights))
        }
        TextLayerSpec::Kernels { channels, ref kernels, weights } => {
            let at = init.at("convolutions");
            let of = |(i, kernel): (usize, &u32)| convolution(&at.at(i), width, channels, *kernel, weights);
            Layer::Kernels(Kernels { convolutions: kernels.iter().enumerate().map(of).collect() })
        }
        TextLayerSpec::Lstm { units, gates, bidirectional } => {
            let of = |name: &str| Lstm::keras(&init.at(name), width, units as usize);
            let backward = bidirectional.then(|| of("backward"));
            Layer::Lstm(LastOutput { forward: of("forward"), backward, gates })
        }
        TextLayerSpec::LayerNormLstm {
            units,
            width: last,
            layers,
            candidate_dropout,
            dropout,
            forget_bias,
            epsilon,
            state,
        } => {
            let hidden = |at: u32| if at + 1 == layers { last as usize } else { units as usize };
            let of = |at: u32| {
                let input = if at == 0 { width } else { hidden(at - 1) };
                let hidden = hidden(at);
                let spec = LayerNormLstmSpec { input, hidden, forget_bias, candidate_dropout, epsilon };
                LayerNormLstm::new(&init.at("layers").at(at), spec)
            };
            Layer::LastState(LastState { layers: (0..layers).map(of).collect(), dropout, state })
        }
        TextLayerSpec::Dense { units, weights, row_norm } => {
            Layer::Dense(Dense::new(init, width, units as usize, weights, row_norm))
        }
        _ => Step::of(spec).into(),
    }
}
