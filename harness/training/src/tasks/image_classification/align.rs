//! Comparison of classifiers with the same models in PyTorch:
//! `tests/fixtures/classifier.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::{Device, FloatDType, Tensor};
use serde::Deserialize;
use zoo_models::ops::{SmoothedTargets, cross_entropy};
use zoo_models::parameters::{self, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::image_classification::{Classifier, ClassifierLoss, PictureBatch};
use zoo_models::{Objective, Pass};
use zoo_recipes::tasks::image_classification::{ClassifierLossSpec, ClassifierSpec};
use zoo_recipes::{OptimizerSpec, Smoothing};

use crate::align::{Comparison, Fixture, described, stepped};
use crate::optimizer::optimizer;

/// Maximum error of a tensor, relative to its largest value. The reference is computed in FP64;
/// ours are FP32 sums of some dozens of products, through up to four layers with weights.
const LIMIT: f64 = 5e-6;
/// The same with FP16 products: one unit of the fraction.
const HALF_LIMIT: f64 = 1e-3;

/// One model with its pictures, and PyTorch's results. Everything is computed in evaluation mode,
/// so dropout does nothing.
#[derive(Debug)]
pub struct ClassifierCase {
    /// Name of the case in the file.
    pub name: String,
    pub spec: ClassifierSpec,
    /// Height, width and channels of a picture.
    pub size: [usize; 3],
    optimizer: OptimizerSpec,
    rate: f64,
    labels: Vec<u32>,
    fixture: Fixture,
}

#[derive(Deserialize)]
struct Described {
    cases: BTreeMap<String, DescribedCase>,
    optimizer: OptimizerSpec,
    learning_rate: f64,
}

#[derive(Deserialize)]
struct DescribedCase {
    size: [usize; 3],
    #[serde(flatten)]
    spec: ClassifierSpec,
}

impl ClassifierCase {
    /// Reads all cases from the bytes of the file.
    ///
    /// # Errors
    /// A description of the first problem of the file.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let Described { cases, optimizer, learning_rate } = described(bytes)?;
        let case = |(name, DescribedCase { size, spec }): (String, DescribedCase)| {
            let [height, width, channels] = size.map(|n| n as u32);
            spec.shapes([height, width, channels]).map_err(|problem| format!("{name}: {problem}"))?;
            let fixture = Fixture::read(bytes, &name)?;
            let labels = fixture.numbers("labels")?.to_vec();
            let pixels = fixture.values("pixels")?.len();
            if labels.is_empty() || pixels != labels.len() * size.iter().product::<usize>() {
                return Err(format!("{name}: {pixels} pixels for {} pictures", labels.len()));
            }
            Ok(Self { name, spec, size, optimizer: optimizer.clone(), rate: learning_rate, labels, fixture })
        };
        cases.into_iter().map(case).collect()
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If the spec does not fit the pictures, or if weights are missing or have another shape.
    pub fn model(&self, device: &Device) -> Result<Classifier, String> {
        let [height, width, channels] = self.size.map(|n| n as u32);
        let shapes = self.spec.shapes([height, width, channels]);
        shapes.map_err(|problem| format!("{}: {problem}", self.name))?;
        let model = Classifier::new(&self.spec, self.size, 1, device);
        self.fixture.model(model, |_| false)
    }

    /// The pictures of the case.
    ///
    /// # Errors
    /// If the file lacks them.
    pub fn batch(&self) -> Result<PictureBatch, String> {
        let pixels = self.fixture.values("pixels")?.to_vec();
        Ok(PictureBatch { pixels, size: self.size, labels: self.labels.clone() })
    }

    /// Computes the pictures and updates the weights once. Logits, loss, number of right answers, every
    /// gradient, also those of the pixels, and the update must equal PyTorch's; without the update in
    /// half precision. Returns the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device, compute: Compute) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let (model, batch) = (self.model(&device)?, self.batch()?);
        let mut all = Comparison::of(&self.fixture, compute);
        let pass = || Pass::evaluation(compute);
        let pixels = batch.pixels(&device).require_grad();
        let logits = to_f32(model.forward(pixels.clone(), &mut pass()));
        all.compare("logits", &host_values(logits.clone().inner()), LIMIT)?;
        let loss = ClassifierLoss::new(&ClassifierLossSpec::CrossEntropy {});
        let counts = loss.counts(&batch);
        let terms = loss.terms(&model, &batch, &mut pass());
        for (term, (name, _)) in terms.iter().zip(&counts) {
            all.compare(name, &host_values(term.sum.clone().inner()), LIMIT)?;
        }
        let mean = terms.into_iter().zip(counts).next().map(|(term, (_, count))| term.sum / count);
        let mut gradients = all.scaled(mean.ok_or("a loss has terms")?).backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        all.compare("pixel_gradients", &self.pixel_gradients(pixels, logits)?, LIMIT)?;
        let mut rule = optimizer(&self.optimizer);
        rule.begin();
        let inner = device.inner();
        for (weight, gradient) in parameters::export(&model).into_iter().zip(taken) {
            let path = &weight.path;
            let gradient = gradient.ok_or_else(|| format!("{}: {path} has no gradient", self.name))?;
            let gradient = all.unscaled(gradient);
            all.compare(&format!("gradients/{path}"), &host_values(gradient.clone()), LIMIT)?;
            let updated = stepped(rule.as_mut(), self.rate, weight, gradient, &inner);
            all.compare(&format!("updated/{}", updated.path), &updated.values, LIMIT)?;
        }
        let is_input = |key: &str| ["weights/", "half/"].iter().any(|part| key.starts_with(part));
        all.finish(|key| !is_input(key) && key != "pixels")
    }

    /// Computes the pictures with FP16 products. Logits, loss and gradients must be near those of a
    /// reference that rounds at the same places. Returns how many numbers are the same, and how
    /// many were compared.
    ///
    /// The reference's sums are FP64 and ours FP32; both are rounded once. If a sum is close to the
    /// middle between two FP16 values, the results differ by one unit, and later layers differ.
    ///
    /// # Errors
    /// The first tensor that differs by more than a unit of its largest value, and by how much.
    pub fn follow_half(&self, device: &Device) -> Result<[usize; 2], String> {
        let device = device.clone().autodiff();
        let (model, batch) = (self.model(&device)?, self.batch()?);
        let [mut same, mut all] = [0; 2];
        let mut compare = |key: &str, found: &[f32]| {
            let key = format!("half/{key}");
            all += found.len();
            same += self.fixture.values(&key)?.iter().zip(found).filter(|(a, b)| a == b).count();
            self.fixture.compare(&key, found, HALF_LIMIT)
        };
        let pass = || Pass::evaluation(Compute(FloatDType::F16));
        let logits = to_f32(model.forward(batch.pixels(&device), &mut pass()));
        compare("logits", &host_values(logits.inner()))?;
        let loss = ClassifierLoss::new(&ClassifierLossSpec::CrossEntropy {});
        let loss = loss.terms(&model, &batch, &mut pass()).swap_remove(0).sum;
        let mut gradients = (loss.clone() / self.labels.len() as f64).backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        for ((path, _), gradient) in parameters::shapes(&model).into_iter().zip(taken) {
            let gradient = gradient.ok_or_else(|| format!("{}: {path} has no gradient", self.name))?;
            compare(&format!("gradients/{path}"), &host_values(gradient))?;
        }
        // The loss is FP32: it is near, but not the same.
        self.fixture.compare("half/loss", &host_values(loss.inner()), HALF_LIMIT)?;
        Ok([same, all])
    }

    /// Gradients of tracked pixels, of the mean cross-entropy of their logits.
    fn pixel_gradients(&self, pixels: Tensor<4>, logits: Tensor<2>) -> Result<Vec<f32>, String> {
        let [pictures, classes] = logits.dims();
        let targets = SmoothedTargets::new(&self.labels, classes, 0.0, Smoothing::AllClasses);
        let gradients = (cross_entropy(logits, &targets).0 / pictures as f64).backward();
        let gradient = pixels.grad(&gradients);
        gradient.map(host_values).ok_or_else(|| format!("{}: the pixels have no gradient", self.name))
    }
}
