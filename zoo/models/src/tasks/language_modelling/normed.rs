//! A stack of layer-normalised LSTM layers whose softmax is tied to the embedding (OpenSeq2Seq's
//! `LMEncoder`).

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::language_modelling::LayerNormLstmModelSpec;

use super::ModelState;
use super::lstm::{Softmax, Table, leaf, untracked};
use crate::Pass;
use crate::nn::{Init, LayerNormLstm, LayerNormLstmSpec};
use crate::ops;

/// Embedding, layers, and the bias of the softmax.
#[derive(Module, Debug)]
pub struct LayerNormLstmModel {
    embedding: Table,
    layers: Vec<LayerNormLstm>,
    softmax: Softmax,
    #[module(skip)]
    embedding_dropout: f64,
    #[module(skip)]
    dropout: f64,
}

impl LayerNormLstmModel {
    /// Builds a model of `units` units.
    pub(super) fn new(spec: &LayerNormLstmModelSpec, units: usize, init: &Init) -> Self {
        let width = spec.width as usize;
        let layer = |at: u32| {
            let [input, hidden] = spec.layer(at).map(|n| n as usize);
            let spec = LayerNormLstmSpec {
                input,
                hidden,
                forget_bias: spec.forget_bias,
                candidate_dropout: spec.candidate_dropout,
                epsilon: spec.epsilon,
            };
            LayerNormLstm::new(&init.at("layers").at(at), spec)
        };
        Self {
            embedding: Table {
                weight: init.at("embedding.weight").uniform([units, width], spec.embedding_bound),
            },
            layers: (0..spec.layers).map(layer).collect(),
            softmax: Softmax { weight: None, bias: init.at("softmax.bias").constant([units], 0.0) },
            embedding_dropout: spec.embedding_dropout,
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
        let ids: Vec<Option<u32>> = inputs.iter().map(|id| Some(*id)).collect();
        let table = self.embedding.weight.val();
        // The softmax reads the table without dropout.
        let looked_up = ops::dropout(table, self.embedding_dropout, pass);
        let mut x = ops::stored(ops::embedding(looked_up, &ids), pass.compute);
        let mut before = state.map(Vec::into_iter);
        let mut after = ModelState::with_capacity(self.layers.len());
        for layer in &self.layers {
            let first = before.as_mut().and_then(Iterator::next).map(|state| leaf(state, &x.device()));
            let (out, last) = layer.forward(x, rows, first, pass);
            after.push(untracked(last));
            x = ops::dropout(out, self.dropout, pass);
        }
        (x, after)
    }

    /// See [`super::LanguageModel::softmax`].
    pub(super) fn softmax(&self) -> (Tensor<2>, Option<Tensor<1>>) {
        (self.embedding.weight.val(), Some(self.softmax.bias.val()))
    }
}
