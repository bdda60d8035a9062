//! Gradient descent with heavy-ball or Nesterov momentum.

use rayon::prelude::*;
use zoo_models::ops::wide;
use zoo_recipes::Velocity;

use super::moments::Moments;
use super::{Gradient, Optimizer, OptimizerError, OptimizerState, Place};
use crate::flat::{CHUNK, Flat};

/// v = momentum v + (g + decay w) (no dampening), w = w - lr v. Nesterov, as in PyTorch: w = w - lr
/// (g + decay w + momentum v). If the momentum sums steps, as in Caffe: v = momentum v + lr (g +
/// decay w), w = w - v.
#[derive(Debug)]
pub struct Sgd {
    momentum: f64,
    decay: f64,
    nesterov: bool,
    sums: Velocity,
    velocity: Moments<1>,
}

impl Sgd {
    /// A rule with an empty state.
    pub fn new(momentum: f64, decay: f64, nesterov: bool) -> Self {
        let velocity = Moments::new(["velocity"]);
        Self { momentum, decay, nesterov, sums: Velocity::Gradients, velocity }
    }

    /// Sets what the momentum sums.
    pub fn summing(self, sums: Velocity) -> Self {
        Self { sums, ..self }
    }
}

/// Coefficients of one step.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Factor of the gradient.
    factor: f32,
    /// Share of the weight that is added to the gradient.
    decay: f32,
    /// Factor of the gradient and the decay in the velocity.
    scale: f32,
    momentum: f32,
    nesterov: bool,
    /// Factor of the velocity, or of the gradient without one.
    rate: f32,
}

impl Step {
    /// New weights without a velocity, in one pass on the host.
    fn plain(self, weight: Flat, gradient: Flat) -> Flat {
        match (weight, gradient) {
            (Flat::Host(mut w), Flat::Host(g)) => {
                w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).for_each(|(w, g)| {
                    wide(
                        #[inline(always)]
                        || match self.decay {
                            0.0 => self.apply(w, g, |g, _| g),
                            decay => self.apply(w, g, |g, w| g + w * decay),
                        },
                    );
                });
                Flat::Host(w)
            }
            (w, g) => {
                let gradient = self.decayed(&w, g);
                w.plus_scaled(&gradient, -self.rate)
            }
        }
    }

    /// New weights and velocity, in one pass on the host.
    fn with_velocity(self, weight: Flat, gradient: Flat, velocity: Flat) -> (Flat, Flat) {
        match (weight, gradient, velocity) {
            (Flat::Host(mut w), Flat::Host(g), Flat::Host(mut v)) => {
                let chunks = w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).zip(v.par_chunks_mut(CHUNK));
                chunks.for_each(|((w, g), v)| {
                    wide(
                        #[inline(always)]
                        || match self.decay {
                            0.0 => self.apply_with_velocity(w, g, v, |g, _| g),
                            decay => self.apply_with_velocity(w, g, v, |g, w| g + w * decay),
                        },
                    );
                });
                (Flat::Host(w), Flat::Host(v))
            }
            (w, g, v) => {
                let g = self.decayed(&w, g);
                let g = if self.scale == 1.0 { g } else { g.scaled(self.scale) };
                let gradient = self.nesterov.then(|| g.clone());
                let velocity = v.scaled(self.momentum).plus(g);
                let step = gradient.map(|gradient| gradient.plus_scaled(&velocity, self.momentum));
                (w.plus_scaled(step.as_ref().unwrap_or(&velocity), -self.rate), velocity)
            }
        }
    }

    /// The gradient with its factor and the decay.
    fn decayed(self, weight: &Flat, gradient: Flat) -> Flat {
        let gradient = gradient.scaled(self.factor);
        if self.decay == 0.0 { gradient } else { gradient.plus_scaled(weight, self.decay) }
    }

    #[inline(always)]
    fn apply(self, w: &mut [f32], g: &[f32], decayed: impl Fn(f32, f32) -> f32) {
        for (w, g) in w.iter_mut().zip(g) {
            *w += decayed(g * self.factor, *w) * -self.rate;
        }
    }

    #[inline(always)]
    fn apply_with_velocity(self, w: &mut [f32], g: &[f32], v: &mut [f32], decayed: impl Fn(f32, f32) -> f32) {
        for ((w, g), v) in w.iter_mut().zip(g).zip(v) {
            let g = decayed(g * self.factor, *w) * self.scale;
            *v = *v * self.momentum + g;
            let step = if self.nesterov { g + *v * self.momentum } else { *v };
            *w += step * -self.rate;
        }
    }
}

