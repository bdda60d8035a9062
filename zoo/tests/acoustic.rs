//! Acoustic models against PyTorch, computed in FP64 utterance by utterance (tests/reference/acoustic_fixtures.py): logits, loss, every
//! gradient, running statistics; and that an utterance does not depend on its batch.

use std::collections::BTreeMap;

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use safetensors::SafeTensors;
use serde_json::json;
use zoo_models::Pass;
use zoo_models::models::acoustic::{AcousticModel, Frames, parameters};
use zoo_models::ops::{Utterances, ctc};
use zoo_models::parameters::{ParameterValues, count, export, host_values, import, shapes};
use zoo_models::precision::{Compute, to_f32};
use zoo_recipes::{AcousticInit, AcousticLayerSpec, AcousticSpec, BatchNormSpec};

const FEATURES: usize = 9;
const CLASSES: usize = 5;

struct Case {
    spec: AcousticSpec,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    lengths: Vec<usize>,
    labels: Vec<Vec<u32>>,
}

fn cases() -> BTreeMap<String, Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/acoustic.safetensors");
    let bytes = std::fs::read(path).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let description = &metadata.metadata().as_ref().unwrap()["zoo"];
    let description: serde_json::Value = serde_json::from_str(description).unwrap();
    let norm = &description["norm"];
    let norm = BatchNormSpec {
        epsilon: norm["epsilon"].as_f64().unwrap(),
        momentum: norm["momentum"].as_f64().unwrap(),
        affine: true,
        unbiased: true,
    };
    let layers: BTreeMap<String, Vec<AcousticLayerSpec>> =
        serde_json::from_value(description["cases"].clone()).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let case = |(name, layer): (String, Vec<AcousticLayerSpec>)| {
        let mut tensors = BTreeMap::new();
        let mut ints = BTreeMap::new();
        for (key, view) in file.tensors() {
            let Some(key) = key.strip_prefix(&format!("{name}/")) else { continue };
            if view.dtype() == safetensors::Dtype::I64 {
                let values = view.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()));
                ints.insert(key.to_owned(), values.map(|x| x as usize).collect::<Vec<_>>());
            } else {
                let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                tensors.insert(key.to_owned(), (view.shape().to_vec(), values.collect()));
            }
        }
        let mut rest = ints["labels"].iter().map(|&label| label as u32);
        let labels = ints["label_lengths"].iter().map(|&n| rest.by_ref().take(n).collect()).collect();
        let spec = AcousticSpec { init: AcousticInit::XavierNormal, norm, layer };
        (name, Case { spec, tensors, lengths: ints["lengths"].clone(), labels })
    };
    layers.into_iter().map(case).collect()
}

impl Case {
    /// The model with the fixture's weights.
    fn model(&self, device: &Device) -> AcousticModel {
        let model = AcousticModel::new(&self.spec, FEATURES, CLASSES, 1, device);
        let weights = shapes(&model).into_iter().map(|(path, shape)| {
            let n: usize = shape.iter().product();
            let values = match self.tensors.get(&format!("weights/{path}")) {
                Some((_, values)) => values.clone(),
                None if path.ends_with("running_mean") => vec![0.0; n],
                None if path.ends_with("running_variance") => vec![1.0; n],
                None => panic!("the fixture has no {path}"),
            };
            ParameterValues { path, shape, values }
        });
        import(model, weights.collect()).unwrap()
    }

    /// Some of the utterances, padded to so many frames.
    fn frames(&self, which: &[usize], longest: usize, device: &Device) -> Frames {
        let (_, values) = &self.tensors["features"];
        let mut x = vec![0f32; which.len() * longest * FEATURES];
        for (&i, to) in which.iter().zip(x.chunks_exact_mut(longest * FEATURES)) {
            let first: usize = self.lengths[..i].iter().sum();
            let from = &values[first * FEATURES..][..self.lengths[i] * FEATURES];
            to[..from.len()].copy_from_slice(from);
        }
        let x = Tensor::from_data(TensorData::new(x, [which.len(), longest, FEATURES]), device);
        Frames::new(x, which.iter().map(|&i| self.lengths[i]).collect())
    }
}

/// The frames that are no padding, of one utterance after the other.
fn valid(frames: &Frames) -> Vec<f32> {
    host_values(to_f32(frames.packed().detach()))
}

/// Sums of some hundred products in FP32, through up to nine layers and their norms.
fn assert_close(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().fold(1e-3f32, |most, x| most.max(x.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 2e-5 * size, "{what}: {a} {b}, the largest is {size}");
    }
}

