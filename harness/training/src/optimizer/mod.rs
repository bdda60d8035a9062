//! Update rules on flat FP32 buffers. Their state is indexed by parameter path.
//!
//! Weights and moments are FP32, whatever the compute type is. Coefficients are computed in FP64
//! and rounded once. Where training has no FP32 masters, the update rounds the new weights
//! afterwards.

mod adadelta;
mod adagrad;
mod adam;
mod moments;
mod novograd;
mod rmsprop;
mod sgd;

use std::collections::BTreeMap;

use zoo_recipes::{EpsilonPlace, OptimizerSpec};

use crate::flat::Flat;

pub use adadelta::Adadelta;
pub use adagrad::Adagrad;
pub use adam::Adam;
pub use novograd::{Novograd, NovogradSettings};
pub use rmsprop::Rmsprop;
pub use sgd::Sgd;

/// The parameter that an update rule moves.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub path: &'a str,
    /// Shape of the parameter.
    pub shape: &'a [usize],
    /// Whether its rows are looked up by index, so that a row without gradient was not used (for
    /// LazyAdam).
    pub embedding: bool,
}

/// The gradient of one parameter.
#[derive(Debug)]
pub struct Gradient {
    /// Values before clipping.
    pub values: Flat,
    /// Factor of the values, from clipping or LARC.
    pub factor: f32,
    /// Sum of squares of the values, before `factor`, if already measured (for NovoGrad).
    pub square_sum: Option<f64>,
}

impl Gradient {
    /// A gradient without a measured norm. A rule that needs the norm reads it from the device.
    pub fn new(values: Flat, factor: f32) -> Self {
        Self { values, factor, square_sum: None }
    }
}

/// One named array of an optimizer's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// `first`, `second`, `velocity`, `squares` or `steps`.
    pub name: String,
    /// Path of its parameter.
    pub path: String,
    /// Values in row-major order: as many as the parameter has, or one (NovoGrad's `second`).
    pub values: Vec<f32>,
}

/// Complete state of an optimizer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OptimizerState {
    /// Number of updates.
    pub steps: u64,
    /// Arrays, sorted by name and path.
    pub moments: Vec<Moment>,
}

/// Reason why a saved state does not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OptimizerError {
    /// The state has an array that the rule does not use.
    #[error(
        "the saved optimizer state has `{0}`, which this optimizer does not use\nhint: resume with the recipe that the run was started with"
    )]
    UnknownMoment(String),
    /// A parameter has one moment and lacks another.
    #[error(
        "the saved optimizer state has no `{moment}` for parameter `{path}`\nhint: the checkpoint is incomplete; resume from another"
    )]
    MissingMoment {
        /// Name of the missing array.
        moment: &'static str,
        path: String,
    },
}

/// An update rule.
pub trait Optimizer: Send {
    /// Starts an update: increments the step count, which all parameters share.
    fn begin(&mut self);

    /// Returns the new weights of one parameter.
    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat;

    /// Number of updates.
    fn steps(&self) -> u64;

    /// Returns a copy of the state.
    fn export(&self) -> OptimizerState;

    /// Replaces the state.
    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError>;
}

/// Builds the rule of a recipe.
pub fn optimizer(spec: &OptimizerSpec) -> Box<dyn Optimizer> {
    match *spec {
        OptimizerSpec::Adam { beta1, beta2, epsilon, epsilon_place, weight_decay } => {
            Box::new(Adam::new(beta1, beta2, epsilon, epsilon_place, false).decaying(weight_decay))
        }
        OptimizerSpec::LazyAdam { beta1, beta2, epsilon, epsilon_place } => {
            Box::new(Adam::new(beta1, beta2, epsilon, epsilon_place, true))
        }
        OptimizerSpec::Adamw { beta1, beta2, epsilon, weight_decay, decayed } => {
            let adam = Adam::new(beta1, beta2, epsilon, EpsilonPlace::CorrectedRoot, false);
            Box::new(adam.decaying_apart(weight_decay, decayed))
        }
        OptimizerSpec::Novograd { beta1, beta2, epsilon, weight_decay, grad_averaging, variant } => {
            Box::new(Novograd::new(NovogradSettings {
                beta1,
                beta2,
                epsilon,
                weight_decay,
                grad_averaging,
                variant,
            }))
        }
        OptimizerSpec::Sgd { momentum, weight_decay, nesterov, velocity } => {
            Box::new(Sgd::new(momentum, weight_decay, nesterov).summing(velocity))
        }
        OptimizerSpec::Rmsprop { rho, epsilon } => Box::new(Rmsprop::new(rho, epsilon)),
        OptimizerSpec::Adadelta { rho, epsilon } => Box::new(Adadelta::new(rho, epsilon)),
        OptimizerSpec::Adagrad { initial_accumulator } => Box::new(Adagrad::new(initial_accumulator)),
    }
}

