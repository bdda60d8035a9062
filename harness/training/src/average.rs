//! Exponential mean of the weights (NVIDIA's `--ema`). It starts with the first weights; after each
//! update it is a share of itself plus the rest of the new weights. NVIDIA's code also moves the
//! mean after an update that was skipped for an overflow; this one does not.

use burn::module::Module;
use zoo_models::parameters::{self, ParameterError, ParameterValues};

use crate::flat::Flat;

/// Means of all parameters of a model, including running statistics, in the model's order.
#[derive(Debug)]
pub struct Average {
    keep: f64,
    means: Vec<Flat>,
}

impl Average {
    /// Starts with a model's weights. `keep` is the share of the mean that each update keeps.
    pub fn new<M: Module>(model: M, keep: f64) -> (M, Self) {
        let mut means = Vec::new();
        let model = parameters::update(model, |_, weight| {
            means.push(Flat::from_tensor(weight.clone()));
            weight
        });
        (model, Self { keep, means })
    }

    /// Updates the means: m = keep m + (1 - keep) w. Nothing is read from the device.
    pub fn follow<M: Module>(&mut self, model: M) -> M {
        let (keep, rest) = (self.keep as f32, (1.0 - self.keep) as f32);
        let mut means = self.means.iter_mut();
        parameters::update(model, |_, weight| {
            let Some(mean) = means.next() else { return weight };
            let device = weight.device();
            // Not copied: the module holds the only reference.
            let weight = Flat::from_tensor(weight);
            let old = std::mem::replace(mean, Flat::Host(Vec::new()));
            *mean = old.moved(keep, &weight, rest);
            weight.into_tensor(&device)
        })
    }

    /// Copies the means to the host, by the paths of the model.
    pub fn export<M: Module>(&self, model: &M) -> Vec<ParameterValues> {
        let places = parameters::shapes(model).into_iter().zip(&self.means);
        places.map(|((path, shape), mean)| ParameterValues { path, shape, values: mean.to_vec() }).collect()
    }

    /// Restores saved means.
    ///
    /// # Errors
    /// If they do not fit the model.
    pub fn import<M: Module>(
        &mut self,
        model: M,
        values: Vec<ParameterValues>,
    ) -> Result<(), ParameterError> {
        let (_, saved) = Self::new(parameters::import(model, values)?, self.keep);
        self.means = saved.means;
        Ok(())
    }

    /// A model outside autodiff whose weights are the means.
    pub fn model<M: Module>(&self, model: M) -> M {
        let mut means = self.means.iter();
        parameters::update(model, |_, weight| {
            let device = weight.device();
            means.next().map_or(weight, |mean| mean.clone().into_tensor(&device))
        })
    }
}
