//! Comparison of synthesisers with the same models in PyTorch:
//! `tests/fixtures/tacotron.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_synthesis::{FrameWidth, Limits, SpectrogramLoss, SynthesisBatch, Synthesiser};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::OptimizerSpec;
use zoo_recipes::tasks::speech_synthesis::{SpectrogramLossSpec, SynthesisModelSpec};

use crate::flat::Flat;
use crate::optimizer::{Gradient, Place, optimizer};

/// Maximum error of a tensor, relative to its largest value. The reference is computed in FP64;
/// ours are FP32 sums of some dozens of products, through a dozen steps of a recurrence and up to
/// five convolutions with their norms.
const LIMIT: f64 = 2e-5;
/// Maximum error of gradients, which pass through the model twice.
const GRADIENT_LIMIT: f64 = 1e-4;
/// Maximum error of an update, relative to the learning rate, which limits each step.
const UPDATE_LIMIT: f64 = 1e-2;

/// One system with a batch, and PyTorch's results.
#[derive(Debug)]
pub struct SynthesisCase {
    /// Name of the case in the file.
    pub name: String,
    pub model: SynthesisModelSpec,
    pub loss: SpectrogramLossSpec,
    described: Described,
    threshold: f64,
    tensors: BTreeMap<String, Vec<f32>>,
    counts: BTreeMap<String, Vec<usize>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Described {
    symbols: usize,
    mels: usize,
    bins: usize,
    optimizer: OptimizerSpec,
    rate: f64,
    /// Seed and step of the training pass.
    pass: [u64; 2],
    most_frames: u32,
    #[serde(default)]
    cases: BTreeMap<String, DescribedCase>,
}

#[derive(Debug, Clone, Deserialize)]
struct DescribedCase {
    model: SynthesisModelSpec,
    loss: SpectrogramLossSpec,
    threshold: f64,
}

impl SynthesisCase {
    /// Reads all cases from the bytes of the file.
    ///
    /// # Errors
    /// A description of the first problem of the file.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| text(&e))?;
        let described = metadata.metadata().as_ref().and_then(|m| m.get("zoo"));
        let described = described.ok_or("the metadata has no key `zoo`")?;
        let mut described: Described = serde_json::from_str(described).map_err(|e| text(&e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| text(&e))?;
        let cases = std::mem::take(&mut described.cases);
        let case = |(name, case): (String, DescribedCase)| {
            let (mut tensors, mut counts) = (BTreeMap::new(), BTreeMap::new());
            for (key, view) in file.tensors() {
                let Some(key) = key.strip_prefix(&format!("{name}/")) else { continue };
                if view.dtype() == Dtype::I64 {
                    let values = view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as usize);
                    counts.insert(key.to_owned(), values.collect());
                } else {
                    let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                    tensors.insert(key.to_owned(), values.collect());
                }
            }
            let DescribedCase { model, loss, threshold } = case;
            Self { name, model, loss, described: described.clone(), threshold, tensors, counts }
        };
        Ok(cases.into_iter().map(case).collect())
    }

    fn bins(&self) -> usize {
        let has = self.tensors.contains_key("out/magnitudes");
        if has { self.described.bins } else { 0 }
    }

    fn count(&self, key: &str) -> Result<&[usize], String> {
        self.counts.get(key).map(Vec::as_slice).ok_or_else(|| format!("{}/{key} is missing", self.name))
    }

