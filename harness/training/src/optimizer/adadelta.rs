//! Adadelta: steps as large as the steps before.

use std::collections::BTreeMap;

use rayon::prelude::*;
use zoo_models::ops::wide;

use super::adam::placed;
use super::{
    Gradient, Moment, Optimizer, OptimizerError, OptimizerState, Place, export_moments, import_moments,
};
use crate::flat::{CHUNK, Flat};

/// Names of the state's arrays: mean squares of the gradients and of the steps.
const NAMES: [&str; 2] = ["squares", "steps"];

/// a = rho a + (1 - rho) g^2, u = g sqrt(d + epsilon) / sqrt(a + epsilon), d = rho d + (1 - rho)
/// u^2, w = w - lr u (Zeiler 2012). Starts with a = d = 0.
#[derive(Debug)]
pub struct Adadelta {
    rho: f64,
    epsilon: f64,
    steps: u64,
    moments: BTreeMap<String, [Flat; 2]>,
    /// State from a checkpoint. It moves to its device at the first step of its parameter.
    loaded: BTreeMap<String, [Vec<f32>; 2]>,
}

impl Adadelta {
    /// A rule with an empty state.
    pub fn new(rho: f64, epsilon: f64) -> Self {
        Self { rho, epsilon, steps: 0, moments: BTreeMap::new(), loaded: BTreeMap::new() }
    }
}

impl Optimizer for Adadelta {
    fn begin(&mut self) {
        self.steps += 1;
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let (rho, rest, epsilon) = (self.rho as f32, (1.0 - self.rho) as f32, self.epsilon as f32);
        let (rate, factor) = (lr as f32, gradient.factor);
        let moments = match (self.moments.remove(place.path), self.loaded.remove(place.path)) {
            (Some(moments), _) => moments,
            (None, Some(values)) => values.map(|values| placed(values, &weight)),
            (None, None) => [weight.zeros_like(), weight.zeros_like()],
        };
        let (weight, moments) = match (weight, gradient.values, moments) {
            (Flat::Host(mut w), Flat::Host(g), [Flat::Host(mut a), Flat::Host(mut d)]) => {
                let of_gradients = w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK));
                let of_moments = a.par_chunks_mut(CHUNK).zip(d.par_chunks_mut(CHUNK));
                of_gradients.zip(of_moments).for_each(|((w, g), (a, d))| {
                    wide(
                        #[inline(always)]
                        || {
                            for ((w, g), (a, d)) in w.iter_mut().zip(g).zip(a.iter_mut().zip(d)) {
                                let g = g * factor;
                                *a = *a * rho + g * g * rest;
                                let u = g * (*d + epsilon).sqrt() / (*a + epsilon).sqrt();
                                *d = *d * rho + u * u * rest;
                                *w -= u * rate;
                            }
                        },
                    );
                });
                (Flat::Host(w), [Flat::Host(a), Flat::Host(d)])
            }
            (w, g, [a, d]) => {
                let device = Flat::device_of([&w, &g, &a, &d]);
                let tensor = |flat: Flat| flat.into_tensor(&device);
                let (w, g, a, d) = (tensor(w), tensor(g) * factor, tensor(a), tensor(d));
                let a = a * rho + g.clone() * g.clone() * rest;
                let u = g * (d.clone() + epsilon).sqrt() / (a.clone() + epsilon).sqrt();
                let d = d * rho + u.clone() * u.clone() * rest;
                (Flat::Device(w - u * rate), [Flat::Device(a), Flat::Device(d)])
            }
        };
        self.moments.insert(place.path.to_string(), moments);
        weight
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn export(&self) -> OptimizerState {
        let mut moments = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            moments.extend(export_moments(name, self.moments.iter().map(|(path, both)| (path, &both[at]))));
            moments.extend(self.loaded.iter().map(|(path, both)| Moment {
                name: name.to_string(),
                path: path.clone(),
                values: both[at].clone(),
            }));
        }
        moments.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        OptimizerState { steps: self.steps, moments }
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        let [squares, mut steps] = import_moments(NAMES, state.moments)?;
        self.steps = state.steps;
        self.moments.clear();
        self.loaded = squares
            .into_iter()
            .filter_map(|(path, squares)| {
                let steps = steps.remove(&path)?;
                Some((path, [squares, steps]))
            })
            .collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_of_the_size_of_epsilon() {
        let mut rule = Adadelta::new(0.75, 0.25);
        rule.begin();
        let place = Place { path: "w", shape: &[1], embedding: false };
        // a = 0.25 x 3 = 0.75; u = sqrt(3) x 0.5 / 1.
        let gradient = Gradient::new(Flat::Host(vec![3f32.sqrt()]), 1.0);
        let w = rule.step(place, 1.0, Flat::Host(vec![1.0]), gradient).to_vec();
        assert!((f64::from(w[0]) - (1.0 - 3f64.sqrt() / 2.0)).abs() < 1e-7, "{w:?}");
    }
}
