//! Comparison of language models with the same models in PyTorch:
//! `tests/fixtures/language.safetensors`, and those with a sampled softmax:
//! `tests/fixtures/big_lstm.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::nn::Candidates;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::language_modelling::{LanguageLoss, LanguageModel, WindowBatch, losses};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LanguageModelSpec, LossOver};
use zoo_recipes::{GradientGroupSpec, LossScalingSpec, OptimizerSpec, ScheduleSpec, Velocity};

use crate::align::{Comparison, Fixture, described};
use crate::parts::Unwatched;
use crate::reduce::Local;
use crate::scaling::LossScaler;
use crate::update::{MicroBatch, Phase, Surroundings, run_phase};

/// Maximum error of a tensor, relative to its largest value. The reference is computed in FP64;
/// ours are FP32 sums, through ten steps of two recurrent layers.
const LIMIT: f64 = 1e-5;

/// Number of consecutive windows of a case.
const WINDOWS: usize = 2;

/// One model with two consecutive windows of a text, and PyTorch's results. Dropout is 0.
#[derive(Debug)]
pub struct LanguageCase {
    /// Name of the case in the file.
    pub name: String,
    /// The model, with its dropout set to 0.
    pub model: LanguageModelSpec,
    /// The loss.
    pub loss: LanguageLossSpec,
    /// The update rule.
    pub optimizer: OptimizerSpec,
    /// Groups of gradients.
    pub groups: Vec<GradientGroupSpec>,
    /// Whether the second window begins with the state of the first.
    pub carries: bool,
    units: usize,
    rows: usize,
    rate: f64,
    clip: Option<f64>,
    fixture: Fixture,
}

#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
    units: usize,
    rows: usize,
    learning_rate: f64,
    clip_norm: Option<f64>,
    #[serde(default)]
    groups: Vec<GradientGroupSpec>,
    #[serde(default = "sgd")]
    optimizer: OptimizerSpec,
}

#[derive(Deserialize)]
struct DescribedCase {
    model: LanguageModelSpec,
    over: Option<LossOver>,
    loss: Option<LanguageLossSpec>,
}

impl LanguageCase {
    /// Reads all cases from the bytes of the file.
    ///
    /// # Errors
    /// A description of the first problem of the file.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let mut all: Described = described(bytes)?;
        let cases = std::mem::take(&mut all.cases);
        let case = |(name, DescribedCase { model, over, loss }): (String, DescribedCase)| {
            let plain = over.map(|over| LanguageLossSpec::CrossEntropy { over });
            Ok(Self {
                loss: loss.or(plain).ok_or_else(|| format!("{name} has no loss"))?,
                carries: matches!(model, LanguageModelSpec::Lstm(_)),
                model: without_dropout(model),
                optimizer: all.optimizer.clone(),
                groups: all.groups.clone(),
                units: all.units,
                rows: all.rows,
                rate: all.learning_rate,
                clip: all.clip_norm,
                fixture: Fixture::read(bytes, &name)?,
                name,
            })
        };
        cases.into_iter().map(case).collect()
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If weights are missing or have another shape.
    pub fn model(&self, device: &Device) -> Result<LanguageModel, String> {
        let rows = if self.carries { self.rows } else { 0 };
        let model = LanguageModel::new(&self.model, self.units, rows, 1, device);
        self.fixture.model(model, is_state)
    }

    /// One window of the case.
    ///
    /// # Errors
    /// If the file lacks it.
    pub fn window(&self, at: usize) -> Result<WindowBatch, String> {
        let ids = |key: &str| Ok::<_, String>(self.fixture.numbers(&format!("{at}/{key}"))?.to_vec());
        let begins = at == 0 || !self.carries;
        Ok(WindowBatch { inputs: ids("inputs")?, targets: ids("targets")?, rows: self.rows, begins })
    }

    /// The file's candidates of each part of a window's rows; `None` if it has none.
    fn candidates(&self, at: usize) -> Result<Option<Vec<Candidates>>, String> {
        if !self.fixture.has(&format!("{at}/expected_candidates")) {
            return Ok(None);
        }
        let numbers = |key: &str| self.fixture.numbers(&format!("{at}/{key}"));
        let (ids, tries) = (numbers("candidates")?, numbers("tries")?);
        let outside = ids.iter().any(|id| *id as usize >= self.units);
        if outside || ids.is_empty() || tries.is_empty() || !ids.len().is_multiple_of(tries.len()) {
            return Err(format!("{}/{at}/candidates do not fit {} draws", self.name, tries.len()));
        }
        let parts = ids.chunks(ids.len() / tries.len()).zip(tries);
        let given = |(ids, tries): (&[u32], &u32)| Candidates::given(ids.to_vec(), *tries, self.units as u32);
        Ok(Some(parts.map(given).collect()))
    }

