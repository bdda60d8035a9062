//! Adam, LazyAdam and AdamW.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use rayon::prelude::*;
use zoo_models::ops::wide;
use zoo_recipes::{DecayedParameters, EpsilonPlace};

use super::{Gradient, Optimizer, OptimizerError, OptimizerState, Place, export_moments, import_moments};
use crate::flat::{CHUNK, Flat};

/// Adam (Kingma and Ba 2015) with both published places of epsilon.
///
/// Lazy: an embedding row whose gradient is all zero keeps its weights and moments, as in
/// TensorFlow's LazyAdam. The step count of the bias correction advances for all rows. TensorFlow
/// tracks which rows were looked up; here a row that was looked up and got a gradient of exactly
/// zero counts as not looked up. A matrix that is also the output projection has a gradient in
/// every row, and an L2 penalty has the same effect: the rule is then plain Adam.
///
/// With decoupled decay it is AdamW: the weight is multiplied by 1 - lr d before the step, and the
/// moments do not contain the decay.
#[derive(Debug)]
pub struct Adam {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    place: EpsilonPlace,
    lazy: bool,
    decay: f64,
    /// Decoupled decay, and the parameters that it is for.
    apart: (f64, DecayedParameters),
    steps: u64,
    moments: BTreeMap<String, Moments>,
    /// State from a checkpoint. It moves to its device at the first step of its parameter.
    loaded: BTreeMap<String, (Vec<f32>, Vec<f32>)>,
}

#[derive(Debug)]
struct Moments {
    first: Flat,
    second: Flat,
}

/// Coefficients of one step, rounded to FP32 once.
#[derive(Debug, Clone, Copy)]
struct Coefficients {
    beta1: f32,
    rest1: f32,
    beta2: f32,
    rest2: f32,
    /// Divisor of the root of the second moment; 1 where epsilon is added to the raw root.
    root: f32,
    epsilon: f32,
    step: f32,
    factor: f32,
    decay: f32,
    /// Factor of the weight before the step; 1 without decoupled decay.
    keep: f32,
}

impl Adam {
    /// A rule with an empty state.
    pub fn new(beta1: f64, beta2: f64, epsilon: f64, place: EpsilonPlace, lazy: bool) -> Self {
        Self {
            beta1,
            beta2,
            epsilon,
            place,
            lazy,
            decay: 0.0,
            apart: (0.0, DecayedParameters::All),
            steps: 0,
            moments: BTreeMap::new(),
            loaded: BTreeMap::new(),
        }
    }

    /// Adds weight decay to the gradients, as in PyTorch.
    pub fn decaying(self, decay: f64) -> Self {
        Self { decay, ..self }
    }

    /// Decays weights apart from their gradients, as in PyTorch's AdamW.
    pub fn decaying_apart(self, decay: f64, decayed: DecayedParameters) -> Self {
        Self { apart: (decay, decayed), ..self }
    }

    fn coefficients(&self, lr: f64, factor: f32, shape: &[usize]) -> Coefficients {
        let decays = match self.apart.1 {
            DecayedParameters::All => true,
            DecayedParameters::Matrices => shape.len() >= 2,
        };
        let t = self.steps as f64;
        let (one, two) = (1.0 - self.beta1.powf(t), 1.0 - self.beta2.powf(t));
        let (root, step) = match self.place {
            EpsilonPlace::CorrectedRoot => (two.sqrt(), lr / one),
            EpsilonPlace::RawRoot => (1.0, lr * two.sqrt() / one),
        };
        Coefficients {
            beta1: self.beta1 as f32,
            rest1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            rest2: (1.0 - self.beta2) as f32,
            root: root as f32,
            epsilon: self.epsilon as f32,
            step: step as f32,
            factor,
            decay: self.decay as f32,
            keep: if decays { (1.0 - lr * self.apart.0) as f32 } else { 1.0 },
        }
    }

    /// Moments of a parameter: the current ones, those of the checkpoint, or zeros stored like its
    /// weights.
    fn moments_of(&mut self, path: &str, weight: &Flat) -> Moments {
        if let Some(moments) = self.moments.remove(path) {
            return moments;
        }
        match self.loaded.remove(path) {
            Some((first, second)) => Moments { first: placed(first, weight), second: placed(second, weight) },
            None => Moments { first: weight.zeros_like(), second: weight.zeros_like() },
        }
    }
}

