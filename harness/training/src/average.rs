//! An exponential mean of the weights (NVIDIA's `--ema`): it begins with the first weights, and after each update is a share of itself
//! and the rest of the new ones. Where that code moves it after an update that was skipped for an overflow, too, this one does not.

use burn::module::Module;
use zoo_models::parameters::{self, ParameterError, ParameterValues};

use crate::flat::Flat;

/// Means of all parameters of a model, running statistics among them, in the model's order.
#[derive(Debug)]
pub struct Average {
    keep: f64,
    means: Vec<Flat>,
}

impl Average {
    /// Of a model's weights as they are; `keep` is what stays of the mean.
    pub fn new<M: Module>(model: M, keep: f64) -> (M, Self) {
        let mut means = Vec::new();
        let model = parameters::update(model, |_, weight| {
            means.push(Flat::from_tensor(weight.clone()));
            weight
        });
        (model, Self { keep, means })
    }

    /// Moves the means: m = keep m + (1 - keep) w. Nothing is read from a device.
    pub fn follow<M: Module>(&mut self, model: M) -> M {
        let (keep, rest) = (self.keep as f32, (1.0 - self.keep) as f32);
        let mut means = self.means.iter_mut();
        parameters::update(model, |_, weight| {
            if let Some(mean) = means.next() {
                let old = std::mem::replace(mean, Flat::Host(Vec::new()));
                *mean = old.scaled(keep).plus_scaled(&Flat::from_tensor(weight.clone()), rest);
            }
            weight
        })
    }

    /// The means on the host, by the paths of the model.
    pub fn export<M: Module>(&self, model: &M) -> Vec<ParameterValues> {
        let places = parameters::shapes(model).into_iter().zip(&self.means);
        places.map(|((path, shape), mean)| ParameterValues { path, shape, values: mean.to_vec() }).collect()
    }

    /// Takes up saved means.
    ///
    /// # Errors
    /// They are not of this model.
    pub fn import<M: Module>(
        &mut self,
        model: M,
        values: Vec<ParameterValues>,
    ) -> Result<(), ParameterError> {
        let (_, saved) = Self::new(parameters::import(model, values)?, self.keep);
        self.means = saved.means;
        Ok(())
    }

    /// A model outside autodiff with the means for weights.
    pub fn model<M: Module>(&self, model: M) -> M {
        let mut means = self.means.iter();
        parameters::update(model, |_, weight| {
            let device = weight.device();
            means.next().map_or(weight, |mean| mean.clone().into_tensor(&device))
        })
    }
}