/// Arrays of one name, sorted by path.
fn export_moments<'a>(
    name: &'static str,
    by_path: impl Iterator<Item = (&'a String, &'a Flat)>,
) -> Vec<Moment> {
    by_path
        .map(|(path, flat)| Moment { name: name.to_string(), path: path.clone(), values: flat.to_vec() })
        .collect()
}

/// Groups saved arrays by the given names.
fn import_moments<const N: usize>(
    names: [&'static str; N],
    moments: Vec<Moment>,
) -> Result<[BTreeMap<String, Vec<f32>>; N], OptimizerError> {
    let mut found: [BTreeMap<String, Vec<f32>>; N] = std::array::from_fn(|_| BTreeMap::new());
    for moment in moments {
        let Some(place) = names.iter().position(|name| *name == moment.name) else {
            return Err(OptimizerError::UnknownMoment(moment.name));
        };
        found[place].insert(moment.path, moment.values);
    }
    for i in 1..N {
        for (a, b) in [(0, i), (i, 0)] {
            if let Some(path) = found[a].keys().find(|path| !found[b].contains_key(*path)) {
                return Err(OptimizerError::MissingMoment { moment: names[b], path: path.clone() });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod plain_loops;

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};
    use zoo_models::parameters::reads;

    use super::*;

    #[test]
    fn every_rule_goes_on_bit_for_bit_from_a_saved_state_on_both_storages() {
        for (name, spec) in crate::agreement::rules() {
            let mut expected = Vec::new();
            for (on_host, restart) in [(true, false), (true, true), (false, false), (false, true)] {
                let flat = |values: [f32; 4]| match on_host {
                    true => Flat::Host(values.to_vec()),
                    false => Flat::Device(Tensor::from_data(values, &Device::flex())),
                };
                let mut rule = optimizer(&spec);
                let mut weight = flat([1.0, -2.0, 0.5, 0.0]);
                for update in 0..6u8 {
                    if restart && update == 3 {
                        let state = rule.export();
                        rule = optimizer(&spec);
                        rule.import(state.clone()).unwrap();
                        assert_eq!(rule.export(), state, "{name}: not yet moved to a device");
                    }
                    rule.begin();
                    let place = Place { path: "w", shape: &[2, 2], embedding: false };
                    let part = f32::from(update);
                    let gradient = flat([0.1 * part, -0.3, 0.7 - 0.2 * part, 1e-3]);
                    let gradient = Gradient { values: gradient, factor: 0.7, square_sum: Some(0.5) };
                    weight = rule.step(place, 0.01 * f64::from(update + 1), weight, gradient);
                }
                expected.push((weight.to_vec(), rule.export()));
            }
            assert_eq!(expected[0], expected[1], "{name}: on the host");
            assert_eq!(expected[2], expected[3], "{name}: on a device");
            assert_eq!(expected[0], expected[2], "{name}: host and device");
        }
    }

    #[test]
    fn no_rule_reads_from_its_device() {
        let on_device = |values: [f32; 4]| Flat::Device(Tensor::from_data(values, &Device::flex()));
        let place = Place { path: "embedding", shape: &[2, 2], embedding: true };
        for (name, spec) in crate::agreement::rules() {
            let mut rule = optimizer(&spec);
            let mut weight = on_device([1.0, 2.0, 3.0, 4.0]);
            let before = reads();
            for _ in 0..3 {
                rule.begin();
                let values = on_device([0.5, -0.5, 0.0, 0.0]);
                let gradient = Gradient { values, factor: 0.5, square_sum: Some(0.5) };
                weight = rule.step(place, 0.1, weight, gradient);
            }
            assert_eq!(reads(), before, "{name}");
            assert_ne!(weight.to_vec(), [1.0, 2.0, 3.0, 4.0]);
            assert_eq!(reads(), before + 1, "whoever looks at the weights is seen");
        }
    }
}