#[test]
fn logits_losses_gradients_and_statistics_are_pytorchs() {
    let device = Device::flex().autodiff();
    for (name, case) in cases() {
        let model = case.model(&device);
        let mut pass = Pass::training(Compute::FP32, 1, 1);
        let (out, seen) = model.forward(case.frames(&[0, 1, 2], 29, &device), &mut pass);
        assert_close(&format!("{name}: logits"), &valid(&out), &case.tensors["logits"].1);
        let utterances = Utterances::new(&case.labels, &out.places(), CLASSES as u32 - 1);
        let loss = ctc(out.rows(), &utterances);
        assert_close(&format!("{name}: loss"), &host_values(loss.clone().inner()), &case.tensors["loss"].1);
        let mut gradients = loss.backward();
        let taken = zoo_models::parameters::take_gradients(&model, &mut gradients);
        let mut checked = 0;
        for ((path, _), gradient) in shapes(&model).into_iter().zip(taken) {
            let Some((_, expected)) = case.tensors.get(&format!("gradients/{path}")) else {
                assert!(path.contains("running") && gradient.is_none(), "{name}: {path}");
                continue;
            };
            assert_close(&format!("{name}: {path}"), &host_values(gradient.unwrap()), expected);
            checked += 1;
        }
        assert_eq!(checked, case.tensors.keys().filter(|key| key.starts_with("gradients/")).count());
        let mut running = 0;
        for folded in export(&model.fold(&seen)).iter().filter(|p| p.path.contains("running")) {
            let expected = &case.tensors[&format!("folded/{}", folded.path)].1;
            assert_close(&format!("{name}: {}", folded.path), &folded.values, expected);
            running += 1;
        }
        assert_eq!(running, case.tensors.keys().filter(|key| key.starts_with("folded/")).count());
    }
}

#[test]
fn an_utterance_does_not_depend_on_its_batch() {
    let device = Device::flex();
    for (name, case) in cases() {
        let model = case.model(&device);
        let found = |which: &[usize], longest: usize, compute| {
            let mut pass = Pass::evaluation(compute);
            let (out, seen) = model.forward(case.frames(which, longest, &device), &mut pass);
            assert!(seen.is_empty());
            (valid(&out), out.lengths)
        };
        for compute in [Compute::FP32, Compute(FloatDType::BF16)] {
            let (together, lengths) = found(&[2, 0, 1], 31, compute);
            let (alone, _) = found(&[1], 11, compute);
            let first = (lengths[0] + lengths[1]) * CLASSES;
            assert_eq!(together[first..], alone, "{name}");
        }
    }
}

#[test]
fn the_count_is_that_of_the_built_model() {
    for (name, mut case) in cases() {
        for affine in [true, false] {
            case.spec.norm.affine = affine;
            let model = AcousticModel::new(&case.spec, FEATURES, CLASSES, 1, &Device::flex());
            let running: usize = shapes(&model)
                .iter()
                .filter(|(path, _)| path.contains("running"))
                .map(|(_, shape)| shape.iter().product::<usize>())
                .sum();
            let counted = parameters(&case.spec, FEATURES as u64, CLASSES as u64);
            assert_eq!(counted, (count(&model) - running) as u64, "{name}");
        }
    }
}

fn spec(layer: serde_json::Value) -> AcousticSpec {
    let norm = BatchNormSpec { epsilon: 1e-3, momentum: 0.1, affine: true, unbiased: true };
    AcousticSpec { init: AcousticInit::XavierUniform, norm, layer: serde_json::from_value(layer).unwrap() }
}

/// Mozilla's DeepSpeech 0.x: 26 cepstra of 9 frames on each side, 2,048 units, 29 classes.
#[test]
fn deep_speech_has_the_published_number_of_parameters() {
    let dense = json!({"kind": "dense", "units": 2048, "activation": "relu-20", "dropout": 0.05});
    let lstm = json!({"kind": "recurrent", "cell": "lstm", "layers": 1, "hidden": 2048, "biases": 1});
    let layers = json!([dense, dense, dense, lstm, dense]);
    assert_eq!(parameters(&spec(layers), 19 * 26, 29), 47_224_861);
}

/// Jasper 10x5 with dense residuals: 333 million (Li et al. 2019).
#[test]
fn jasper_has_the_published_number_of_parameters() {
    let plain = |channels: u32, kernel: u32| json!({"kind": "convolution", "channels": channels, "kernel": kernel, "activation": "relu"});
    let block = |(channels, kernel): (u32, u32)| {
        let mut block = plain(channels, kernel);
        (block["repeat"], block["residual"]) = (json!(5), json!("dense"));
        block
    };
    let sizes = [(256, 11), (384, 13), (512, 17), (640, 21), (768, 25)];
    let mut layers = vec![plain(256, 11)];
    layers.extend(sizes.into_iter().flat_map(|size| [block(size), block(size)]));
    layers.extend([plain(896, 29), plain(1024, 1)]);
    assert_eq!(parameters(&spec(json!(layers)), 64, 29), 332_632_349);
}
