//! Committed traces of independent Python implementations (`tests/reference/`): schedules, loss
//! scalers and update rules, compared value by value.
//!
//! The tests of this crate compare all of them; `zoo verify` compares those that a recipe depends
//! on.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use zoo_recipes::{LossScalingSpec, OptimizerSpec, ScheduleSpec};

use crate::flat::Flat;
use crate::optimizer::{Gradient, Place, optimizer};
use crate::scaling::LossScaler;
use crate::schedule::Schedule;

/// Learning rates by update.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ScheduleTrace {
    /// Name of the trace in the file.
    pub name: String,
    /// The schedule, as in a recipe's `[train.schedule]`.
    pub schedule: ScheduleSpec,
    /// Length of the run in updates.
    pub total_updates: u64,
    /// Pairs of (updates done, rate of the next update).
    pub rates: Vec<(u64, f64)>,
    /// Validation losses for a plateau schedule; rates are then indexed by validation.
    #[serde(default)]
    pub losses: Vec<f64>,
}

/// Scales by step, for given overflows or gradients.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ScalerTrace {
    /// Name of the trace in the file.
    pub name: String,
    /// The scaler, as in a recipe's `[precision.loss_scaling]`.
    pub scaler: LossScalingSpec,
    /// Number of steps.
    pub steps: u64,
    /// Steps whose gradients are not finite.
    #[serde(default)]
    pub overflows: Vec<u64>,
    /// Largest gradient of each step, `None` where not finite. If empty, only overflows matter.
    #[serde(default)]
    pub largest_gradients: Vec<Option<f64>>,
    /// Number of steps that change weights.
    pub updates: u64,
    /// (step, scale) where the scale changes, or the scale of every step.
    scales: Scales,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Scales {
    Changes(Vec<(u64, f64)>),
    Every(Vec<f64>),
}

/// Weights after each step of every update rule, with the same gradients and rates.
#[derive(Debug)]
pub struct RuleTraces {
    /// The rules by name.
    pub rules: BTreeMap<String, OptimizerSpec>,
    shape: Vec<usize>,
    tensors: BTreeMap<String, Vec<f32>>,
}

#[derive(Deserialize)]
struct Cases<T> {
    cases: Vec<T>,
}

fn cases<T: DeserializeOwned>(json: &[u8]) -> Result<Vec<T>, String> {
    serde_json::from_slice(json).map(|Cases { cases }| cases).map_err(|error| format!("no traces: {error}"))
}

impl ScheduleTrace {
    /// Reads the traces of `schedules.json`.
    ///
    /// # Errors
    /// A description of the file's problem.
    pub fn read_all(json: &[u8]) -> Result<Vec<Self>, String> {
        cases(json)
    }

    /// Recomputes every rate and returns the number of compared rates. Both sides are FP64; powers
    /// may differ in their last bits, and decays end in a difference of nearly equal numbers.
    ///
    /// # Errors
    /// The first update whose rate differs.
    pub fn follow(&self) -> Result<usize, String> {
        let mut schedule =
            Schedule::new(&self.schedule, Some(self.total_updates)).map_err(|error| error.to_string())?;
        let (mut losses, mut best, mut since_best) = (self.losses.iter(), f64::INFINITY, 0);
        for &(update, expected) in &self.rates {
            let found = schedule.lr(update);
            if let Some(&loss) = losses.next() {
                since_best = if loss < best { 0 } else { since_best + 1 };
                best = best.min(loss);
                schedule.validated(since_best);
            }
            let allowed = 1e-12 * expected.abs() + 1e-17;
            if (found - expected).abs().is_nan() || (found - expected).abs() > allowed {
                return Err(format!("schedule {}, update {update}: {found}, not {expected}", self.name));
            }
        }
        Ok(self.rates.len())
    }
}

impl ScalerTrace {
    /// Reads the traces of `scalers.json`.
    ///
    /// # Errors
    /// A description of the file's problem.
    pub fn read_all(json: &[u8]) -> Result<Vec<Self>, String> {
        cases(json)
    }

