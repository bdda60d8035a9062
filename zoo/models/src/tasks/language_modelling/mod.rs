//! Language models: from the units so far to scores of the next one.

mod batch;
mod cost;
mod gpt;
mod loss;
mod lstm;
mod normed;
#[cfg(test)]
mod tests;

pub use batch::WindowBatch;
pub use cost::cost;
pub use gpt::Gpt;
pub use loss::{LanguageLoss, losses};
pub use lstm::LstmModel;
pub use normed::LayerNormLstmModel;
pub use zoo_recipes::tasks::language_modelling::NO_TARGET;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::language_modelling::LanguageModelSpec;

use crate::Pass;
use crate::nn::{Init, LstmState};
use crate::ops;

/// State of a model between two windows, for each layer; empty for a model without a state. It has
/// no gradient.
pub type ModelState = Vec<LstmState>;

/// A language model of a spec.
#[derive(Module, Debug)]
pub enum LanguageModel {
    /// A stack of LSTM layers.
    Lstm(LstmModel),
    /// A stack of layer-normalised LSTM layers.
    LayerNormLstm(LayerNormLstmModel),
    /// A decoder of Transformer blocks.
    Gpt(Gpt),
}

impl LanguageModel {
    /// Builds a model of `units` units. `rows` is the number of rows whose state is carried from
    /// one training batch to the next; 0 for none.
    pub fn new(spec: &LanguageModelSpec, units: usize, rows: usize, seed: u64, device: &Device) -> Self {
        let init = Init::new(seed, device);
        match spec {
            LanguageModelSpec::Lstm(spec) => Self::Lstm(LstmModel::new(spec, units, rows, &init)),
            LanguageModelSpec::LayerNormLstm(spec) => {
                Self::LayerNormLstm(LayerNormLstmModel::new(spec, units, &init))
            }
            LanguageModelSpec::Gpt(spec) => Self::Gpt(Gpt::new(spec, units, &init)),
        }
    }

    /// Device of the parameters.
    pub fn device(&self) -> Device {
        match self {
            Self::Lstm(model) => model.device(),
            Self::LayerNormLstm(model) => model.device(),
            Self::Gpt(model) => model.device(),
        }
    }

    /// Logits `[rows x steps, units]` in the compute type, one row for each input in their order;
    /// and the state at the end of the windows. Without a state the windows begin with zeros.
    pub fn forward(
        &self,
        inputs: &[u32],
        rows: usize,
        state: Option<ModelState>,
        pass: &mut Pass,
    ) -> (Tensor<2>, ModelState) {
        let (outputs, state) = self.outputs(inputs, rows, state, pass);
        let (weight, bias) = self.softmax();
        (ops::linear(outputs, weight, bias, pass), state)
    }

    /// What the softmax reads, `[rows x steps, width]`, instead of its logits; see
    /// [`Self::forward`].
    pub fn outputs(
        &self,
        inputs: &[u32],
        rows: usize,
        state: Option<ModelState>,
        pass: &mut Pass,
    ) -> (Tensor<2>, ModelState) {
        match self {
            Self::Lstm(model) => model.outputs(inputs, rows, state, pass),
            Self::LayerNormLstm(model) => model.outputs(inputs, rows, state, pass),
            Self::Gpt(model) => (model.outputs(inputs, rows, pass), ModelState::new()),
        }
    }

    /// Weight `[units, width]` and bias of the softmax.
    pub fn softmax(&self) -> (Tensor<2>, Option<Tensor<1>>) {
        match self {
            Self::Lstm(model) => model.softmax(),
            Self::LayerNormLstm(model) => model.softmax(),
            Self::Gpt(model) => model.softmax(),
        }
    }

    /// The state that training carries to its next batch; `None` if it carries none.
    pub fn carried(&self) -> Option<ModelState> {
        match self {
            Self::Lstm(model) => model.carried(),
            Self::LayerNormLstm(_) | Self::Gpt(_) => None,
        }
    }

    /// Keeps a state for the next training batch.
    fn carry(self, state: ModelState) -> Self {
        match self {
            Self::Lstm(model) => Self::Lstm(model.carry(state)),
            Self::LayerNormLstm(_) | Self::Gpt(_) => self,
        }
    }
}
