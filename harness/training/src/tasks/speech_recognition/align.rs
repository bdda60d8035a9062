//! Comparison of acoustic models with the same models in PyTorch, utterance by utterance:
//! `tests/fixtures/acoustic.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;
use zoo_models::Pass;
use zoo_models::ops::{Utterances, ctc};
use zoo_models::parameters::{self, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::speech_recognition::{AcousticModel, Frames};
use zoo_recipes::BatchNormSpec;
use zoo_recipes::tasks::speech_recognition::{AcousticInit, AcousticLayerSpec, AcousticSpec, PaddedFrames};

use crate::align::{Comparison, Fixture, described};

/// Maximum error of a tensor, relative to its largest value. The reference is computed in FP64;
/// ours are FP32 sums of some hundred products, through up to nine layers and their norms.
const LIMIT: f64 = 2e-5;

/// One model with its utterances, and PyTorch's results.
#[derive(Debug)]
pub struct AcousticCase {
    /// Name of the case in the file.
    pub name: String,
    pub spec: AcousticSpec,
    /// Number of classes; the blank is the last.
    pub classes: usize,
    /// Number of features of a frame.
    pub features: usize,
    /// Number of frames of each utterance.
    pub lengths: Vec<usize>,
    labels: Vec<Vec<u32>>,
    fixture: Fixture,
}

#[derive(Deserialize)]
struct Described {
    classes: usize,
    norm: DescribedNorm,
    cases: BTreeMap<String, Vec<AcousticLayerSpec>>,
    /// Cases whose norms have neither scale nor shift.
    plain_norms: Vec<String>,
}

#[derive(Deserialize)]
struct DescribedNorm {
    epsilon: f64,
    momentum: f64,
}

impl AcousticCase {
    /// Reads all cases from the bytes of the file.
    ///
    /// # Errors
    /// A description of the first problem of the file.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let Described { classes, norm, cases, plain_norms } = described(bytes)?;
        let DescribedNorm { epsilon, momentum } = norm;
        let case = |(name, layer): (String, Vec<AcousticLayerSpec>)| {
            let fixture = Fixture::read(bytes, &name)?;
            let lengths: Vec<usize> = fixture.numbers("lengths")?.iter().map(|n| *n as usize).collect();
            let features = fixture.values("features")?.len() / lengths.iter().sum::<usize>().max(1);
            let mut rest = fixture.numbers("labels")?.iter().copied();
            let label_lengths = fixture.numbers("label_lengths")?;
            let labels = label_lengths.iter().map(|&n| rest.by_ref().take(n as usize).collect()).collect();
            let affine = !plain_norms.contains(&name);
            let norm = BatchNormSpec { epsilon, momentum, affine, unbiased: true };
            let spec = AcousticSpec {
                init: AcousticInit::XavierNormal,
                output_init: None,
                norm,
                padded_frames: PaddedFrames::default(),
                layer,
            };
            Ok(Self { name, spec, classes, features, lengths, labels, fixture })
        };
        cases.into_iter().map(case).collect()
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If weights are missing or have another shape.
    pub fn model(&self, device: &Device) -> Result<AcousticModel, String> {
        let model = AcousticModel::new(&self.spec, self.features, self.classes, 1, device);
        // Running statistics that the file lacks are those of a fresh norm.
        let is_kept = |path: &str| path.contains("running_") && !self.fixture.has(&format!("weights/{path}"));
        self.fixture.model(model, is_kept)
    }

    /// Some of the utterances, padded to `longest` frames.
    pub fn frames(&self, which: &[usize], longest: usize, device: &Device) -> Frames {
        let values = self.fixture.values("features").unwrap_or_default();
        let mut x = vec![0f32; which.len() * longest * self.features];
        for (&i, to) in which.iter().zip(x.chunks_exact_mut(longest * self.features)) {
            let first: usize = self.lengths[..i].iter().sum();
            let from = &values[first * self.features..][..self.lengths[i] * self.features];
            to[..from.len()].copy_from_slice(from);
        }
        let x = Tensor::from_data(TensorData::new(x, [which.len(), longest, self.features]), device);
        Frames::new(x, which.iter().map(|&i| self.lengths[i]).collect())
    }

    /// Computes all utterances together, padded beyond the longest. Logits, loss, every gradient and the
    /// running statistics must equal PyTorch's. Returns the number of compared tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device, compute: Compute) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let model = self.model(&device)?;
        let all: Vec<usize> = (0..self.lengths.len()).collect();
        let longest = self.lengths.iter().copied().max().unwrap_or(0) + 3;
        let mut pass = Pass::training(compute, 1, 1);
        let (out, seen) = model.forward(self.frames(&all, longest, &device), &mut pass);
        let mut all = Comparison::of(&self.fixture, compute);
        all.compare("logits", &host_values(to_f32(out.packed().detach())), LIMIT)?;
        let utterances = Utterances::new(&self.labels, &out.places(), self.classes as u32 - 1);
        let loss = ctc(out.rows(), &utterances);
        all.compare("loss", &host_values(loss.clone().inner()), LIMIT)?;
        let mut gradients = all.scaled(loss).backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        for ((path, _), gradient) in parameters::shapes(&model).into_iter().zip(taken) {
            match gradient {
                Some(gradient) => {
                    let gradient = host_values(all.unscaled(gradient));
                    all.compare(&format!("gradients/{path}"), &gradient, LIMIT)?;
                }
                None if path.contains("running_") => {}
                None => return Err(format!("{}: {path} has no gradient", self.name)),
            }
        }
        for folded in parameters::export(&model.fold(&seen)) {
            if folded.path.contains("running_") {
                all.compare(&format!("folded/{}", folded.path), &folded.values, LIMIT)?;
            }
        }
        all.finish(|key| !key.starts_with("weights/") && key != "features")
    }
}
