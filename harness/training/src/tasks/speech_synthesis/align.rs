//! Comparison of synthesisers with the same models in PyTorch:
//! `tests/fixtures/tacotron.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::parameters::{self, host_values};
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_synthesis::{FrameWidth, Limits, SpectrogramLoss, SynthesisBatch, Synthesiser};
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::OptimizerSpec;
use zoo_recipes::tasks::speech_synthesis::{SpectrogramLossSpec, SynthesisModelSpec};

use crate::align::{Comparison, Fixture, described, stepped};
use crate::optimizer::optimizer;

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
    fixture: Fixture,
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
        let mut described: Described = described(bytes)?;
        let cases = std::mem::take(&mut described.cases);
        let case = |(name, case): (String, DescribedCase)| {
            let DescribedCase { model, loss, threshold } = case;
            let fixture = Fixture::read(bytes, &name)?;
            Ok(Self { name, model, loss, described: described.clone(), threshold, fixture })
        };
        cases.into_iter().map(case).collect()
    }

    fn bins(&self) -> usize {
        if self.fixture.has("out/magnitudes") { self.described.bins } else { 0 }
    }

    fn count(&self, key: &str) -> Result<Vec<usize>, String> {
        Ok(self.fixture.numbers(key)?.iter().map(|number| *number as usize).collect())
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If weights are missing or have another shape.
    pub fn synthesiser(&self, device: &Device) -> Result<Synthesiser, String> {
        let width = FrameWidth { mels: self.described.mels, bins: self.bins() };
        let model = Synthesiser::new(&self.model, self.described.symbols, width, 1, device);
        self.fixture.model(model, |_| false)
    }

    /// The texts as symbol ids.
    ///
    /// # Errors
    /// If the file lacks them.
    pub fn texts(&self) -> Result<Vec<Vec<u32>>, String> {
        let mut rest = self.fixture.numbers("symbols")?.iter().copied();
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
            frames: self.fixture.values("frames")?.to_vec(),
            width: self.described.mels + self.bins(),
            lengths: self.count("lengths")?,
            stops: self.count("stops")?,
        })
    }

    /// Computes a training pass. Outputs, losses, every gradient, an update and the running statistics
    /// must equal PyTorch's; without the update in half precision. Returns the number of compared
    /// tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn train(&self, device: &Device, compute: Compute) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let SpectrogramLossSpec::Spectrogram { padding, guide } = self.loss;
        let (model, batch) = (self.synthesiser(&device)?, self.batch()?);
        let [seed, step] = self.described.pass;
        let pass = || Pass::training(compute, seed, step);
        let mut all = Comparison::of(&self.fixture, compute);
        let compare = |all: &mut Comparison, key: String, found: &[f32]| match key.split('/').next() {
            // A sum that cancels has an error of the size of its terms.
            Some("gradients") => {
                let of_all = self.fixture.largest(|key| key.starts_with("gradients/"));
                let size = self.fixture.largest(|other| other == key).max(1e-2 * of_all);
                all.compare_by(&key, found, GRADIENT_LIMIT, size)
            }
            Some("updated") => all.compare_by(&key, found, UPDATE_LIMIT, self.described.rate),
            _ => all.compare(&key, found, LIMIT),
        };
        let (predicted, _) = model.forward(&batch, &mut pass());
        let written = predicted.written;
        compare(&mut all, "out/frames".into(), &host_values(written.frames.detach()))?;
        compare(&mut all, "out/stops".into(), &host_values(written.stops.detach()))?;
        compare(&mut all, "out/weights".into(), &host_values(written.weights.detach()))?;
        compare(&mut all, "out/corrected".into(), &host_values(predicted.corrected.detach()))?;
        if let Some(magnitudes) = predicted.magnitudes {
            compare(&mut all, "out/magnitudes".into(), &host_values(magnitudes.detach()))?;
        }
        let objective = SpectrogramLoss::new(padding, self.bins(), guide);
        let counts = objective.counts(&batch);
        let terms = objective.terms(&model, &batch, &mut pass());
        let mut loss = None;
        for (term, (name, count)) in terms.into_iter().zip(counts) {
            compare(&mut all, format!("losses/{name}"), &host_values(term.sum.clone().inner()))?;
            let mean = term.sum * (term.weight / count);
            loss = Some(match loss {
                Some(sum) => sum + mean,
                None => mean,
            });
        }
        // Not scaled in half precision: sums over frames have gradients that a scale makes infinite.
        let mut gradients = loss.ok_or("a loss has terms")?.backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        let mut rule = optimizer(&self.described.optimizer);
        rule.begin();
        let inner = device.inner();
        for (weight, gradient) in parameters::export(&model).into_iter().zip(taken) {
            let path = &weight.path;
            let Some(gradient) = gradient else {
                if path.contains("running_") {
                    continue;
                }
                return Err(format!("{}: {path} has no gradient", self.name));
            };
            compare(&mut all, format!("gradients/{path}"), &host_values(gradient.clone()))?;
            let updated = stepped(rule.as_mut(), self.described.rate, weight, gradient, &inner);
            compare(&mut all, format!("updated/{}", updated.path), &updated.values)?;
        }
        for folded in parameters::export(&objective.commit(model)) {
            if folded.path.contains("running_") {
                compare(&mut all, format!("folded/{}", folded.path), &folded.values)?;
            }
        }
        let results = ["out/", "losses/", "gradients/", "updated/", "folded/"];
        all.finish(|key| results.iter().any(|part| key.starts_with(part)))
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
            self.fixture.compare(&format!("spoken/{i}/mels"), &one.mels, LIMIT)?;
            self.fixture.compare(&format!("spoken/{i}/alignment"), &one.alignment, LIMIT)?;
            compared += 2;
            if self.bins() > 0 {
                self.fixture.compare(&format!("spoken/{i}/magnitudes"), &one.magnitudes, LIMIT)?;
                compared += 1;
            }
        }
        Ok(compared)
    }
}
