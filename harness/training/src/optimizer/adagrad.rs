//! Adagrad: gradients divided by the root of the sum of their squares.

use rayon::prelude::*;
use zoo_models::ops::wide;

use super::moments::Moments;
use super::{Gradient, Optimizer, OptimizerError, OptimizerState, Place};
use crate::flat::{CHUNK, Flat};

/// a = a + g^2, w = w - lr g / sqrt(a) (Duchi et al. 2011; TensorFlow's `AdagradOptimizer`). A row
/// of an embedding without a gradient stays as it is.
#[derive(Debug)]
pub struct Adagrad {
    /// First value of a.
    initial: f64,
    squares: Moments<1>,
}

impl Adagrad {
    /// A rule whose sums of squares begin with `initial`.
    pub fn new(initial: f64) -> Self {
        Self { initial, squares: Moments::new(["squares"]) }
    }
}

impl Optimizer for Adagrad {
    fn begin(&mut self) {
        self.squares.begin();
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let (initial, rate, factor) = (self.initial as f32, lr as f32, gradient.factor);
        let [squares] = self.squares.take(place.path, &weight, || [weight.all_like(initial)]);
        let (weight, squares) = match (weight, gradient.values, squares) {
            (Flat::Host(mut w), Flat::Host(g), Flat::Host(mut a)) => {
                let chunks = w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).zip(a.par_chunks_mut(CHUNK));
                chunks.for_each(|((w, g), a)| {
                    wide(
                        #[inline(always)]
                        || {
                            for ((w, g), a) in w.iter_mut().zip(g).zip(a) {
                                let g = g * factor;
                                *a += g * g;
                                *w -= g * rate / a.sqrt();
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
                let a = a + g.clone() * g.clone();
                let w = w - g * rate / a.clone().sqrt();
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
    fn squares_are_summed_from_the_first_value_on() {
        let mut rule = Adagrad::new(1.0);
        let place = Place { path: "w", shape: &[2], embedding: false };
        let mut w = Flat::Host(vec![1.0, 3.0]);
        // a = 1 + 8 = 9, then 9 + 7 = 16. Without a gradient nothing moves.
        for (g, due) in [
            (8f32.sqrt(), 1.0 - 8f64.sqrt() / 3.0),
            (7f32.sqrt(), 1.0 - 8f64.sqrt() / 3.0 - 7f64.sqrt() / 4.0),
        ] {
            rule.begin();
            w = rule.step(place, 1.0, w, Gradient::new(Flat::Host(vec![g, 0.0]), 1.0));
            let found = w.to_vec();
            assert!((f64::from(found[0]) - due).abs() < 1e-6 && found[1] == 3.0, "{found:?} {due}");
        }
    }
}