impl Optimizer for Sgd {
    fn begin(&mut self) {
        self.velocity.begin();
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let step = Step {
            factor: gradient.factor,
            decay: self.decay as f32,
            scale: if self.sums == Velocity::Steps { lr as f32 } else { 1.0 },
            momentum: self.momentum as f32,
            nesterov: self.nesterov,
            rate: if self.sums == Velocity::Steps { 1.0 } else { lr as f32 },
        };
        if self.momentum == 0.0 {
            // Without a velocity both forms are w - lr g.
            return Step { scale: 1.0, rate: lr as f32, ..step }.plain(weight, gradient.values);
        }
        let [velocity] = self.velocity.take(place.path, &weight, || [weight.zeros_like()]);
        let (weight, velocity) = step.with_velocity(weight, gradient.values, velocity);
        self.velocity.put(place.path, [velocity]);
        weight
    }

    fn steps(&self) -> u64 {
        self.velocity.steps()
    }

    fn export(&self) -> OptimizerState {
        self.velocity.export()
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        self.velocity.import(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Tensor, TensorData};

    fn place() -> Place<'static> {
        Place { path: "w", shape: &[2], embedding: false }
    }

    #[test]
    fn momentum_has_no_dampening() {
        let mut sgd = Sgd::new(0.5, 0.0, false);
        let mut w = Flat::Host(vec![1.0, 1.0]);
        // v = 1, 1.5, 1.75; w = 1 - 0.25 (1 + 1.5 + 1.75), all exact in binary.
        for _ in 0..3 {
            sgd.begin();
            w = sgd.step(place(), 0.25, w, Gradient::new(Flat::Host(vec![1.0, -1.0]), 1.0));
        }
        assert_eq!(w.to_vec(), [-0.0625, 2.0625]);
    }

    #[test]
    fn a_sum_of_steps_keeps_the_rate_that_each_step_had() {
        let mut w = Flat::Host(vec![1.0, 1.0]);
        let mut sgd = Sgd::new(0.5, 0.0, false).summing(Velocity::Steps);
        // v = 0.25, then 0.125 + 0.125; w = 1 - 0.25 - 0.25. With a sum of gradients: 1 - 0.25 -
        // 0.1875.
        for lr in [0.25, 0.125] {
            sgd.begin();
            w = sgd.step(place(), lr, w, Gradient::new(Flat::Host(vec![1.0, -1.0]), 1.0));
        }
        assert_eq!(w.to_vec(), [0.5, 1.5]);
    }

    #[test]
    fn nesterov_looks_a_momentum_ahead() {
        let mut sgd = Sgd::new(0.5, 0.0, true);
        let mut w = Flat::Host(vec![1.0, 1.0]);
        // v = 1, 1.5; w = 1 - 0.25 (1 + 0.5 + 1 + 0.75), all exact in binary.
        for _ in 0..2 {
            sgd.begin();
            w = sgd.step(place(), 0.25, w, Gradient::new(Flat::Host(vec![1.0, -1.0]), 1.0));
        }
        assert_eq!(w.to_vec(), [0.1875, 1.8125]);
    }

    #[test]
    fn decay_is_added_behind_the_clipping() {
        let mut sgd = Sgd::new(0.0, 0.5, false);
        sgd.begin();
        // 4 - 0.25 (0.5 x 8 + 0.5 x 4), all exact in binary.
        let gradient = Gradient::new(Flat::Host(vec![8.0, 1.0]), 0.5);
        let w = sgd.step(place(), 0.25, Flat::Host(vec![4.0, 0.0]), gradient);
        assert_eq!(w.to_vec(), [2.5, -0.125]);
    }

    #[test]
    fn the_tensor_path_agrees_with_the_host_path_bit_for_bit() {
        let tensor = |v: Vec<f32>| Flat::Device(Tensor::from_data(TensorData::new(v, [2]), &Device::flex()));
        let rules =
            [(0.0, 0.0, false), (0.0, 0.01, false), (0.9, 0.0, false), (0.9, 0.01, false), (0.9, 0.01, true)];
        for (momentum, decay, nesterov) in rules {
            let (mut host, mut device) =
                (Sgd::new(momentum, decay, nesterov), Sgd::new(momentum, decay, nesterov));
            let (mut a, mut b) = (Flat::Host(vec![0.3, -7.1]), tensor(vec![0.3, -7.1]));
            for step in 1..5u8 {
                let g = vec![0.37 / f32::from(step), -1.9];
                a = host.step(place(), 0.013, a, Gradient::new(Flat::Host(g.clone()), 0.77));
                b = device.step(place(), 0.013, b, Gradient::new(tensor(g), 0.77));
                assert_eq!(a.to_vec(), b.to_vec());
            }
            assert_eq!(host.export(), device.export());
        }
    }
}
