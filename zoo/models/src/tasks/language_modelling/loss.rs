//! Cross-entropy of a language model, as defined by a recipe's `[loss]`, with the state that is
//! carried from window to window.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use zoo_recipes::Smoothing;
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LossOver};

use super::{LanguageModel, ModelState, WindowBatch};
use crate::Pass;
use crate::contract::{Objective, Running, Term};
use crate::ops::{SmoothedTargets, cross_entropy};
use crate::parameters::host_values;

/// The training objective of language models: `nll`, in nats, divided by the number of targets.
///
/// In training the carried state is part of the model: a window begins with the state that the last
/// accepted update left there. An update that is skipped for an overflow leaves the state as it
/// was. In evaluation the objective itself carries the state, from each batch to the next.
#[derive(Debug, Clone)]
pub struct LanguageLoss {
    weight: f64,
    /// Whether evaluation carries the state.
    carries: bool,
    /// State at the end of the last training batch, until its update is accepted.
    trained: Arc<Mutex<Option<ModelState>>>,
    /// State at the end of the last batch of evaluation.
    evaluated: Arc<Mutex<Option<ModelState>>>,
}

impl LanguageLoss {
    /// Builds the objective from a recipe's loss settings. `steps` is the number of steps of a
    /// training window; `carries` says whether evaluation carries the state.
    pub fn new(spec: &LanguageLossSpec, steps: u32, carries: bool) -> Self {
        let LanguageLossSpec::CrossEntropy { over } = spec;
        let weight = match over {
            LossOver::Mean => 1.0,
            LossOver::SumOfSteps => f64::from(steps),
        };
        Self { weight, carries, trained: Arc::default(), evaluated: Arc::default() }
    }

    /// Loss summed over the targets of a batch, and state at its end.
    fn nll(
        model: &LanguageModel,
        batch: &WindowBatch,
        state: Option<ModelState>,
        pass: &mut Pass,
    ) -> (Tensor<1>, ModelState) {
        let (logits, state) = model.forward(&batch.inputs, batch.rows, state, pass);
        let units = logits.dims()[1];
        let targets = SmoothedTargets::new(&batch.targets, units, 0.0, Smoothing::AllClasses);
        (cross_entropy(logits, &targets).0, state)
    }
}

fn put(place: &Mutex<Option<ModelState>>, state: Option<ModelState>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = state;
}

fn take(place: &Mutex<Option<ModelState>>) -> Option<ModelState> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Objective<LanguageModel, WindowBatch> for LanguageLoss {
    fn counts(&self, batch: &WindowBatch) -> Vec<(&'static str, f64)> {
        vec![("nll", batch.targets.len() as f64)]
    }

    fn terms(&self, model: &LanguageModel, batch: &WindowBatch, pass: &mut Pass) -> Vec<Term> {
        let state = match pass.is_training() {
            _ if batch.begins => None,
            true => model.carried(),
            false => take(&self.evaluated),
        };
        let training = pass.is_training();
        let (sum, state) = Self::nll(model, batch, state, pass);
        if training {
            put(&self.trained, Some(state));
        } else if self.carries {
            put(&self.evaluated, Some(state));
        }
        vec![Term { name: "nll", sum, weight: self.weight }]
    }
}

impl Running<LanguageModel> for LanguageLoss {
    fn commit(&self, model: LanguageModel) -> LanguageModel {
        match take(&self.trained) {
            Some(state) => model.carry(state),
            None => model,
        }
    }

    fn discard(&self) {
        put(&self.trained, None);
    }
}

/// Loss of each target of a batch in nats, `[rows, steps]` on the host, and the state at its end.
pub fn losses(
    model: &LanguageModel,
    batch: &WindowBatch,
    state: Option<ModelState>,
    pass: &mut Pass,
) -> (f64, ModelState) {
    let (sum, state) = LanguageLoss::nll(model, batch, state, pass);
    let sum = if sum.device().is_autodiff() { sum.inner() } else { sum };
    (f64::from(host_values(sum)[0]), state)
}
