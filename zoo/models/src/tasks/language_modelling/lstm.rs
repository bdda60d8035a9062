//! A stack of LSTM layers between an embedding and a softmax (Zaremba et al. 2014; PyTorch's
//! `word_language_model`).

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::language_modelling::LstmModelSpec;

use super::ModelState;
use crate::Pass;
use crate::nn::{Biases, Init, Lstm, LstmState, Recurrent};
use crate::ops::{self, Sequences};

/// Embedding, LSTM layers and softmax, with dropout between all of them.
#[derive(Module, Debug)]
pub struct LstmModel {
    embedding: Table,
    layers: Vec<Lstm>,
    softmax: Softmax,
    /// State at the end of the last training batch, for each layer. Part of the weights, so that a
    /// run resumes with it.
    state: Vec<Carried>,
    #[module(skip)]
    dropout: f64,
}

/// The vectors of the units.
#[derive(Module, Debug)]
pub(super) struct Table {
    /// Shape `[units, width]`.
    pub(super) weight: Param<Tensor<2>>,
}

/// The output layer.
#[derive(Module, Debug)]
pub(super) struct Softmax {
    /// Shape `[units, output]`; absent if it is the embedding.
    pub(super) weight: Option<Param<Tensor<2>>>,
    /// Shape `[units]`.
    pub(super) bias: Param<Tensor<1>>,
}

/// State of a layer. It is not learned.
#[derive(Module, Debug)]
struct Carried {
    /// Output state `[rows, output]`.
    running_h: Param<Tensor<2>>,
    /// Cell state `[rows, hidden]`.
    running_c: Param<Tensor<2>>,
}

impl LstmModel {
    /// Builds a model of `units` units that carries the state of `rows` rows.
    pub(super) fn new(spec: &LstmModelSpec, units: usize, rows: usize, init: &Init) -> Self {
        let [width, hidden, output] = [spec.width, spec.units, spec.output()].map(|n| n as usize);
        let (bound, biases) = (spec.layer_bound(), Biases::from(spec.biases));
        let forget = spec.forget_bias.map(|bias| bias as f32);
        let layer = |at: usize| {
            let (init, input) = (init.at("layers").at(at), if at == 0 { width } else { output });
            match spec.projection {
                None => Lstm::new(&init, input, hidden, biases, bound, forget),
                Some(projection) => {
                    let bounds = [bound, projection.bound];
                    Lstm::projected(&init, [input, hidden, output], biases, bounds, forget)
                }
            }
        };
        let softmax = init.at("softmax");
        let state = |at: usize| {
            let at = init.at("state").at(at);
            let zeros =
                |name: &str, width: usize| at.at(name).constant([rows, width], 0.0).set_require_grad(false);
            Carried { running_h: zeros("running_h", output), running_c: zeros("running_c", hidden) }
        };
        let carried = if rows > 0 { spec.layers as usize } else { 0 };
        Self {
            embedding: Table {
                weight: init.at("embedding.weight").uniform([units, width], spec.embedding_bound),
            },
            layers: (0..spec.layers as usize).map(layer).collect(),
            softmax: Softmax {
                weight: (!spec.tied)
                    .then(|| softmax.at("weight").uniform([units, output], spec.embedding_bound)),
                bias: match spec.softmax_bias_bound {
                    0.0 => softmax.at("bias").constant([units], 0.0),
                    bound => softmax.at("bias").uniform([units], bound),
                },
            },
            state: (0..carried).map(state).collect(),
            dropout: spec.dropout,
        }
    }

    pub(super) fn device(&self) -> Device {
        self.embedding.weight.val().device()
    }

    /// See [`super::LanguageModel::outputs`].
    pub(super) fn outputs(
        &self,
        inputs: &[u32],
        rows: usize,
        state: Option<ModelState>,
        pass: &mut Pass,
    ) -> (Tensor<2>, ModelState) {
        let sequences = Sequences::new(&vec![(inputs.len() / rows.max(1)) as u32; rows]);
        let ids: Vec<Option<u32>> = inputs.iter().map(|id| Some(*id)).collect();
        let table = self.embedding.weight.val();
        let x = ops::dropout(ops::embedding(table, &ids), self.dropout, pass);
        let mut x = ops::stored(x, pass.compute);
        let mut before = state.map(Vec::into_iter);
        let mut after = ModelState::with_capacity(self.layers.len());
        for layer in &self.layers {
            let first = before.as_mut().and_then(Iterator::next).map(|state| leaf(state, &x.device()));
            let (out, last) = layer.forward(x, &sequences, first, pass);
            after.push(untracked(last));
            x = ops::dropout(out, self.dropout, pass);
        }
        (x, after)
    }

    /// See [`super::LanguageModel::softmax`].
    pub(super) fn softmax(&self) -> (Tensor<2>, Option<Tensor<1>>) {
        let weight = self.softmax.weight.as_ref().unwrap_or(&self.embedding.weight);
        (weight.val(), Some(self.softmax.bias.val()))
    }

    /// See [`super::LanguageModel::carried`].
    pub(super) fn carried(&self) -> Option<ModelState> {
        let of =
            |state: &Carried| untracked(LstmState { h: state.running_h.val(), c: state.running_c.val() });
        (!self.state.is_empty()).then(|| self.state.iter().map(of).collect())
    }

    /// See [`super::LanguageModel::carry`].
    pub(super) fn carry(self, state: ModelState) -> Self {
        let keep = |param: Param<Tensor<2>>, value: Tensor<2>| {
            param.map(|old| if old.device().is_autodiff() { Tensor::from_inner(value) } else { value })
        };
        let pairs = self.state.into_iter().zip(state);
        let state = pairs
            .map(|(old, new)| Carried {
                running_h: keep(old.running_h, new.h),
                running_c: keep(old.running_c, new.c),
            })
            .collect();
        Self { state, ..self }
    }
}

/// A state outside autodiff.
pub(super) fn untracked(LstmState { h, c }: LstmState) -> LstmState {
    let outside = |x: Tensor<2>| if x.device().is_autodiff() { x.inner() } else { x };
    LstmState { h: outside(h), c: outside(c) }
}

/// A state outside autodiff as input of a layer on `device`, without a gradient.
pub(super) fn leaf(LstmState { h, c }: LstmState, device: &Device) -> LstmState {
    let inside = |x: Tensor<2>| if device.is_autodiff() { Tensor::from_inner(x) } else { x };
    LstmState { h: inside(h), c: inside(c) }
}
