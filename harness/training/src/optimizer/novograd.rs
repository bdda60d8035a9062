//! NovoGrad.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use rayon::prelude::*;
use zoo_recipes::NovogradVariant;

use super::adam::placed;
use super::{Moment, Optimizer, OptimizerError, OptimizerState, Place, export_moments, import_moments};
use crate::flat::{CHUNK, Flat, magnitude};

/// The numbers of a recipe's NovoGrad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NovogradSettings {
    /// Decay of the momentum.
    pub beta1: f64,
    /// Decay of the squared norm; does nothing as coded.
    pub beta2: f64,
    /// Added to the norm (published) or to its square (as coded).
    pub epsilon: f64,
    /// Added to the divided gradient, times the weight.
    pub weight_decay: f64,
    /// Multiply what is added to the momentum by 1 - beta1.
    pub grad_averaging: bool,
    /// Which of the two formulas.
    pub variant: NovogradVariant,
}

/// NovoGrad (Ginsburg et al. 2019, arXiv 1905.11286, algorithm 1), one norm for each parameter tensor:
///
/// m = beta1 m + (g / norm + weight_decay w), w = w - lr m, with m from 0 on, and
///
/// - published: norm = sqrt(v) + eps, v = beta2 v + (1 - beta2) |g|^2, v = |g|^2 at first;
/// - as coded (OpenSeq2Seq@8681d381 optimizers/novograd.py): norm = sqrt(|g|^2 + eps). There v has a variable that starts at 0 and
///   that nothing assigns, so that every update is a first one. A checkpoint of this variant holds no v.
///
/// The paper takes |g|^2 for v at the first update; here, as in the code, as long as v is 0, which differs where the first gradients
/// are all zero. The paper has one norm a layer, the code one for each variable: so it is here.
///
/// The norm is summed in FP64 on a CPU and in FP32 on other devices; the two agree to rounding, not to the bit.
#[derive(Debug)]
pub struct Novograd {
    settings: NovogradSettings,
    steps: u64,
    state: BTreeMap<String, Memory>,
    /// Loaded from a checkpoint; moved to its device when its parameter is first met.
    loaded: BTreeMap<String, (Vec<f32>, Option<Vec<f32>>)>,
}

/// What is remembered of one parameter.
#[derive(Debug)]
struct Memory {
    momentum: Flat,
    /// v, one value; `None` as coded, and before the first update.
    square: Option<Flat>,
}

impl Novograd {
    /// A rule without state.
    pub fn new(settings: NovogradSettings) -> Self {
        Self { settings, steps: 0, state: BTreeMap::new(), loaded: BTreeMap::new() }
    }

    fn memory_of(&mut self, path: &str, weight: &Flat) -> Memory {
        if let Some(memory) = self.state.remove(path) {
            return memory;
        }
        match self.loaded.remove(path) {
            Some((momentum, square)) => Memory {
                momentum: placed(momentum, weight),
                square: square.map(|square| placed(square, weight)),
            },
            None => Memory { momentum: weight.zeros_like(), square: None },
        }
    }
}

impl NovogradSettings {
    fn keeps_square(&self) -> bool {
        self.variant == NovogradVariant::Published
    }

    /// 1 or 1 - beta1.
    fn share(&self) -> f32 {
        if self.grad_averaging { (1.0 - self.beta1) as f32 } else { 1.0 }
    }

    /// v after a gradient with the squared norm `square`, rounded as a checkpoint keeps it.
    fn next_square(&self, before: Option<f32>, square: f64) -> f32 {
        let next = match before.map(f64::from) {
            Some(before) if before != 0.0 && self.keeps_square() => {
                self.beta2 * before + (1.0 - self.beta2) * square
            }
            _ => square,
        };
        // Infinity would stay for good.
        (next as f32).min(f32::MAX)
    }

    /// What a gradient is divided by.
    fn norm(&self, square: f64) -> f64 {
        match self.variant {
            NovogradVariant::Published => square.sqrt() + self.epsilon,
            NovogradVariant::AsCoded => (square + self.epsilon).sqrt(),
        }
    }

