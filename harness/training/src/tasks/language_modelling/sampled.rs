//! Comparison of language models with a sampled softmax with the same models in PyTorch:
//! `tests/fixtures/big_lstm.safetensors`.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::Device;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_models::nn::Candidates;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::language_modelling::{LanguageLoss, LanguageModel, WindowBatch, losses};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LanguageModelSpec};
use zoo_recipes::{GradientGroupSpec, LossScalingSpec, OptimizerSpec, ScheduleSpec};

use super::align::{is_state, without_dropout};
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
    units: u32,
    rows: usize,
    steps: u32,
    rate: f64,
    ids: BTreeMap<String, Vec<u32>>,
    tensors: BTreeMap<String, Vec<f32>>,
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
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| text(&e))?;
        let described = metadata.metadata().as_ref().and_then(|m| m.get("zoo"));
        let described = described.ok_or("the metadata has no key `zoo`")?;
        let all: Described = serde_json::from_str(described).map_err(|e| text(&e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| text(&e))?;
        let case = |(name, DescribedCase { model, loss }): (String, DescribedCase)| {
            let (mut ids, mut tensors) = (BTreeMap::new(), BTreeMap::new());
            for (key, view) in file.tensors() {
                let Some(key) = key.strip_prefix(&format!("{name}/")) else { continue };
                if view.dtype() == Dtype::I64 {
                    let values = view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as u32);
                    ids.insert(key.to_owned(), values.collect());
                } else {
                    let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                    tensors.insert(key.to_owned(), values.collect());
                }
            }
            Self {
                name,
                model: without_dropout(model),
                loss,
                optimizer: all.optimizer.clone(),
                groups: all.groups.clone(),
                units: all.units,
                rows: all.rows,
                steps: all.steps,
                rate: all.learning_rate,
                ids,
                tensors,
            }
        };
        Ok(all.cases.into_iter().map(case).collect())
    }

    fn model(&self, device: &Device) -> Result<LanguageModel, String> {
        let model = LanguageModel::new(&self.model, self.units as usize, self.rows, 1, device);
        let weights = parameters::export(&model).into_iter().map(|mut fresh| {
            if is_state(&fresh.path) {
                return Ok(fresh);
            }
            let given = self.given(&format!("weights/{}", fresh.path))?;
            if given.len() != fresh.values.len() {
                return Err(format!("{}/weights/{} is not {:?}", self.name, fresh.path, fresh.shape));
            }
            fresh.values = given.to_vec();
            Ok(fresh)
        });
        let weights = weights.collect::<Result<_, _>>()?;
        parameters::import(model, weights).map_err(|error| error.to_string())
    }

    fn ids(&self, at: usize, key: &str) -> Result<&Vec<u32>, String> {
        let key = format!("{at}/{key}");
        self.ids.get(&key).ok_or_else(|| format!("{}/{key} is missing", self.name))
    }

    /// One window of the case.
    fn window(&self, at: usize) -> Result<WindowBatch, String> {
        let (inputs, targets) = (self.ids(at, "inputs")?.clone(), self.ids(at, "targets")?.clone());
        Ok(WindowBatch { inputs, targets, rows: self.rows, begins: at == 0 })
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
        let mut compared = BTreeSet::new();
        for at in 0..WINDOWS {
            let mut compare = |key: &str, found: &[f32]| {
                let key = format!("{at}/{key}");
                self.compare(&key, found)?;
                compared.insert(key);
                Ok::<(), String>(())
            };
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
            let loss = LanguageLoss::new(&self.loss, self.steps, true).with_candidates(candidates.clone());
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
        let due = self.tensors.keys().filter(|key| !key.starts_with("weights/"));
        match due.into_iter().find(|key| !compared.contains(*key)) {
            None => Ok(compared.len()),
            Some(key) => Err(format!("{}/{key} is given and was not computed", self.name)),
        }
    }

    fn phase(&self) -> Result<Phase<LanguageModel, WindowBatch>, String> {
        let scaler = LossScaler::new(&LossScalingSpec::default()).map_err(|error| error.to_string())?;
        let schedule = ScheduleSpec::Fixed { lr: self.rate };
        let loss = Box::new(LanguageLoss::new(&self.loss, self.steps, true));
        let phase = Phase::single(loss, &self.optimizer, &schedule, scaler, None);
        Ok(phase.map_err(|error| error.to_string())?.grouped(&self.groups))
    }

    fn given(&self, key: &str) -> Result<&[f32], String> {
        let values = self.tensors.get(key).map(Vec::as_slice);
        values.ok_or_else(|| format!("{}/{key} is missing", self.name))
    }

    fn compare(&self, key: &str, found: &[f32]) -> Result<(), String> {
        let expected = self.given(key)?;
        if found.len() != expected.len() {
            let (found, expected) = (found.len(), expected.len());
            return Err(format!("{}/{key} has {found} numbers where {expected} are due", self.name));
        }
        let size = expected.iter().fold(1e-3f64, |most, x| most.max(f64::from(x.abs())));
        let apart = found.iter().zip(expected).map(|(a, b)| f64::from((a - b).abs()) / size);
        // `find` instead of a maximum, because a maximum ignores NaN.
        match apart.into_iter().find(|apart| apart.is_nan() || *apart >= LIMIT) {
            Some(apart) => Err(format!("{}/{key} differs by {apart:.1e}, {LIMIT:.0e} is allowed", self.name)),
            None => Ok(()),
        }
    }
}
