//! Comparison of classifiers of texts with the same models in PyTorch:
//! `tests/fixtures/text_classifier.safetensors`, and those with the layers of a language model:
//! `tests/fixtures/transfer.safetensors`, whose padding is -1.

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::Compute;
use zoo_models::tasks::text_classification::{TextBatch, TextLoss, TextModel, scores};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::OptimizerSpec;
use zoo_recipes::tasks::text_classification::{NO_WORD, TextClassifierSpec, TextLayerSpec};

use crate::align::{Comparison, Fixture, described, stepped};
use crate::optimizer::optimizer;

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
    fixture: Fixture,
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
        let Described { cases, rows, positions, optimizer, learning_rate } = described(bytes)?;
        let case = |(name, DescribedCase { layer }): (String, DescribedCase)| {
            let spec = TextClassifierSpec { layer };
            spec.shapes(positions).map_err(|problem| format!("{name}: {problem}"))?;
            let fixture = Fixture::read(bytes, &name)?;
            let (ids, labels) = (fixture.numbers("ids")?.to_vec(), fixture.numbers("labels")?.to_vec());
            let inside = ids.iter().all(|id| *id == NO_WORD || (*id as usize) < rows);
            if labels.is_empty() || ids.len() != labels.len() * positions as usize || !inside {
                return Err(format!("{name}: {} numbers for {} texts", ids.len(), labels.len()));
            }
            let batch = TextBatch { ids, labels, fold: 0 };
            let optimizer = optimizer.clone();
            Ok(Self { name, spec, rows, positions, optimizer, rate: learning_rate, batch, fixture })
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
        self.fixture.model(model, |_| false)
    }

    /// Logits of all texts in a compute type.
    ///
    /// # Errors
    /// As for [`Self::model`].
    pub fn logits(&self, device: &Device, compute: Compute) -> Result<Vec<f32>, String> {
        let model = self.model(device)?;
        Ok(scores(&model, &self.batch, &mut Pass::evaluation(compute)).concat())
    }

    /// Computes the texts and updates the weights once. Logits, loss, number of right answers, every
    /// gradient and the update, with its row norms, must equal PyTorch's; without the update in half
    /// precision. Returns the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device, compute: Compute) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let model = self.model(&device)?;
        let mut all = Comparison::of(&self.fixture, compute);
        all.compare("logits", &self.logits(&device, compute)?, LIMIT)?;
        let loss = TextLoss::default();
        let counts = loss.counts(&self.batch);
        let terms = loss.terms(&model, &self.batch, &mut Pass::evaluation(compute));
        for (term, (name, _)) in terms.iter().zip(&counts) {
            all.compare(name, &host_values(term.sum.clone().inner()), LIMIT)?;
        }
        let mean = terms.into_iter().zip(counts).next().map(|(term, (_, count))| term.sum / count);
        let mut gradients = all.scaled(mean.ok_or("a loss has terms")?).backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        let mut rule = optimizer(&self.optimizer);
        rule.begin();
        let inner = device.clone().inner();
        let mut updated = Vec::new();
        for (weight, gradient) in parameters::export(&model).into_iter().zip(taken) {
            let path = &weight.path;
            let gradient = gradient.ok_or_else(|| format!("{}: {path} has no gradient", self.name))?;
            let gradient = all.unscaled(gradient);
            all.compare(&format!("gradients/{path}"), &host_values(gradient.clone()), LIMIT)?;
            updated.push(stepped(rule.as_mut(), self.rate, weight, gradient, &inner));
        }
        let model = parameters::import(model, updated).map_err(|error| error.to_string())?;
        for ParameterValues { path, values, .. } in parameters::export(&loss.commit(model)) {
            all.compare(&format!("updated/{path}"), &values, LIMIT)?;
        }
        all.finish(|key| !key.starts_with("weights/"))
    }
}
