//! RMSprop: gradients divided by the root of their mean square.

use rayon::prelude::*;
use zoo_models::ops::wide;

use super::moments::Moments;
use super::{Gradient, Optimizer, OptimizerError, OptimizerState, Place};
use crate::flat::{CHUNK, Flat};

/// a = rho a + (1 - rho) g^2, w = w - lr g / (sqrt(a) + epsilon). Starts with a = 0.
#[derive(Debug)]
pub struct Rmsprop {
    rho: f64,
    epsilon: f64,
    squares: Moments<1>,
}

impl Rmsprop {
    /// A rule with an empty state.
    pub fn new(rho: f64, epsilon: f64) -> Self {
        Self { rho, epsilon, squares: Moments::new(["squares"]) }
    }
}

impl Optimizer for Rmsprop {
    fn begin(&mut self) {
        self.squares.begin();
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let (rho, rest, epsilon) = (self.rho as f32, (1.0 - self.rho) as f32, self.epsilon as f32);
        let (rate, factor) = (lr as f32, gradient.factor);
        let [squares] = self.squares.take(place.path, &weight, || [weight.zeros_like()]);
        let (weight, squares) = match (weight, gradient.values, squares) {
            (Flat::Host(mut w), Flat::Host(g), Flat::Host(mut a)) => {
                let chunks = w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).zip(a.par_chunks_mut(CHUNK));
                chunks.for_each(|((w, g), a)| {
                    wide(
                        #[inline(always)]
                        || {
                            for ((w, g), a) in w.iter_mut().zip(g).zip(a) {
                                let g = g * factor;
                                *a = *a * rho + g * g * rest;
                                *w -= g * rate / (a.sqrt() + epsilon);
                            }
                        },
                    );
                });
                (Flat::Host(w), Flat::Host(a))
            }
            (w, g, a) => {
                let device = Flat::device_of([&w, &g, &a]);
                let tensor = |flat: Flat| flat.into_tensor(&device);
                let (w, g, a) = (tensor(w), tensor(g) * factor, tensor(a));
                let a = a * rho + g.clone() * g.clone() * rest;
                let w = w - g * rate / (a.clone().sqrt() + epsilon);
                (Flat::Device(w), Flat::Device(a))
            }
        };
        self.squares.put(place.path, [squares]);
        weight
    }

    fn steps(&self) -> u64 {
        self.squares.steps()
    }

    fn export(&self) -> OptimizerState {
        self.squares.export()
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        self.squares.import(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epsilon_stands_outside_of_the_root() {
        let mut rule = Rmsprop::new(0.75, 0.5);
        rule.begin();
        let place = Place { path: "w", shape: &[1], embedding: false };
        // a = 0.25 x 4 = 1; 1 - 0.75 x 2 / (1 + 0.5), all exact in binary.
        let w = rule.step(place, 0.75, Flat::Host(vec![1.0]), Gradient::new(Flat::Host(vec![2.0]), 1.0));
        assert_eq!(w.to_vec(), [0.0]);
    }
}
