//! Adadelta: steps as large as the steps before.

use rayon::prelude::*;
use zoo_models::ops::wide;

use super::moments::Moments;
use super::{Gradient, Optimizer, OptimizerError, OptimizerState, Place};
use crate::flat::{CHUNK, Flat};

/// a = rho a + (1 - rho) g^2, u = g sqrt(d + epsilon) / sqrt(a + epsilon), d = rho d + (1 - rho)
/// u^2, w = w - lr u (Zeiler 2012). Starts with a = d = 0.
#[derive(Debug)]
pub struct Adadelta {
    rho: f64,
    epsilon: f64,
    moments: Moments<2>,
}

impl Adadelta {
    /// A rule with an empty state.
    pub fn new(rho: f64, epsilon: f64) -> Self {
        Self { rho, epsilon, moments: Moments::new(["squares", "steps"]) }
    }
}

impl Optimizer for Adadelta {
    fn begin(&mut self) {
        self.moments.begin();
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let (rho, rest, epsilon) = (self.rho as f32, (1.0 - self.rho) as f32, self.epsilon as f32);
        let (rate, factor) = (lr as f32, gradient.factor);
        let moments = self.moments.take(place.path, &weight, || [weight.zeros_like(), weight.zeros_like()]);
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
        self.moments.put(place.path, moments);
        weight
    }

    fn steps(&self) -> u64 {
        self.moments.steps()
    }

    fn export(&self) -> OptimizerState {
        self.moments.export()
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        self.moments.import(state)
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
