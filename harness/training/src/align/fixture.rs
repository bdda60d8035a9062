//! Files of small models that another framework computed: `tests/fixtures/*.safetensors`.
//!
//! The metadata's key `zoo` describes the cases as JSON. A tensor of a case is named `CASE/KEY`.
//! Integers are I64; everything else is F32. `weights/PATH` is a parameter of the model.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use zoo_models::parameters::{self, ParameterValues};

use crate::flat::Flat;
use crate::optimizer::{Gradient, Optimizer, Place};

/// Reads the description of a file.
///
/// # Errors
/// A description of the first problem of the file.
pub(crate) fn described<D: DeserializeOwned>(bytes: &[u8]) -> Result<D, String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let described = metadata.metadata().as_ref().and_then(|metadata| metadata.get("zoo"));
    let described = described.ok_or("the metadata has no key `zoo`")?;
    serde_json::from_str(described).map_err(|error| error.to_string())
}

/// The tensors of one case.
#[derive(Debug)]
pub(crate) struct Fixture {
    name: String,
    numbers: BTreeMap<String, Vec<u32>>,
    values: BTreeMap<String, Vec<f32>>,
}

impl Fixture {
    /// Reads the tensors of a case. A negative integer becomes the `u32` with its lowest bits.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(bytes: &[u8], name: &str) -> Result<Self, String> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let mut read =
            Self { name: name.to_owned(), numbers: BTreeMap::default(), values: BTreeMap::default() };
        for (key, view) in file.tensors() {
            let Some(key) = key.strip_prefix(name).and_then(|key| key.strip_prefix('/')) else { continue };
            if view.dtype() == Dtype::I64 {
                let numbers = view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as u32);
                read.numbers.insert(key.to_owned(), numbers.collect());
            } else {
                let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                read.values.insert(key.to_owned(), values.collect());
            }
        }
        Ok(read)
    }

    /// Name of the case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Keys of all values.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The integers of a key.
    ///
    /// # Errors
    /// If the file lacks them.
    pub fn numbers(&self, key: &str) -> Result<&[u32], String> {
        self.numbers.get(key).map(Vec::as_slice).ok_or_else(|| self.missing(key))
    }

    /// The values of a key.
    ///
    /// # Errors
    /// If the file lacks them.
    pub fn values(&self, key: &str) -> Result<&[f32], String> {
        self.values.get(key).map(Vec::as_slice).ok_or_else(|| self.missing(key))
    }

    /// Whether the file has values of a key.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The largest value of the keys for which `is_of` holds, and at least 0.001.
    pub fn largest(&self, is_of: impl Fn(&str) -> bool) -> f64 {
        let values = self.values.iter().filter(|(key, _)| is_of(key)).flat_map(|(_, values)| values);
        values.fold(1e-3, |most, x| most.max(f64::from(x.abs())))
    }

    /// The model with the file's weights. Parameters for which `is_kept` holds are not in the file.
    ///
    /// # Errors
    /// If weights are missing or have another number of values.
    pub fn model<M: Module>(&self, fresh: M, is_kept: impl Fn(&str) -> bool) -> Result<M, String> {
        let weights = parameters::export(&fresh).into_iter().map(|mut weight| {
            if is_kept(&weight.path) {
                return Ok(weight);
            }
            let given = self.values(&format!("weights/{}", weight.path))?;
            if given.len() != weight.values.len() {
                return Err(format!("{}/weights/{} is not {:?}", self.name, weight.path, weight.shape));
            }
            weight.values = given.to_vec();
            Ok(weight)
        });
        let weights = weights.collect::<Result<_, _>>()?;
        parameters::import(fresh, weights).map_err(|error| error.to_string())
    }

    /// A case with these values, for tests.
    #[cfg(test)]
    pub fn of<const N: usize>(
        name: &str,
        values: impl IntoIterator<Item = (&'static str, [f32; N])>,
    ) -> Self {
        let values = values.into_iter().map(|(key, values)| (key.to_owned(), values.to_vec())).collect();
        Self { name: name.to_owned(), numbers: BTreeMap::default(), values }
    }

    /// The largest difference of computed values from those of the file, relative to the largest of the
    /// file.
    ///
    /// # Errors
    /// If the file lacks the values or has another number of them.
    pub fn farthest(&self, key: &str, found: &[f32]) -> Result<f64, String> {
        let apart = self.apart(key, found, self.largest(|other| other == key))?;
        Ok(apart.into_iter().fold(0.0, f64::max))
    }

    /// Compares computed values with those of the file, relative to the largest of the file.
    ///
    /// # Errors
    /// A difference of `limit` or more.
    pub fn compare(&self, key: &str, found: &[f32], limit: f64) -> Result<(), String> {
        self.compare_by(key, found, limit, self.largest(|other| other == key))
    }

    /// The same relative to `size`.
    ///
    /// # Errors
    /// A difference of `limit` or more.
    pub fn compare_by(&self, key: &str, found: &[f32], limit: f64, size: f64) -> Result<(), String> {
        let apart = self.apart(key, found, size)?;
        // `find` instead of a maximum, because a maximum ignores NaN.
        match apart.into_iter().find(|apart| apart.is_nan() || *apart >= limit) {
            Some(apart) => Err(self.differs(key, apart, limit)),
            None => Ok(()),
        }
    }

    /// The same for nine in ten of the values.
    ///
    /// # Errors
    /// A difference of `limit` or more.
    pub fn compare_most(&self, key: &str, found: &[f32], limit: f64, size: f64) -> Result<(), String> {
        let mut apart = self.apart(key, found, size)?;
        apart.sort_by(f64::total_cmp);
        match apart.get((0.9 * apart.len().saturating_sub(1) as f64).round() as usize) {
            Some(&apart) if apart.is_nan() || apart >= limit => {
                Err(format!("one in ten of {}", self.differs(key, apart, limit)))
            }
            _ => Ok(()),
        }
    }

    /// Differences of computed values from those of the file, relative to `size`.
    fn apart(&self, key: &str, found: &[f32], size: f64) -> Result<Vec<f64>, String> {
        let (name, expected) = (&self.name, self.values(key)?);
        if found.len() != expected.len() {
            let (found, expected) = (found.len(), expected.len());
            return Err(format!("{name}/{key} has {found} numbers where {expected} are due"));
        }
        Ok(found.iter().zip(expected).map(|(a, b)| f64::from((a - b).abs()) / size).collect())
    }

    fn differs(&self, key: &str, apart: f64, limit: f64) -> String {
        format!("{}/{key} differs by {apart:.1e}, {limit:.0e} is allowed", self.name)
    }

    fn missing(&self, key: &str) -> String {
        format!("{}/{key} is missing", self.name)
    }
}

/// A weight after one step of an update rule. `gradient` has the values of the weight's gradient.
pub(crate) fn stepped(
    rule: &mut dyn Optimizer,
    lr: f64,
    weight: ParameterValues,
    gradient: Tensor<1>,
    device: &Device,
) -> ParameterValues {
    let ParameterValues { path, shape, values } = weight;
    let count = values.len();
    let value = Tensor::<1>::from_data(TensorData::new(values, [count]), device);
    let place = Place { path: &path, shape: &shape, embedding: false };
    let gradient = Gradient::new(Flat::from_tensor(gradient), 1.0);
    let values = rule.step(place, lr, Flat::from_tensor(value), gradient).to_vec();
    ParameterValues { path, shape, values }
}