impl Optimizer for Adam {
    fn begin(&mut self) {
        self.steps += 1;
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let c = self.coefficients(lr, gradient.factor, place.shape);
        let Moments { first, second } = self.moments_of(place.path, &weight);
        let columns = match place.shape {
            [_, rest @ ..] if self.lazy && place.embedding && !rest.is_empty() => {
                Some(rest.iter().product::<usize>())
            }
            _ => None,
        };
        let (weight, moments) = match (weight, gradient.values, first, second) {
            (Flat::Host(mut w), Flat::Host(g), Flat::Host(mut m), Flat::Host(mut v)) => {
                match columns {
                    // A row is skipped or updated as a whole.
                    Some(columns) if columns > 0 => w
                        .par_chunks_mut(columns)
                        .zip(g.par_chunks(columns))
                        .zip(m.par_chunks_mut(columns).zip(v.par_chunks_mut(columns)))
                        .filter(|((_, g), _)| g.iter().any(|g| *g != 0.0))
                        .for_each(|((w, g), (m, v))| c.apply(w, g, m, v)),
                    _ => w
                        .par_chunks_mut(CHUNK)
                        .zip(g.par_chunks(CHUNK))
                        .zip(m.par_chunks_mut(CHUNK).zip(v.par_chunks_mut(CHUNK)))
                        .for_each(|((w, g), (m, v))| c.apply(w, g, m, v)),
                }
                (Flat::Host(w), Moments { first: Flat::Host(m), second: Flat::Host(v) })
            }
            (w, g, m, v) => {
                let device = Flat::device_of([&w, &g, &m, &v]);
                let tensor = |flat: Flat| flat.into_tensor(&device);
                let (w, m, v) = c.apply_tensors(tensor(w), tensor(g), tensor(m), tensor(v), columns);
                (Flat::Device(w), Moments { first: Flat::Device(m), second: Flat::Device(v) })
            }
        };
        self.moments.insert(place.path.to_string(), moments);
        weight
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn export(&self) -> OptimizerState {
        let mut moments = export_moments("first", self.moments.iter().map(|(path, m)| (path, &m.first)));
        moments.extend(export_moments("second", self.moments.iter().map(|(path, m)| (path, &m.second))));
        for (path, (first, second)) in &self.loaded {
            moments.push(super::Moment {
                name: "first".to_string(),
                path: path.clone(),
                values: first.clone(),
            });
            moments.push(super::Moment {
                name: "second".to_string(),
                path: path.clone(),
                values: second.clone(),
            });
        }
        moments.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        OptimizerState { steps: self.steps, moments }
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        let [first, mut second] = import_moments(["first", "second"], state.moments)?;
        self.steps = state.steps;
        self.moments.clear();
        self.loaded = first
            .into_iter()
            .map(|(path, first)| {
                let second = second.remove(&path).expect("import_moments pairs them");
                (path, (first, second))
            })
            .collect();
        Ok(())
    }
}

/// Saved values, stored like the weights that they belong to.
pub(super) fn placed(values: Vec<f32>, weight: &Flat) -> Flat {
    match weight {
        Flat::Host(_) => Flat::Host(values),
        Flat::Device(tensor) => Flat::Device(Flat::Host(values).into_tensor(&tensor.device())),
    }
}

impl Coefficients {
    fn apply(&self, w: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32]) {
        wide(
            #[inline(always)]
            || match self.root {
                // Division by 1 changes nothing and takes a third of the time.
                1.0 => self.apply_with(w, g, m, v, |root| root),
                divisor => self.apply_with(w, g, m, v, |root| root / divisor),
            },
        );
    }

    #[inline(always)]
    fn apply_with(
        &self,
        w: &mut [f32],
        g: &[f32],
        m: &mut [f32],
        v: &mut [f32],
        corrected: impl Fn(f32) -> f32,
    ) {
        for (((w, g), m), v) in w.iter_mut().zip(g).zip(m).zip(v) {
            let g = g * self.factor + *w * self.decay;
            *m = *m * self.beta1 + g * self.rest1;
            *v = *v * self.beta2 + (g * g) * self.rest2;
            *w = *w * self.keep - (*m / (corrected(v.sqrt()) + self.epsilon)) * self.step;
        }
    }

