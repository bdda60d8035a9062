//! Exponential mean of the weights (NVIDIA's `--ema`). It starts with the first weights; after each
//! update it is a share of itself plus the rest of the new weights. NVIDIA's code also moves the
//! mean after an update that was skipped for an overflow; this one does not.

use burn::module::Module;
use zoo_models::parameters::{self, ParameterError, ParameterValues};
use zoo_recipes::begins_with;

use crate::error::TrainError;
use crate::flat::Flat;
use crate::groups::check_names;

/// Means of the parameters of a model, including running statistics, in the model's order.
#[derive(Debug)]
pub struct Average {
    keep: f64,
    /// Beginnings of the paths of the parameters that are averaged; empty for all.
    of: Vec<String>,
    /// `None` for a parameter that is not averaged.
    means: Vec<Option<Flat>>,
}

impl Average {
    /// Starts with a model's weights. `keep` is the share of the mean that each update keeps; `of`
    /// names the parameters that are averaged, none for all.
    ///
    /// # Errors
    /// A name does not begin the path of any parameter.
    pub fn new<M: Module>(model: M, keep: f64, of: &[String]) -> Result<(M, Self), TrainError> {
        check_names("train.checkpoint.ema_of", of, &parameters::shapes(&model))?;
        let mut average = Self { keep, of: of.to_vec(), means: Vec::new() };
        let model = average.begin(model);
        Ok((model, average))
    }

    /// Takes a model's weights as the means.
    fn begin<M: Module>(&mut self, model: M) -> M {
        let mut means = Vec::new();
        let model = parameters::update(model, |path, weight| {
            let averaged = self.of.is_empty() || self.of.iter().any(|name| begins_with(path, name));
            means.push(averaged.then(|| Flat::from_tensor(weight.clone())));
            weight
        });
        self.means = means;
        model
    }

    /// Updates the means: m = keep m + (1 - keep) w. Nothing is read from the device.
    pub fn follow<M: Module>(&mut self, model: M) -> M {
        let (keep, rest) = (self.keep as f32, (1.0 - self.keep) as f32);
        let mut means = self.means.iter_mut();
        parameters::update(model, |_, weight| {
            let Some(Some(mean)) = means.next() else { return weight };
            let device = weight.device();
            // Not copied: the module holds the only reference.
            let weight = Flat::from_tensor(weight);
            let old = std::mem::replace(mean, Flat::Host(Vec::new()));
            *mean = old.moved(keep, &weight, rest);
            weight.into_tensor(&device)
        })
    }

    /// Copies the means to the host, by the paths of the model; the weights of parameters that are
    /// not averaged.
    pub fn export<M: Module>(&self, model: &M) -> Vec<ParameterValues> {
        let mut weights = match self.means.iter().all(Option::is_some) {
            true => Vec::new(),
            false => parameters::export(model),
        }
        .into_iter();
        let places = parameters::shapes(model).into_iter().zip(&self.means);
        places
            .filter_map(|((path, shape), mean)| {
                let weight = weights.next();
                match mean {
                    Some(mean) => Some(ParameterValues { path, shape, values: mean.to_vec() }),
                    None => weight,
                }
            })
            .collect()
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
        self.begin(parameters::import(model, values)?);
        Ok(())
    }

    /// A model outside autodiff whose averaged weights are the means.
    pub fn model<M: Module>(&self, model: M) -> M {
        let mut means = self.means.iter();
        parameters::update(model, |_, weight| {
            let device = weight.device();
            means.next().and_then(Option::as_ref).map_or(weight, |mean| mean.clone().into_tensor(&device))
        })
    }
}
