//! Acoustic models agree with PyTorch, and the result for an utterance does not depend on its
//! batch.

use burn::tensor::{Device, FloatDType};
use zoo_models::Pass;
use zoo_models::parameters::{count, host_values, shapes};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::speech_recognition::{AcousticModel, cost};
use zoo_recipes::tasks::speech_recognition::AcousticLayerSpec;
use zoo_training::tasks::speech_recognition::AcousticCase;

fn cases() -> Vec<AcousticCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/acoustic.safetensors");
    AcousticCase::read_all(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn logits_losses_gradients_and_statistics_are_pytorchs() {
    for case in cases() {
        assert!(case.follow(&Device::flex(), Compute::FP32).unwrap() > 15, "{}", case.name);
    }
}

#[test]
fn another_model_is_told_apart() {
    let mut told = 0;
    for mut case in cases() {
        for layer in &mut case.spec.layer {
            if let AcousticLayerSpec::Convolution(layer) = layer {
                layer.dilation += 1;
                told += 1;
                break;
            }
        }
        let found = case.follow(&Device::flex(), Compute::FP32);
        let has_convolution =
            case.spec.layer.iter().any(|layer| matches!(layer, AcousticLayerSpec::Convolution(_)));
        assert_eq!(found.is_err(), has_convolution, "{}: {found:?}", case.name);
    }
    assert!(told >= 2);
}

#[test]
fn an_utterance_does_not_depend_on_its_batch() {
    let device = Device::flex();
    for case in cases() {
        let model = case.model(&device).unwrap();
        let found = |which: &[usize], longest: usize, compute| {
            let mut pass = Pass::evaluation(compute);
            let (out, seen) = model.forward(case.frames(which, longest, &device), &mut pass);
            assert!(seen.is_empty());
            (host_values(to_f32(out.packed())), out.lengths)
        };
        for compute in [Compute::FP32, Compute(FloatDType::BF16)] {
            let (together, lengths) = found(&[2, 0, 1], 31, compute);
            let (alone, _) = found(&[1], 11, compute);
            let first = (lengths[0] + lengths[1]) * case.classes;
            assert_eq!(together[first..], alone, "{}", case.name);
        }
    }
}

#[test]
fn the_count_is_that_of_the_built_model() {
    for mut case in cases() {
        for affine in [true, false] {
            case.spec.norm.affine = affine;
            let model = AcousticModel::new(&case.spec, case.features, case.classes, 1, &Device::flex());
            let running: usize = shapes(&model)
                .iter()
                .filter(|(path, _)| path.contains("running"))
                .map(|(_, shape)| shape.iter().product::<usize>())
                .sum();
            let counted = cost(&case.spec, case.features as u64, case.classes as u64).parameters;
            assert_eq!(counted, (count(&model) - running) as u64, "{}", case.name);
        }
    }
}
