//! Comparison of classifiers of texts with the same models in PyTorch:
//! `tests/fixtures/text_classifier.safetensors`, and those with the layers of a language model:
//! `tests/fixtures/transfer.safetensors`, whose padding is -1.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::Compute;
use zoo_models::tasks::text_classification::{TextBatch, TextLoss, TextModel, scores};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::OptimizerSpec;
use zoo_recipes::tasks::text_classification::{NO_WORD, TextClassifierSpec, TextLayerSpec};

use crate::flat::Flat;
use crate::optimizer::{Gradient, Place, optimizer};

/// Maximum error of a tensor, relative to its largest value. The reference is computed in FP64;
/// ours are FP32 sums of some dozens of products, through up to twelve steps of an LSTM.
const LIMIT: f64 = 1e-5;

/// One model with its texts, and PyTorch's results. Everything is computed in evaluation mode, so
/// dropout does nothing.
#[derive(Debug)]
pub struct TextCase {
    /// Name of the case in the file.
    pub name: String,
    /// The layers.
    pub spec: TextClassifierSpec,
    rows: usize,
    positions: u32,
    optimizer: OptimizerSpec,
    rate: f64,
    batch: TextBatch,
    tensors: BTreeMap<String, Vec<f32>>,
}

#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
    rows: usize,
    positions: u32,
    optimizer: OptimizerSpec,
    learning_rate: f64,
}

#[derive(Deserialize)]
struct DescribedCase {
    layer: Vec<TextLayerSpec>,
}

impl TextCase {
    /// Reads all cases from the bytes of the file.
    ///
    /// # Errors
    /// A description of the first problem of the file.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| text(&e))?;
        let described = metadata.metadata().as_ref().and_then(|m| m.get("zoo"));
        let described = described.ok_or("the metadata has no key `zoo`")?;
        let Described { cases, rows, positions, optimizer, learning_rate } =
            serde_json::from_str(described).map_err(|e| text(&e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| text(&e))?;
        let case = |(name, DescribedCase { layer }): (String, DescribedCase)| {
            let spec = TextClassifierSpec { layer };
            spec.shapes(positions).map_err(|problem| format!("{name}: {problem}"))?;
            let (mut tensors, mut numbers) = (BTreeMap::new(), BTreeMap::new());
            for (key, view) in file.tensors() {
                let Some(key) = key.strip_prefix(&format!("{name}/")) else { continue };
                if view.dtype() == Dtype::I64 {
                    let values = view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as u32);
                    numbers.insert(key.to_owned(), values.collect::<Vec<u32>>());
                } else {
                    let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                    tensors.insert(key.to_owned(), values.collect::<Vec<_>>());
                }
            }
            let [ids, labels] = ["ids", "labels"].map(|key| numbers.remove(key).unwrap_or_default());
            let inside = ids.iter().all(|id| *id == NO_WORD || (*id as usize) < rows);
            if labels.is_empty() || ids.len() != labels.len() * positions as usize || !inside {
                return Err(format!("{name}: {} numbers for {} texts", ids.len(), labels.len()));
            }
            let batch = TextBatch { ids, labels, fold: 0 };
            let optimizer = optimizer.clone();
            Ok(Self { name, spec, rows, positions, optimizer, rate: learning_rate, batch, tensors })
        };
        cases.into_iter().map(case).collect()
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If the spec does not fit the texts, or if weights are missing or have another shape.
    pub fn model(&self, device: &Device) -> Result<TextModel, String> {
        self.spec.shapes(self.positions).map_err(|problem| format!("{}: {problem}", self.name))?;
        let model = TextModel::new(&self.spec, [self.positions as usize, self.rows], 1, 1, device);
        let weights = parameters::shapes(&model).into_iter().map(|(path, shape)| {
            let values = self.given(&format!("weights/{path}"))?.to_vec();
            match values.len() == shape.iter().product::<usize>() {
                true => Ok(ParameterValues { path, shape, values }),
                false => Err(format!("{}/weights/{path} is not {shape:?}", self.name)),
            }
        });
        let weights = weights.collect::<Result<_, _>>()?;
        parameters::import(model, weights).map_err(|error| error.to_string())
    }

