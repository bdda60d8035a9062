//! NovoGrad.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use rayon::prelude::*;
use zoo_models::ops::wide;
use zoo_recipes::NovogradVariant;

use super::adam::placed;
use super::{
    Gradient, Moment, Optimizer, OptimizerError, OptimizerState, Place, export_moments, import_moments,
};
use crate::flat::{CHUNK, Flat, measure};

/// Settings of a recipe's NovoGrad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NovogradSettings {
    /// Decay of the momentum.
    pub beta1: f64,
    /// Decay of the squared norm; without effect in the coded variant.
    pub beta2: f64,
    /// Added to the norm (published) or to its square (as coded).
    pub epsilon: f64,
    /// Factor of the weight that is added to the normalised gradient.
    pub weight_decay: f64,
    /// Whether the addend of the momentum is multiplied by 1 - beta1.
    pub grad_averaging: bool,
    /// Selects one of the two formulas.
    pub variant: NovogradVariant,
}

/// NovoGrad (Ginsburg et al. 2019, arXiv 1905.11286, algorithm 1), with one norm for each parameter
/// tensor:
///
/// m = beta1 m + (g / norm + weight_decay w), w = w - lr m, with m = 0 at first, and
///
/// - published: norm = sqrt(v) + eps, v = beta2 v + (1 - beta2) |g|^2, v = |g|^2 at first;
/// - as coded (OpenSeq2Seq@8681d381 optimizers/novograd.py): norm = sqrt(|g|^2 + eps). In that code
///   v is a variable that starts at 0 and is never assigned, so every update is a first one. A
///   checkpoint of this variant holds no v.
///
/// The paper sets v to |g|^2 at the first update. Here, as in the code, v is set as long as it is
/// 0, which differs if the first gradients are all zero. The paper has one norm for each layer; the
/// code and this rule have one for each variable.
///
/// The norm is the one that clipping measured. It is summed in FP64 on a CPU, and in FP32 parts on
/// other devices; the two agree up to rounding, but not bitwise. v is kept on the host for every
/// device.
#[derive(Debug)]
pub struct Novograd {
    settings: NovogradSettings,
    steps: u64,
    state: BTreeMap<String, Memory>,
    /// State from a checkpoint. It moves to its device at the first step of its parameter.
    loaded: BTreeMap<String, (Vec<f32>, Option<f32>)>,
}

/// State of one parameter.
#[derive(Debug)]
struct Memory {
    momentum: Flat,
    /// v; `None` in the coded variant, and before the first update.
    square: Option<f32>,
}

impl Novograd {
    /// A rule with an empty state.
    pub fn new(settings: NovogradSettings) -> Self {
        Self { settings, steps: 0, state: BTreeMap::new(), loaded: BTreeMap::new() }
    }

    fn memory_of(&mut self, path: &str, weight: &Flat) -> Memory {
        if let Some(memory) = self.state.remove(path) {
            return memory;
        }
        match self.loaded.remove(path) {
            Some((momentum, square)) => Memory { momentum: placed(momentum, weight), square },
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

    /// v after a gradient with the squared norm `square`, rounded as in a checkpoint.
    fn next_square(&self, before: Option<f32>, square: f64) -> f32 {
        let next = match before.map(f64::from) {
            Some(before) if before != 0.0 && self.keeps_square() => {
                self.beta2 * before + (1.0 - self.beta2) * square
            }
            _ => square,
        };
        // Infinity would never decay.
        (next as f32).min(f32::MAX)
    }

    /// Divisor of a gradient.
    fn norm(&self, square: f64) -> f64 {
        match self.variant {
            NovogradVariant::Published => square.sqrt() + self.epsilon,
            NovogradVariant::AsCoded => (square + self.epsilon).sqrt(),
        }
    }

    /// Factor of a gradient, including `factor`.
    fn scale(&self, square: f32, factor: f32) -> f32 {
        (f64::from(factor) / self.norm(f64::from(square))) as f32
    }
}

/// Coefficients of one step, rounded to FP32 once.
#[derive(Debug, Clone, Copy)]
struct Coefficients {
    beta1: f32,
    decay: f32,
    share: f32,
    lr: f32,
    /// Factor of the gradient.
    scale: f32,
}

impl Coefficients {
    #[inline(always)]
    fn apply(&self, w: &mut [f32], g: &[f32], m: &mut [f32]) {
        for ((w, g), m) in w.iter_mut().zip(g).zip(m) {
            *m = *m * self.beta1 + (g * self.scale + *w * self.decay) * self.share;
            *w -= *m * self.lr;
        }
    }

    /// Operation by operation on tensors: new weights and momentum.
    fn apply_tensors(&self, w: Tensor<1>, g: Tensor<1>, m: Tensor<1>) -> (Tensor<1>, Tensor<1>) {
        let added = g.mul_scalar(self.scale).add(w.clone().mul_scalar(self.decay));
        let m = m.mul_scalar(self.beta1).add(added.mul_scalar(self.share));
        (w.sub(m.clone().mul_scalar(self.lr)), m)
    }
}

impl Optimizer for Novograd {
    fn begin(&mut self) {
        self.steps += 1;
    }

    fn step(&mut self, place: Place<'_>, lr: f64, weight: Flat, gradient: Gradient) -> Flat {
        let Memory { momentum, square } = self.memory_of(place.path, &weight);
        let Gradient { values, factor, square_sum } = gradient;
        let settings = self.settings;
        let square_sum = square_sum.unwrap_or_else(|| measure(&[&values], Vec::new()).0[0].square_sum);
        let square = settings.next_square(square, square_sum * f64::from(factor).powi(2));
        let c = Coefficients {
            beta1: settings.beta1 as f32,
            decay: settings.weight_decay as f32,
            share: settings.share(),
            lr: lr as f32,
            scale: settings.scale(square, factor),
        };
        let (weight, momentum) = match (weight, values, momentum) {
            (Flat::Host(mut w), Flat::Host(g), Flat::Host(mut m)) => {
                let chunks = w.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).zip(m.par_chunks_mut(CHUNK));
                chunks.for_each(|((w, g), m)| {
                    wide(
                        #[inline(always)]
                        || c.apply(w, g, m),
                    );
                });
                (Flat::Host(w), Flat::Host(m))
            }
            (w, g, m) => {
                let device = [&w, &g, &m]
                    .into_iter()
                    .find_map(|flat| if let Flat::Device(t) = flat { Some(t.device()) } else { None })
                    .expect("not all are on the host");
                let tensor = |flat: Flat| flat.into_tensor(&device);
                let (w, m) = c.apply_tensors(tensor(w), tensor(g), tensor(m));
                (Flat::Device(w), Flat::Device(m))
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
        let kept = self.state.iter().map(|(path, m)| (path, m.square));
        let loaded = self.loaded.iter().map(|(path, (_, square))| (path, *square));
        let named = |name: &str, path: &String, values: Vec<f32>| Moment {
            name: name.to_string(),
            path: path.clone(),
            values,
        };
        let squares = kept.chain(loaded).filter_map(|(path, square)| Some((path, square?)));
        moments.extend(squares.map(|(path, square)| named("second", path, vec![square])));
        moments.extend(self.loaded.iter().map(|(path, (first, _))| named("first", path, first.clone())));
        moments.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        OptimizerState { steps: self.steps, moments }
    }

    fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        let loaded = if self.settings.keeps_square() {
            let [first, mut second] = import_moments(["first", "second"], state.moments)?;
            first
                .into_iter()
                .map(|(path, momentum)| match second.remove(&path) {
                    Some(square) if square.len() == 1 => Ok((path, (momentum, Some(square[0])))),
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