    /// Recomputes every step and returns the number of compared scales.
    ///
    /// # Errors
    /// The first step whose scale differs, or a different number of updates.
    pub fn follow(&self) -> Result<usize, String> {
        let wrong = |what: String| format!("loss scaler {}, {what}", self.name);
        let mut scaler = LossScaler::new(&self.scaler).map_err(|error| error.to_string())?;
        let mut trace = vec![scaler.scale()];
        let mut updates = 0;
        for step in 0..self.steps {
            let largest = self.largest_gradients.get(step as usize).copied();
            let finite = match largest {
                Some(largest) => largest.is_some(),
                None => !self.overflows.contains(&step),
            };
            scaler.observe(finite, largest.flatten().unwrap_or(1.0));
            trace.push(scaler.scale());
            updates += u64::from(finite);
        }
        if updates != self.updates {
            return Err(wrong(format!("{updates} updates, not {}", self.updates)));
        }
        let expected: Vec<f64> = match &self.scales {
            Scales::Every(scales) => scales.clone(),
            Scales::Changes(changes) => (0..=self.steps)
                .map(|step| {
                    changes.iter().rev().find(|(from, _)| *from <= step).map_or(f64::NAN, |(_, scale)| *scale)
                })
                .collect(),
        };
        if expected.len() != trace.len() {
            return Err(wrong(format!("{} scales, not {}", trace.len(), expected.len())));
        }
        // A scale that changes by factors is exact; one that depends on a variance is a difference
        // of nearly equal numbers.
        let slack = if matches!(self.scales, Scales::Every(_)) { 1e-9 } else { 0.0 };
        for (step, (found, expected)) in trace.iter().zip(&expected).enumerate() {
            let error = (found / expected - 1.0).abs();
            if error.is_nan() || error > slack {
                return Err(wrong(format!("step {step}: {found}, not {expected}")));
            }
        }
        Ok(trace.len())
    }
}

impl RuleTraces {
    /// Reads the traces of `optimizers.safetensors`.
    ///
    /// # Errors
    /// A description of the file's problem.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Header {
            rules: BTreeMap<String, OptimizerSpec>,
        }
        let wrong = |error: &dyn std::fmt::Display| format!("no traces of update rules: {error}");
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| wrong(&error))?;
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get("zoo").cloned());
        let text = text.ok_or_else(|| wrong(&"the metadata has no key `zoo`"))?;
        let Header { rules } = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| wrong(&error))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            tensors.insert(name.to_owned(), values);
        }
        let shape = file.tensor("weight").map_err(|error| wrong(&error))?.shape().to_vec();
        Ok(Self { rules, shape, tensors })
    }

    fn values(&self, name: &str) -> Result<&[f32], String> {
        self.tensors.get(name).map(Vec::as_slice).ok_or_else(|| format!("tensor `{name}` is missing"))
    }

    /// Recomputes every step of a rule and returns the number of compared weights.
    ///
    /// # Errors
    /// The first weight that differs, or a missing entry.
    pub fn follow(&self, name: &str) -> Result<usize, String> {
        let spec = self.rules.get(name).ok_or_else(|| format!("there is no trace of a rule {name}"))?;
        let gradients =
            self.values(if name.ends_with("-sparse") { "sparse_gradients" } else { "gradients" })?;
        let (rates, expected) = (self.values("learning_rates")?, self.values(&format!("{name}/weights"))?);
        let n = self.shape.iter().product::<usize>();
        let shape = if name.ends_with("-vector") { vec![n] } else { self.shape.clone() };
        if gradients.len() != rates.len() * n || expected.len() != rates.len() * n {
            return Err(format!("the trace of {name} has not {} steps of {n} values", rates.len()));
        }
        let mut rule = optimizer(spec);
        let mut weight = Flat::Host(self.values("weight")?.to_vec());
        for (step, rate) in rates.iter().enumerate() {
            rule.begin();
            let place = Place { path: "embedding", shape: &shape, embedding: true };
            let gradient = Flat::Host(gradients[step * n..(step + 1) * n].to_vec());
            weight = rule.step(place, f64::from(*rate), weight, Gradient::new(gradient, 1.0));
            for (at, (found, expected)) in weight.to_vec().iter().zip(&expected[step * n..]).enumerate() {
                // The reference is FP64, rounded to FP32. Weights of about 1 have a few FP32
                // roundings here.
                let error = (found - expected).abs();
                if error.is_nan() || error > 3e-7 * expected.abs().max(1.0) {
                    return Err(format!("rule {name}, step {step}, weight {at}: {found}, not {expected}"));
                }
            }
        }
        Ok(expected.len())
    }
}