    /// Logits of all texts in a compute type.
    ///
    /// # Errors
    /// As for [`Self::model`].
    pub fn logits(&self, device: &Device, compute: Compute) -> Result<Vec<f32>, String> {
        let model = self.model(device)?;
        Ok(scores(&model, &self.batch, &mut Pass::evaluation(compute)).concat())
    }

    /// Computes the texts in FP32 and updates the weights once. Logits, loss, number of right
    /// answers, every gradient and the update, with its row norms, must equal PyTorch's. Returns
    /// the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let model = self.model(&device)?;
        let mut compared = 0;
        let mut compare = |key: &str, found: &[f32]| {
            compared += 1;
            self.compare(key, found)
        };
        compare("logits", &self.logits(&device, Compute::FP32)?)?;
        let loss = TextLoss::default();
        let counts = loss.counts(&self.batch);
        let terms = loss.terms(&model, &self.batch, &mut Pass::evaluation(Compute::FP32));
        for (term, (name, _)) in terms.iter().zip(&counts) {
            compare(name, &host_values(term.sum.clone().inner()))?;
        }
        let mean = terms.into_iter().zip(counts).next().map(|(term, (_, count))| term.sum / count);
        let mut gradients = mean.ok_or("a loss has terms")?.backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        let mut rule = optimizer(&self.optimizer);
        rule.begin();
        let inner = device.clone().inner();
        let (mut updated, values) = (Vec::new(), parameters::export(&model));
        for (ParameterValues { path, shape, values }, gradient) in values.into_iter().zip(taken) {
            let gradient = gradient.ok_or_else(|| format!("{}: {path} has no gradient", self.name))?;
            compare(&format!("gradients/{path}"), &host_values(gradient.clone()))?;
            let n = values.len();
            let value = Tensor::<1>::from_data(TensorData::new(values, [n]), &inner);
            let place = Place { path: &path, shape: &shape, embedding: false };
            let step = Gradient::new(Flat::from_tensor(gradient), 1.0);
            let values = rule.step(place, self.rate, Flat::from_tensor(value), step).to_vec();
            updated.push(ParameterValues { path, shape, values });
        }
        let model = parameters::import(model, updated).map_err(|error| error.to_string())?;
        for ParameterValues { path, values, .. } in parameters::export(&loss.commit(model)) {
            compare(&format!("updated/{path}"), &values)?;
        }
        let given = self.tensors.keys().filter(|key| !key.starts_with("weights/")).count();
        match compared == given {
            true => Ok(compared),
            false => Err(format!("{}: {compared} tensors were computed, {given} are given", self.name)),
        }
    }

    fn given(&self, key: &str) -> Result<&[f32], String> {
        let values = self.tensors.get(key).map(Vec::as_slice);
        values.ok_or_else(|| format!("{}/{key} is missing", self.name))
    }

    fn compare(&self, key: &str, found: &[f32]) -> Result<(), String> {
        let expected = self.given(key)?;
        if found.len() != expected.len() {
            let (found, expected) = (found.len(), expected.len());
            return Err(format!("{}/{key} has {found} numbers where {expected} are due", self.name));
        }
        let size = expected.iter().fold(1e-3f64, |most, x| most.max(f64::from(x.abs())));
        let apart = found.iter().zip(expected).map(|(a, b)| f64::from((a - b).abs()) / size);
        // `find` instead of a maximum, because a maximum ignores NaN.
        match apart.into_iter().find(|apart| apart.is_nan() || *apart >= LIMIT) {
            Some(apart) => Err(format!("{}/{key} differs by {apart:.1e}, {LIMIT:.0e} is allowed", self.name)),
            None => Ok(()),
        }
    }
}
