//! Comparison of language models with a sampled softmax with the same models in PyTorch:
//! `tests/fixtures/big_lstm.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::nn::Candidates;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::language_modelling::{LanguageLoss, LanguageModel, WindowBatch, losses};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LanguageModelSpec};
use zoo_recipes::{GradientGroupSpec, LossScalingSpec, OptimizerSpec, ScheduleSpec};

use super::align::{is_state, without_dropout};
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

/// One model with two consecutive windows of a text, given candidates, and PyTorch's results. There
/// is no dropout.
#[derive(Debug)]
pub struct SampledCase {
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
    carries: bool,
    units: u32,
    rows: usize,
    steps: u32,
    rate: f64,
    fixture: Fixture,
}

#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
    units: u32,
    rows: usize,
    steps: u32,
    learning_rate: f64,
    groups: Vec<GradientGroupSpec>,
    optimizer: OptimizerSpec,
}

#[derive(Deserialize)]
struct DescribedCase {
    model: LanguageModelSpec,
    loss: LanguageLossSpec,
}

impl SampledCase {
    /// Reads all cases from the bytes of the file.
    ///
    /// # Errors
    /// A description of the first problem of the file.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let all: Described = described(bytes)?;
        let case = |(name, DescribedCase { model, loss }): (String, DescribedCase)| {
            let fixture = Fixture::read(bytes, &name)?;
            Ok(Self {
                name,
                carries: matches!(model, LanguageModelSpec::Lstm(_)),
                model: without_dropout(model),
                loss,
                optimizer: all.optimizer.clone(),
                groups: all.groups.clone(),
                units: all.units,
                rows: all.rows,
                steps: all.steps,
                rate: all.learning_rate,
                fixture,
            })
        };
        all.cases.into_iter().map(case).collect()
    }

    fn model(&self, device: &Device) -> Result<LanguageModel, String> {
        let rows = if self.carries { self.rows } else { 0 };
        let model = LanguageModel::new(&self.model, self.units as usize, rows, 1, device);
        self.fixture.model(model, is_state)
    }

    fn ids(&self, at: usize, key: &str) -> Result<&[u32], String> {
        self.fixture.numbers(&format!("{at}/{key}"))
    }

    /// One window of the case.
    fn window(&self, at: usize) -> Result<WindowBatch, String> {
        let (inputs, targets) = (self.ids(at, "inputs")?.to_vec(), self.ids(at, "targets")?.to_vec());
        Ok(WindowBatch { inputs, targets, rows: self.rows, begins: at == 0 || !self.carries })
    }

    /// Candidates of each part of a window's rows.
    fn candidates(&self, at: usize) -> Result<Vec<Candidates>, String> {
        let (ids, tries) = (self.ids(at, "candidates")?, self.ids(at, "tries")?);
        let parts = ids.chunks(ids.len() / tries.len().max(1)).zip(tries);
        Ok(parts.map(|(ids, tries)| Candidates::given(ids.to_vec(), *tries, self.units)).collect())
    }

    /// Trains on the two windows in FP32: logits, both losses, expected counts, every gradient and
    /// every weight after each update must equal PyTorch's. Returns the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let mut model = self.model(&device)?;
        let mut phase = self.phase()?;
        let mut all = Comparison::of(&self.fixture);
        for at in 0..WINDOWS {
            let mut compare = |key: &str, found: &[f32]| all.compare(&format!("{at}/{key}"), found, LIMIT);
            let (batch, candidates) = (self.window(at)?, self.candidates(at)?);
            let state = || if batch.begins { None } else { model.carried() };
            let mut pass = Pass::training(Compute::FP32, 1, 0);
            let logits = to_f32(model.forward(&batch.inputs, batch.rows, state(), &mut pass).0);
            compare("logits", &host_values(logits.inner()))?;
            let (nll, _) = losses(&model, &batch, state(), &mut Pass::evaluation(Compute::FP32));
            compare("nll", &[nll as f32])?;
            let part = batch.targets.len() / candidates.len().max(1);
            let parts = || candidates.iter().zip(batch.targets.chunks(part.max(1)));
            let expected = |ids: &[u32], of: &Candidates| -> Vec<f32> {
                ids.iter().map(|id| of.expected(*id) as f32).collect()
            };
            let of_targets: Vec<f32> = parts().flat_map(|(of, targets)| expected(targets, of)).collect();
            compare("expected_targets", &of_targets)?;
            let of_candidates: Vec<f32> = parts().flat_map(|(of, _)| expected(of.ids(), of)).collect();
            compare("expected_candidates", &of_candidates)?;
            let loss =
                LanguageLoss::new(&self.loss, self.steps, self.carries).with_candidates(candidates.clone());
            let term = loss.terms(&model, &batch, &mut pass).swap_remove(0);
            loss.discard();
            compare("loss", &host_values(term.sum.clone().inner()))?;
            let mean = term.sum * (term.weight / batch.targets.len() as f64);
            let taken = parameters::take_gradients(&model, &mut mean.backward());
            for ((path, _), gradient) in parameters::shapes(&model).into_iter().zip(taken) {
                match gradient {
                    Some(gradient) => compare(&format!("gradients/{path}"), &host_values(gradient))?,
                    None if is_state(&path) => {}
                    None => return Err(format!("{}: {path} has no gradient", self.name)),
                }
            }
            phase.objective = Box::new(loss.clone());
            phase.running = Some(Box::new(loss));
            let around = Surroundings { compute: Compute::FP32, seed: 1, micro_step: at as u64, group: 1 };
            let micro = [MicroBatch { position: 0, batch }];
            let (moved, _) = run_phase(&mut phase, (0, 1), model, &micro, around, &mut Local, &mut Unwatched)
                .map_err(|error| error.to_string())?;
            model = moved;
            for ParameterValues { path, values, .. } in parameters::export(&model) {
                if !is_state(&path) {
                    compare(&format!("updated/{path}"), &values)?;
                }
            }
        }
        all.finish(|key| !key.starts_with("weights/"))
    }

    fn phase(&self) -> Result<Phase<LanguageModel, WindowBatch>, String> {
        let scaler = LossScaler::new(&LossScalingSpec::default()).map_err(|error| error.to_string())?;
        let schedule = ScheduleSpec::Fixed { lr: self.rate };
        let loss = Box::new(LanguageLoss::new(&self.loss, self.steps, self.carries));
        let phase = Phase::single(loss, &self.optimizer, &schedule, scaler, None);
        Ok(phase.map_err(|error| error.to_string())?.grouped(&self.groups))
    }
}
