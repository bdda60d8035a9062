//! Comparison of acoustic models with the same models in PyTorch, utterance by utterance:
//! `tests/fixtures/acoustic.safetensors`.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_models::Pass;
use zoo_models::ops::{Utterances, ctc};
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::speech_recognition::{AcousticModel, Frames};
use zoo_recipes::BatchNormSpec;
use zoo_recipes::tasks::speech_recognition::{AcousticInit, AcousticLayerSpec, AcousticSpec, PaddedFrames};

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
    tensors: BTreeMap<String, Vec<f32>>,
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
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| text(&e))?;
        let described = metadata.metadata().as_ref().and_then(|m| m.get("zoo"));
        let described = described.ok_or("the metadata has no key `zoo`")?;
        let Described { classes, norm, cases, plain_norms } =
            serde_json::from_str(described).map_err(|e| text(&e))?;
        let DescribedNorm { epsilon, momentum } = norm;
        let file = SafeTensors::deserialize(bytes).map_err(|e| text(&e))?;
        let case = |(name, layer): (String, Vec<AcousticLayerSpec>)| {
            let (mut tensors, mut counts, mut features) = (BTreeMap::new(), BTreeMap::new(), 0);
            for (key, view) in file.tensors() {
                let Some(key) = key.strip_prefix(&format!("{name}/")) else { continue };
                if view.dtype() == Dtype::I64 {
                    let values = view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as usize);
                    counts.insert(key.to_owned(), values.collect::<Vec<_>>());
                } else {
                    let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                    if key == "features" {
                        features = view.shape().last().copied().unwrap_or(0);
                    }
                    tensors.insert(key.to_owned(), values.collect());
                }
            }
            let mut count = |key: &str| counts.remove(key).ok_or_else(|| format!("{name}/{key} is missing"));
            let (lengths, labels, label_lengths) =
                (count("lengths")?, count("labels")?, count("label_lengths")?);
            let mut rest = labels.into_iter().map(|label| label as u32);
            let labels = label_lengths.iter().map(|&n| rest.by_ref().take(n).collect()).collect();
            let affine = !plain_norms.contains(&name);
            let norm = BatchNormSpec { epsilon, momentum, affine, unbiased: true };
            let spec = AcousticSpec {
                init: AcousticInit::XavierNormal,
                output_init: None,
                norm,
                padded_frames: PaddedFrames::default(),
                layer,
            };
            Ok(Self { name, spec, classes, features, lengths, labels, tensors })
        };
        cases.into_iter().map(case).collect()
    }

    /// The model with the file's weights.
    ///
    /// # Errors
    /// If weights are missing or have another shape.
    pub fn model(&self, device: &Device) -> Result<AcousticModel, String> {
        let model = AcousticModel::new(&self.spec, self.features, self.classes, 1, device);
        let weights = parameters::shapes(&model).into_iter().map(|(path, shape)| {
            let values = match self.tensors.get(&format!("weights/{path}")) {
                Some(values) => values.clone(),
                None if path.ends_with("running_mean") => vec![0.0; shape.iter().product()],
                None if path.ends_with("running_variance") => vec![1.0; shape.iter().product()],
                None => return Err(format!("{}/weights/{path} is missing", self.name)),
            };
            match values.len() == shape.iter().product::<usize>() {
                true => Ok(ParameterValues { path, shape, values }),
                false => Err(format!("{}/weights/{path} is not {shape:?}", self.name)),
            }
        });
        let weights = weights.collect::<Result<_, _>>()?;
        parameters::import(model, weights).map_err(|error| error.to_string())
    }

    /// Some of the utterances, padded to `longest` frames.
    pub fn frames(&self, which: &[usize], longest: usize, device: &Device) -> Frames {
        let values = self.tensors.get("features").map(Vec::as_slice).unwrap_or_default();
        let mut x = vec![0f32; which.len() * longest * self.features];
        for (&i, to) in which.iter().zip(x.chunks_exact_mut(longest * self.features)) {
            let first: usize = self.lengths[..i].iter().sum();
            let from = &values[first * self.features..][..self.lengths[i] * self.features];
            to[..from.len()].copy_from_slice(from);
        }
        let x = Tensor::from_data(TensorData::new(x, [which.len(), longest, self.features]), device);
        Frames::new(x, which.iter().map(|&i| self.lengths[i]).collect())
    }

    /// Computes all utterances together in FP32, padded beyond the longest. Logits, loss, every
    /// gradient and the running statistics must equal PyTorch's. Returns the number of compared
    /// tensors.
    ///
    /// # Errors
    /// The first tensor that differs, and by how much.
    pub fn follow(&self, device: &Device) -> Result<usize, String> {
        let device = device.clone().autodiff();
        let model = self.model(&device)?;
        let all: Vec<usize> = (0..self.lengths.len()).collect();
        let longest = self.lengths.iter().copied().max().unwrap_or(0) + 3;
        let mut pass = Pass::training(Compute::FP32, 1, 1);
        let (out, seen) = model.forward(self.frames(&all, longest, &device), &mut pass);
        let mut compared = 0;
        let mut compare = |key: &str, found: &[f32]| {
            compared += 1;
            self.compare(key, found)
        };
        compare("logits", &host_values(to_f32(out.packed().detach())))?;
        let utterances = Utterances::new(&self.labels, &out.places(), self.classes as u32 - 1);
        let loss = ctc(out.rows(), &utterances);
        compare("loss", &host_values(loss.clone().inner()))?;
        let mut gradients = loss.backward();
        let taken = parameters::take_gradients(&model, &mut gradients);
        for ((path, _), gradient) in parameters::shapes(&model).into_iter().zip(taken) {
            match gradient {
                Some(gradient) => compare(&format!("gradients/{path}"), &host_values(gradient))?,
                None if path.contains("running_") => {}
                None => return Err(format!("{}: {path} has no gradient", self.name)),
            }
        }
        for folded in parameters::export(&model.fold(&seen)) {
            if folded.path.contains("running_") {
                compare(&format!("folded/{}", folded.path), &folded.values)?;
            }
        }
        let given = |key: &&String| !key.starts_with("weights/") && *key != "features";
        let given = self.tensors.keys().filter(given).count();
        match compared == given {
            true => Ok(compared),
            false => Err(format!("{}: {compared} tensors were computed, {given} are given", self.name)),
        }
    }

    fn compare(&self, key: &str, found: &[f32]) -> Result<(), String> {
        let expected = self.tensors.get(key).ok_or_else(|| format!("{}/{key} is missing", self.name))?;
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