    fn on_host(
        &self,
        lr: f64,
        w: &mut [f32],
        (g, factor): (&[f32], f32),
        m: &mut [f32],
        gradient_square: f64,
        before: Option<f32>,
    ) -> f32 {
        let square = self.next_square(before, gradient_square * f64::from(factor).powi(2));
        let scale = (f64::from(factor) / self.norm(f64::from(square))) as f32;
        let (beta1, decay, share, lr) =
            (self.beta1 as f32, self.weight_decay as f32, self.share(), lr as f32);
        let chunks = w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).zip(m.par_chunks_mut(CHUNK));
        chunks.for_each(|((w, g), m)| {
            for ((w, g), m) in w.iter_mut().zip(g).zip(m) {
                *m = *m * beta1 + (g * scale + *w * decay) * share;
                *w -= *m * lr;
            }
        });
        square
    }

    /// The same on tensors: new weights, momentum and v.
    fn on_device(
        &self,
        lr: f64,
        w: Tensor<1>,
        (g, factor): (Tensor<1>, f32),
        m: Tensor<1>,
        before: Option<Tensor<1>>,
    ) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
        let square = g.clone().mul(g.clone()).sum().mul_scalar(factor * factor);
        let square = match before.filter(|_| self.keeps_square()) {
            Some(before) => {
                let first = before.clone().equal_elem(0.0);
                let decayed = before
                    .mul_scalar(self.beta2 as f32)
                    .add(square.clone().mul_scalar((1.0 - self.beta2) as f32));
                decayed.mask_where(first, square)
            }
            None => square,
        };
        let norm = match self.variant {
            NovogradVariant::Published => square.clone().sqrt().add_scalar(self.epsilon as f32),
            NovogradVariant::AsCoded => square.clone().add_scalar(self.epsilon as f32).sqrt(),
        };
        let n = g.dims()[0];
        let scale = norm.recip().mul_scalar(factor).expand([n]);
        let added = g.mul(scale).add(w.clone().mul_scalar(self.weight_decay as f32));
        let m = m.mul_scalar(self.beta1 as f32).add(added.mul_scalar(self.share()));
        (w.sub(m.clone().mul_scalar(lr as f32)), m, square)
    }
}

impl Optimizer for Novograd {
    fn begin(&mut self) {
        self.steps += 1;
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Flat, factor: f32) -> Flat {
        let Memory { momentum, square } = self.memory_of(place.path, &weight);
        let settings = self.settings;
        let (weight, momentum, square) = match (weight, gradient, momentum) {
            (Flat::Host(mut w), Flat::Host(g), Flat::Host(mut m)) => {
                let before = square.and_then(|square| square.to_vec().first().copied());
                let gradient_square = magnitude(&g).square_sum;
                let next = settings.on_host(lr, &mut w, (&g, factor), &mut m, gradient_square, before);
                (Flat::Host(w), Flat::Host(m), Flat::Host(vec![next]))
            }
            (w, g, m) => {
                let device = [&w, &g, &m]
                    .into_iter()
                    .find_map(|flat| if let Flat::Device(t) = flat { Some(t.device()) } else { None })
                    .expect("not all are on the host");
                let tensor = |flat: Flat| flat.into_tensor(&device);
                let before = square.map(tensor);
                let (w, m, v) = settings.on_device(lr, tensor(w), (tensor(g), factor), tensor(m), before);
                (Flat::Device(w), Flat::Device(m), Flat::Device(v))
            }
        };
        let square = settings.keeps_square().then_some(square);
        self.state.insert(place.path.to_string(), Memory { momentum, square });
        weight
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn export(&self) -> OptimizerState {
        let mut moments = export_moments("first", self.state.iter().map(|(path, m)| (path, &m.momentum)));
        let squares = self.state.iter().filter_map(|(path, m)| Some((path, m.square.as_ref()?)));
        moments.extend(export_moments("second", squares));
        for (path, (momentum, square)) in &self.loaded {
            let named = |name: &str, values: &Vec<f32>| Moment {
                name: name.to_string(),
                path: path.clone(),
                values: values.clone(),
            };
            moments.push(named("first", momentum));
            moments.extend(square.as_ref().map(|square| named("second", square)));
        }
        moments.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        OptimizerState { steps: self.steps, moments }
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        let loaded = if self.settings.keeps_square() {
            let [first, mut second] = import_moments(["first", "second"], state.moments)?;
            first
                .into_iter()
                .map(|(path, momentum)| match second.remove(&path) {
                    Some(square) if square.len() == 1 => Ok((path, (momentum, Some(square)))),
                    _ => Err(OptimizerError::MissingMoment { moment: "second", path }),
                })
                .collect::<Result<_, _>>()?
        } else {
            let [first] = import_moments(["first"], state.moments)?;
            first.into_iter().map(|(path, momentum)| (path, (momentum, None))).collect()
        };
        self.steps = state.steps;
        self.state.clear();
        self.loaded = loaded;
        Ok(())
    }
}

#[cfg(test)]
#[path = "novograd_tests.rs"]
mod tests;
