//! Cross-entropy of a language model, as defined by a recipe's `[loss]`, with the state that is
//! carried from window to window.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Int, Tensor, TensorData};
use zoo_recipes::Smoothing;
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LossOver};

use super::{LanguageModel, ModelState, NO_TARGET, WindowBatch};
use crate::Pass;
use crate::contract::{Objective, Running, Term};
use crate::nn::{Candidates, sampled_softmax};
use crate::ops::{self, SmoothedTargets, cross_entropy};
use crate::parameters::host_values;

/// Most logits that an evaluation has at a time: more are computed in parts.
const MOST_LOGITS: usize = 1 << 28;

/// The training objective of language models: `nll`, in nats, divided by the number of targets.
/// With a sampled softmax its name is `loss`: in training it is not a likelihood.
///
/// In training the carried state is part of the model: a window begins with the state that the last
/// accepted update left there. An update that is skipped for an overflow leaves the state as it
/// was. In evaluation the objective itself carries the state, from each batch to the next.
#[derive(Debug, Clone)]
pub struct LanguageLoss {
    weight: f64,
    sampled: Option<Sampled>,
    /// Whether evaluation carries the state.
    carries: bool,
    /// State at the end of the last training batch, until its update is accepted.
    trained: Arc<Mutex<Option<ModelState>>>,
    /// State at the end of the last batch of evaluation.
    evaluated: Arc<Mutex<Option<ModelState>>>,
}

/// How candidates of a sampled softmax are drawn.
#[derive(Debug, Clone)]
struct Sampled {
    count: u32,
    draws: u32,
    /// Candidates in place of drawn ones.
    given: Option<Arc<[Candidates]>>,
}

impl LanguageLoss {
    /// Builds the objective from a recipe's loss settings. `steps` is the number of steps of a
    /// training window; `carries` says whether evaluation carries the state.
    pub fn new(spec: &LanguageLossSpec, steps: u32, carries: bool) -> Self {
        let weight = match spec.over() {
            LossOver::Mean => 1.0,
            LossOver::SumOfSteps => f64::from(steps),
        };
        let sampled = match *spec {
            LanguageLossSpec::CrossEntropy { .. } => None,
            LanguageLossSpec::SampledSoftmax { sampled, draws, .. } => {
                Some(Sampled { count: sampled, draws, given: None })
            }
        };
        Self { weight, sampled, carries, trained: Arc::default(), evaluated: Arc::default() }
    }

    /// Takes these candidates for every batch in place of drawn ones, for comparisons.
    #[must_use]
    pub fn with_candidates(mut self, candidates: Vec<Candidates>) -> Self {
        if let Some(sampled) = &mut self.sampled {
            sampled.given = Some(candidates.into());
        }
        self
    }

    /// Name of the term.
    fn name(&self) -> &'static str {
        if self.sampled.is_some() { "loss" } else { "nll" }
    }

    /// Loss summed over the targets of a batch, and state at its end.
    fn nll(
        model: &LanguageModel,
        batch: &WindowBatch,
        state: Option<ModelState>,
        pass: &mut Pass,
    ) -> (Tensor<1>, ModelState) {
        let (outputs, state) = model.outputs(&batch.inputs, batch.rows, state, pass);
        let (outputs, targets) = predicted(outputs, &batch.targets);
        let softmax = model.softmax();
        // The gradient of a weight that is used in parts would be added up part by part.
        let part = match pass.is_training() {
            true => targets.len(),
            false => MOST_LOGITS / softmax.0.dims()[0].max(1),
        };
        (summed(outputs, &targets, softmax, part, pass), state)
    }

    /// Loss among the targets and candidates, summed over a batch, and state at its end.
    fn sampled_nll(
        sampled: &Sampled,
        model: &LanguageModel,
        batch: &WindowBatch,
        state: Option<ModelState>,
        pass: &mut Pass,
    ) -> (Tensor<1>, ModelState) {
        let (outputs, state) = model.outputs(&batch.inputs, batch.rows, state, pass);
        let (outputs, targets) = predicted(outputs, &batch.targets);
        let softmax = model.softmax();
        let units = softmax.0.dims()[0] as u32;
        let count = sampled.count.min(units.saturating_sub(1));
        let candidates = match &sampled.given {
            Some(given) => given.to_vec(),
            None => (0..sampled.draws)
                .filter_map(|_| Some(Candidates::draw(pass.dropout_key()?, count, units)))
                .collect(),
        };
        (sampled_softmax(outputs, softmax, &targets, &candidates, pass), state)
    }
}

/// Loss of all units, summed over the rows of the outputs. At most `part` rows have their logits at
/// a time.
pub(super) fn summed(
    outputs: Tensor<2>,
    targets: &[u32],
    (weight, bias): (Tensor<2>, Option<Tensor<1>>),
    part: usize,
    pass: &Pass,
) -> Tensor<1> {
    let (units, part) = (weight.dims()[0], part.max(1));
    let losses = targets.chunks(part).enumerate().map(|(at, targets)| {
        let outputs = outputs.clone().narrow(0, at * part, targets.len());
        let logits = ops::linear(outputs, weight.clone(), bias.clone(), pass);
        let targets = SmoothedTargets::new(targets, units, 0.0, Smoothing::AllClasses).in_pass(pass);
        cross_entropy(logits, &targets).0
    });
    let sum = losses.reduce(|sum, part| sum + part);
    sum.unwrap_or_else(|| Tensor::zeros([1], &outputs.device()))
}

/// The rows of a model's outputs that have a target, and the targets.
fn predicted(outputs: Tensor<2>, targets: &[u32]) -> (Tensor<2>, Vec<u32>) {
    if targets.iter().all(|target| *target != NO_TARGET) {
        return (outputs, targets.to_vec());
    }
    let there = || targets.iter().enumerate().filter(|(_, target)| **target != NO_TARGET);
    let rows: Vec<i32> = there().map(|(row, _)| row as i32).collect();
    let count = rows.len();
    let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &outputs.device());
    (outputs.select(0, rows), there().map(|(_, target)| *target).collect())
}

fn put(place: &Mutex<Option<ModelState>>, state: Option<ModelState>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = state;
}

fn take(place: &Mutex<Option<ModelState>>) -> Option<ModelState> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Objective<LanguageModel, WindowBatch> for LanguageLoss {
    fn counts(&self, batch: &WindowBatch) -> Vec<(&'static str, f64)> {
        vec![(self.name(), batch.predicted() as f64)]
    }

    fn terms(&self, model: &LanguageModel, batch: &WindowBatch, pass: &mut Pass) -> Vec<Term> {
        let state = match pass.is_training() {
            _ if batch.begins => None,
            true => model.carried(),
            false => take(&self.evaluated),
        };
        let training = pass.is_training();
        let (sum, state) = match self.sampled.as_ref().filter(|_| training) {
            Some(sampled) => Self::sampled_nll(sampled, model, batch, state, pass),
            None => Self::nll(model, batch, state, pass),
        };
        if training {
            put(&self.trained, Some(state));
        } else if self.carries {
            put(&self.evaluated, Some(state));
        }
        vec![Term { name: self.name(), sum, weight: self.weight }]
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

/// Loss of a batch in nats, summed over its targets, and the state at its end.
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