    /// Operation by operation on tensors, equal to `apply`.
    fn apply_tensors(
        &self,
        w: Tensor<1>,
        g: Tensor<1>,
        m: Tensor<1>,
        v: Tensor<1>,
        columns: Option<usize>,
    ) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
        let before = columns.map(|columns| (columns, w.clone(), m.clone(), v.clone(), g.clone()));
        let g = g.mul_scalar(self.factor);
        let g = if self.decay == 0.0 { g } else { g.add(w.clone().mul_scalar(self.decay)) };
        let m = m.mul_scalar(self.beta1).add(g.clone().mul_scalar(self.rest1));
        let v = v.mul_scalar(self.beta2).add(g.clone().mul(g).mul_scalar(self.rest2));
        let root = v.clone().sqrt().div_scalar(self.root).add_scalar(self.epsilon);
        let w = if self.keep == 1.0 { w } else { w.mul_scalar(self.keep) };
        let w = w.sub(m.clone().div(root).mul_scalar(self.step));
        let Some((columns, old_w, old_m, old_v, old_g)) = before else { return (w, m, v) };
        let n = old_g.dims()[0];
        let rows = n.checked_div(columns).unwrap_or(0);
        let unused = old_g
            .reshape([rows, columns])
            .abs()
            .max_dim(1)
            .equal_elem(0.0)
            .expand([rows, columns])
            .reshape([n]);
        (
            w.mask_where(unused.clone(), old_w),
            m.mask_where(unused.clone(), old_m),
            v.mask_where(unused, old_v),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};