    /// Trains on the two windows: logits, loss, expected counts of candidates, every gradient and every
    /// weight after each update must equal PyTorch's; without the weights in half precision. Returns
    /// the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device, compute: Compute) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let mut model = self.model(&device)?;
        let steps = self.window(0)?.inputs.len() / self.rows.max(1);
        let whole = LanguageLoss::new(&self.loss, steps as u32, self.carries);
        let mut phase = self.phase(whole.clone())?;
        let mut all = Comparison::of(&self.fixture, compute);
        for at in 0..WINDOWS {
            let mut compare = |key: &str, found: &[f32]| all.compare(&format!("{at}/{key}"), found, LIMIT);
            let batch = self.window(at)?;
            let pass = || Pass::training(compute, 1, 0);
            let state = || if batch.begins { None } else { model.carried() };
            let logits = to_f32(model.forward(&batch.inputs, batch.rows, state(), &mut pass()).0);
            compare("logits", &host_values(logits.inner()))?;
            let (nll, _) = losses(&model, &batch, state(), &mut Pass::evaluation(compute));
            compare("nll", &[nll as f32])?;
            // Clones of a loss share its state.
            let mut loss = whole.clone();
            if let Some(candidates) = self.candidates(at)? {
                let part = batch.targets.len().div_ceil(candidates.len()).max(1);
                let parts = || candidates.iter().zip(batch.targets.chunks(part));
                let expected = |ids: &[u32], of: &Candidates| -> Vec<f32> {
                    ids.iter().map(|id| of.expected(*id) as f32).collect()
                };
                let of_targets: Vec<f32> = parts().flat_map(|(of, targets)| expected(targets, of)).collect();
                compare("expected_targets", &of_targets)?;
                let of_candidates: Vec<f32> = parts().flat_map(|(of, _)| expected(of.ids(), of)).collect();
                compare("expected_candidates", &of_candidates)?;
                loss = loss.with_candidates(candidates);
            }
            let term = loss.terms(&model, &batch, &mut pass()).swap_remove(0);
            loss.discard();
            let key = if self.fixture.has(&format!("{at}/loss")) { "loss" } else { "nll" };
            compare(key, &host_values(term.sum.clone().inner()))?;
            let mean = term.sum * (term.weight / batch.targets.len() as f64);
            let taken = parameters::take_gradients(&model, &mut all.scaled(mean).backward());
            for ((path, _), gradient) in parameters::shapes(&model).into_iter().zip(taken) {
                match gradient {
                    Some(gradient) => {
                        let gradient = host_values(all.unscaled(gradient));
                        all.compare(&format!("{at}/gradients/{path}"), &gradient, LIMIT)?;
                    }
                    None if is_state(&path) => {}
                    None => return Err(format!("{}: {path} has no gradient", self.name)),
                }
            }
            phase.objective = Box::new(loss.clone());
            phase.running = Some(Box::new(loss));
            let around = Surroundings { compute, seed: 1, micro_step: at as u64, group: 1 };
            let micro = [MicroBatch { position: 0, batch }];
            let (moved, _) = run_phase(&mut phase, (0, 1), model, &micro, around, &mut Local, &mut Unwatched)
                .map_err(|error| error.to_string())?;
            model = moved;
            for ParameterValues { path, values, .. } in parameters::export(&model) {
                if !is_state(&path) {
                    all.compare(&format!("{at}/updated/{path}"), &values, LIMIT)?;
                }
            }
        }
        all.finish(|key| !key.starts_with("weights/"))
    }

    fn phase(&self, loss: LanguageLoss) -> Result<Phase<LanguageModel, WindowBatch>, String> {
        let scaler = LossScaler::new(&LossScalingSpec::default()).map_err(|error| error.to_string())?;
        let schedule = ScheduleSpec::Fixed { lr: self.rate };
        let phase = Phase::single(Box::new(loss), &self.optimizer, &schedule, scaler, None);
        Ok(phase.map_err(|error| error.to_string())?.clipped(self.clip).grouped(&self.groups))
    }
}

/// The update rule of a file that names none.
fn sgd() -> OptimizerSpec {
    OptimizerSpec::Sgd { momentum: 0.0, weight_decay: 0.0, nesterov: false, velocity: Velocity::Gradients }
}

/// Whether a parameter is the carried state, which the file does not have.
fn is_state(path: &str) -> bool {
    path.starts_with("state.")
}

/// The model without its dropout.
fn without_dropout(model: LanguageModelSpec) -> LanguageModelSpec {
    match model {
        LanguageModelSpec::Lstm(mut spec) => {
            spec.dropout = 0.0;
            LanguageModelSpec::Lstm(spec)
        }
        LanguageModelSpec::LayerNormLstm(mut spec) => {
            (spec.embedding_dropout, spec.candidate_dropout, spec.dropout) = (0.0, 0.0, 0.0);
            LanguageModelSpec::LayerNormLstm(spec)
        }
        LanguageModelSpec::Gpt(mut spec) => {
            spec.dropout = 0.0;
            LanguageModelSpec::Gpt(spec)
        }
    }
}