    fn tensor(&self, key: &str) -> Result<&[f32], String> {
        self.tensors.get(key).map(Vec::as_slice).ok_or_else(|| format!("{}/{key} is missing", self.name))
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If weights are missing or have another shape.
    pub fn synthesiser(&self, device: &Device) -> Result<Synthesiser, String> {
        let width = FrameWidth { mels: self.described.mels, bins: self.bins() };
        let model = Synthesiser::new(&self.model, self.described.symbols, width, 1, device);
        let weights = parameters::shapes(&model).into_iter().map(|(path, shape)| {
            let values = self.tensor(&format!("weights/{path}"))?.to_vec();
            match values.len() == shape.iter().product::<usize>() {
                true => Ok(ParameterValues { path, shape, values }),
                false => Err(format!("{}/weights/{path} is not {shape:?}", self.name)),
            }
        });
        let weights = weights.collect::<Result<_, _>>()?;
        parameters::import(model, weights).map_err(|error| error.to_string())
    }

    /// The texts as symbol ids.
    ///
    /// # Errors
    /// If the file lacks them.
    pub fn texts(&self) -> Result<Vec<Vec<u32>>, String> {
        let mut rest = self.count("symbols")?.iter().map(|&symbol| symbol as u32);
        let lengths = self.count("symbol_lengths")?;
        Ok(lengths.iter().map(|&n| rest.by_ref().take(n).collect()).collect())
    }

    /// Stopping rule of the free-running comparison.
    pub fn limits(&self) -> Limits {
        Limits { threshold: self.threshold, factor: 0.0, extra: self.described.most_frames }
    }

    fn batch(&self) -> Result<SynthesisBatch, String> {
        Ok(SynthesisBatch {
            symbols: self.texts()?,
            frames: self.tensor("frames")?.to_vec(),
            width: self.described.mels + self.bins(),
            lengths: self.count("lengths")?.to_vec(),
            stops: self.count("stops")?.to_vec(),
        })
    }

    /// Computes a training pass in FP32. Outputs, losses, every gradient, an update and the running
    /// statistics must equal PyTorch's. Returns the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn train(&self, device: &Device) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let SpectrogramLossSpec::Spectrogram { padding, guide } = self.loss;
        let (model, batch) = (self.synthesiser(&device)?, self.batch()?);
        let [seed, step] = self.described.pass;
        let pass = || Pass::training(Compute::FP32, seed, step);
        let mut compared = 0;
        let mut compare = |key: String, found: &[f32], limit: f64| {
            compared += 1;
            self.compare(&key, found, limit)
        };
        let (predicted, _) = model.forward(&batch, &mut pass());
        let written = predicted.written;
        compare("out/frames".into(), &host_values(written.frames.detach()), LIMIT)?;
        compare("out/stops".into(), &host_values(written.stops.detach()), LIMIT)?;
        compare("out/weights".into(), &host_values(written.weights.detach()), LIMIT)?;
        compare("out/corrected".into(), &host_values(predicted.corrected.detach()), LIMIT)?;
        if let Some(magnitudes) = predicted.magnitudes {
            compare("out/magnitudes".into(), &host_values(magnitudes.detach()), LIMIT)?;
        }
        let objective = SpectrogramLoss::new(padding, self.bins(), guide);
        let counts = objective.counts(&batch);
        let terms = objective.terms(&model, &batch, &mut pass());
        let mut loss = None;
        for (term, (name, count)) in terms.into_iter().zip(counts) {
            compare(format!("losses/{name}"), &host_values(term.sum.clone().inner()), LIMIT)?;
            let mean = term.sum * (term.weight / count);
            loss = Some(match loss {
                Some(sum) => sum + mean,
                None => mean,
            });
        }
        let mut gradients = loss.ok_or("a loss has terms")?.backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        let mut rule = optimizer(&self.described.optimizer);
        rule.begin();
        let inner = device.inner();
        let shapes = parameters::shapes(&model);
        let values = parameters::export(&model);
        for (((path, shape), gradient), value) in shapes.into_iter().zip(taken).zip(values) {
            let Some(gradient) = gradient else {
                if path.contains("running_") {
                    continue;
                }
                return Err(format!("{}: {path} has no gradient", self.name));
            };
            let found = host_values(gradient.clone());
            compare(format!("gradients/{path}"), &found, GRADIENT_LIMIT)?;
            let n = value.values.len();
            let value = Tensor::<1>::from_data(TensorData::new(value.values, [n]), &inner);
            let place = Place { path: &path, shape: &shape, embedding: false };
            let step = Gradient::new(Flat::from_tensor(gradient), 1.0);
            let updated = rule.step(place, self.described.rate, Flat::from_tensor(value), step);
            let updated = host_values(updated.into_tensor(&inner));
            compare(format!("updated/{path}"), &updated, UPDATE_LIMIT)?;
        }
        for folded in parameters::export(&objective.commit(model)) {
            if folded.path.contains("running_") {
                compare(format!("folded/{}", folded.path), &folded.values, LIMIT)?;
            }
        }
        let given = |key: &&String| {
            ["out/", "losses/", "gradients/", "updated/", "folded/"].iter().any(|part| key.starts_with(part))
        };
        let given = self.tensors.keys().filter(given).count();
        match compared == given {
            true => Ok(compared),
            false => Err(format!("{}: {compared} tensors were computed, {given} are given", self.name)),
        }
    }

    /// Runs free-running inference on all texts together in FP32. Frames, magnitudes and attention
    /// weights must equal PyTorch's, which are computed one text at a time. Returns the number of
    /// compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn speak(&self, device: &Device) -> Result<usize, String> {
        let model = self.synthesiser(device)?;
        let mut pass = Pass::evaluation(Compute::FP32);
        let spoken = model.speak(&self.texts()?, self.limits(), &mut pass);
        let mut compared = 0;
        for (i, one) in spoken.iter().enumerate() {
            let ended = self.count(&format!("spoken/{i}/stopped"))?;
            if ended != [usize::from(one.stopped)] {
                return Err(format!("{}/spoken/{i} ended otherwise: {}", self.name, one.stopped));
            }
            self.compare(&format!("spoken/{i}/mels"), &one.mels, LIMIT)?;
            self.compare(&format!("spoken/{i}/alignment"), &one.alignment, LIMIT)?;
            compared += 2;
            if self.bins() > 0 {
                self.compare(&format!("spoken/{i}/magnitudes"), &one.magnitudes, LIMIT)?;
                compared += 1;
            }
        }
        Ok(compared)
    }

    fn largest(&self, prefix: &str) -> f64 {
        let values = self.tensors.iter().filter(|(key, _)| key.starts_with(prefix)).flat_map(|(_, v)| v);
        values.fold(0.0, |most, x| most.max(f64::from(x.abs())))
    }

    fn compare(&self, key: &str, found: &[f32], limit: f64) -> Result<(), String> {
        let expected = self.tensor(key)?;
        if found.len() != expected.len() {
            let (found, expected) = (found.len(), expected.len());
            return Err(format!("{}/{key} has {found} numbers where {expected} are due", self.name));
        }
        let mut size = expected.iter().fold(1e-3f64, |most, x| most.max(f64::from(x.abs())));
        if key.starts_with("gradients/") {
            // A sum that cancels has an error of the size of its terms.
            size = size.max(1e-2 * self.largest("gradients/"));
        }
        if key.starts_with("updated/") {
            size = self.described.rate;
        }
        let apart = found.iter().zip(expected).map(|(a, b)| f64::from((a - b).abs()) / size);
        // `find` instead of a maximum, because a maximum ignores NaN.
        match apart.into_iter().find(|apart| apart.is_nan() || *apart >= limit) {
            Some(apart) => Err(format!("{}/{key} differs by {apart:.1e}, {limit:.0e} is allowed", self.name)),
            None => Ok(()),
        }
    }
}