    fn place<'a>(shape: &'a [usize], embedding: bool) -> Place<'a> {
        Place { path: "w", shape, embedding }
    }

    /// Adam on one number in FP64, from the paper's formulas.
    fn by_formula(place: EpsilonPlace, gradients: &[f64], lr: f64, epsilon: f64) -> f64 {
        let (b1, b2) = (0.9f64, 0.98f64);
        let (mut w, mut m, mut v) = (1.0, 0.0, 0.0);
        for (t, g) in (1..).zip(gradients) {
            m = b1 * m + (1.0 - b1) * g;
            v = b2 * v + (1.0 - b2) * g * g;
            let (one, two) = (1.0 - b1.powi(t), 1.0 - b2.powi(t));
            w -= match place {
                EpsilonPlace::CorrectedRoot => lr * (m / one) / ((v / two).sqrt() + epsilon),
                EpsilonPlace::RawRoot => lr * two.sqrt() / one * m / (v.sqrt() + epsilon),
            };
        }
        w
    }

    #[test]
    fn both_places_of_epsilon_follow_their_formulas() {
        let gradients = [0.3, -0.02, 0.5, 0.0, -1.5];
        let mut results = Vec::new();
        for where_ in [EpsilonPlace::CorrectedRoot, EpsilonPlace::RawRoot] {
            // An epsilon large enough for the two places to differ.
            let mut adam = Adam::new(0.9, 0.98, 0.1, where_, false);
            let mut w = Flat::Host(vec![1.0]);
            for g in gradients {
                adam.begin();
                w = adam.step(place(&[1], false), 0.01, w, Gradient::new(Flat::Host(vec![g as f32]), 1.0));
            }
            let found = f64::from(w.to_vec()[0]);
            let expected = by_formula(where_, &gradients, 0.01, 0.1);
            assert!((found - expected).abs() < 2e-7, "{found} {expected}");
            results.push(found);
        }
        assert!((results[0] - results[1]).abs() > 1e-3);
    }

    #[test]
    fn the_tensor_path_agrees_with_the_host_path_bit_for_bit() {
        let (rows, columns) = (300, 70);
        let n = rows * columns;
        let noise = |seed: usize| -> Vec<f32> {
            (0..n).map(|i| ((i * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5).collect()
        };
        let tensor =
            |values: Vec<f32>| Flat::Device(Tensor::from_data(TensorData::new(values, [n]), &Device::flex()));
        for where_ in [EpsilonPlace::CorrectedRoot, EpsilonPlace::RawRoot] {
            for lazy in [false, true] {
                let mut host = Adam::new(0.9, 0.997, 1e-9, where_, lazy);
                let mut device = Adam::new(0.9, 0.997, 1e-9, where_, lazy);
                let (mut a, mut b) = (Flat::Host(noise(1)), tensor(noise(1)));
                for step in 0..4 {
                    let mut g = noise(step + 2);
                    g[step * columns..(step + 50) * columns].fill(0.0);
                    host.begin();
                    device.begin();
                    let shape = [rows, columns];
                    a = host.step(place(&shape, true), 1e-3, a, Gradient::new(Flat::Host(g.clone()), 0.3));
                    b = device.step(place(&shape, true), 1e-3, b, Gradient::new(tensor(g), 0.3));
                    assert_eq!(a.to_vec(), b.to_vec(), "step {step} lazy {lazy}");
                }
                assert_eq!(host.export(), device.export());
            }
        }
    }

    #[test]
    fn decoupled_decay_shrinks_the_weights_that_decay_and_leaves_the_moments() {
        let run = |adam: Adam, shape: &[usize]| {
            let mut adam = adam;
            let mut w = Flat::Host(vec![1.0, -2.0]);
            for g in [[0.3f32, 0.0], [-0.1, 0.0]] {
                adam.begin();
                w = adam.step(place(shape, false), 0.1, w, Gradient::new(Flat::Host(g.to_vec()), 1.0));
            }
            (w.to_vec(), adam.export())
        };
        let plain = || Adam::new(0.9, 0.99, 1e-8, EpsilonPlace::CorrectedRoot, false);
        let (free, moments) = run(plain(), &[1, 2]);
        let (all, moments_of_all) = run(plain().decaying_apart(0.5, DecayedParameters::All), &[2]);
        // Without a gradient a weight is 1 - lr d of itself after each update.
        assert_eq!(free[1], -2.0);
        assert_eq!(all[1], -2.0 * 0.95 * 0.95);
        assert!(all[0] < free[0], "{all:?} {free:?}");
        assert_eq!(moments_of_all, moments);
        let matrices = || plain().decaying_apart(0.5, DecayedParameters::Matrices);
        assert_eq!(run(matrices(), &[1, 2]).0, all, "a matrix decays");
        assert_eq!(run(matrices(), &[2]).0, free, "a vector does not");
    }

    #[test]
    fn lazy_rows_without_gradient_keep_weights_and_moments() {
        let mut lazy = Adam::new(0.9, 0.997, 1e-9, EpsilonPlace::CorrectedRoot, true);
        let mut plain = Adam::new(0.9, 0.997, 1e-9, EpsilonPlace::CorrectedRoot, false);
        let start = vec![1.0f32, 2.0, 3.0, 4.0];
        let gradients = [vec![0.5f32, -0.5, 0.25, 0.0], vec![0.0, 0.0, 0.1, 0.1]];
        let (mut a, mut b) = (Flat::Host(start.clone()), Flat::Host(start));
        let mut after_first = Vec::new();
        for g in gradients {
            lazy.begin();
            plain.begin();
            a = lazy.step(place(&[2, 2], true), 0.1, a, Gradient::new(Flat::Host(g.clone()), 1.0));
            b = plain.step(place(&[2, 2], true), 0.1, b, Gradient::new(Flat::Host(g), 1.0));
            if after_first.is_empty() {
                after_first = a.to_vec();
            }
        }
        let (a, b) = (a.to_vec(), b.to_vec());
        assert_eq!(a[..2], after_first[..2], "the first row had no gradient in the second update");
        assert_ne!(b[..2], after_first[..2], "Adam's moments move it all the same");
        assert_eq!(a[2..], b[2..], "a row with a gradient is stepped as a whole, as Adam does");
        // For a matrix that is not an embedding, the lazy rule equals Adam.
        let mut dense = Adam::new(0.9, 0.997, 1e-9, EpsilonPlace::CorrectedRoot, true);
        let mut c = Flat::Host(vec![1.0, 2.0, 3.0, 4.0]);
        for g in [vec![0.5f32, -0.5, 0.25, 0.0], vec![0.0, 0.0, 0.1, 0.1]] {
            dense.begin();
            c = dense.step(place(&[2, 2], false), 0.1, c, Gradient::new(Flat::Host(g), 1.0));
        }
        assert_eq!(c.to_vec(), b);
    }

    #[test]
    fn a_restored_state_goes_on_bit_for_bit() {
        let run = |restart: bool| {
            let mut adam = Adam::new(0.9, 0.98, 1e-8, EpsilonPlace::RawRoot, false);
            let mut w = Flat::Host(vec![1.0, -2.0, 0.5]);
            for step in 0..6u8 {
                if restart && step == 3 {
                    let state = adam.export();
                    adam = Adam::new(0.9, 0.98, 1e-8, EpsilonPlace::RawRoot, false);
                    adam.import(state).unwrap();
                }
                adam.begin();
                let g = vec![0.1 * f32::from(step), -0.3, 0.7 - 0.2 * f32::from(step)];
                w = adam.step(place(&[3], false), 0.01, w, Gradient::new(Flat::Host(g), 1.0));
            }
            (w.to_vec(), adam.export())
        };
        assert_eq!(run(true), run(false));
    }

    #[test]
    fn half_a_state_is_refused() {
        let mut adam = Adam::new(0.9, 0.98, 1e-8, EpsilonPlace::RawRoot, false);
        adam.begin();
        let gradient = Gradient::new(Flat::Host(vec![1.0]), 1.0);
        adam.step(place(&[1], false), 0.01, Flat::Host(vec![1.0]), gradient);
        let mut state = adam.export();
        state.moments.retain(|moment| moment.name == "first");
        assert!(matches!(adam.import(state), Err(OptimizerError::MissingMoment { moment: "second", .. })));
    }
}
