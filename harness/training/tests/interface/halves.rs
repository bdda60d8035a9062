//! The models of every fixture agree with PyTorch in half precision, too, within the limits of
//! `docs/align.md`, and wrong ones are told apart. `parity.rs` has those of translation.

use burn::tensor::{Device, FloatDType};
use zoo_models::precision::Compute;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::image_classification::ClassifierLayerSpec;
use zoo_recipes::tasks::speech_recognition::{AcousticLayerSpec, Activation};
use zoo_recipes::tasks::speech_synthesis::SynthesisDecoderSpec;
use zoo_recipes::tasks::text_classification::TextLayerSpec;
use zoo_training::tasks::image_classification::ClassifierCase;
use zoo_training::tasks::language_modelling::LanguageCase;
use zoo_training::tasks::speech_recognition::AcousticCase;
use zoo_training::tasks::speech_synthesis::SynthesisCase;
use zoo_training::tasks::text_classification::TextCase;

const HALVES: [Compute; 2] = [Compute(FloatDType::F16), Compute(FloatDType::BF16)];

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/fixtures/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

/// Follows all cases of a file in both types, and returns the number of compared tensors.
fn follow<C>(
    name: &str,
    read: impl FnOnce(&[u8]) -> Result<Vec<C>, String>,
    follow: impl Fn(&C, &Device, Compute) -> Result<usize, String>,
) -> usize {
    let cases = read(&fixture(name)).unwrap();
    let mut compared = 0;
    let mut broken = Vec::new();
    for compute in HALVES {
        for case in &cases {
            match follow(case, &Device::flex(), compute) {
                Ok(tensors) => compared += tensors,
                Err(error) => broken.push(format!("{}: {error}", compute.name())),
            }
        }
    }
    assert!(broken.is_empty(), "{name}: {}", broken.join("\n"));
    compared
}

#[test]
fn classifiers_of_pictures_hold() {
    assert!(follow("classifier", ClassifierCase::read_all, ClassifierCase::follow) > 60);
}

#[test]
fn acoustic_models_hold() {
    assert!(follow("acoustic", AcousticCase::read_all, AcousticCase::follow) > 60);
}

#[test]
fn language_models_hold() {
    assert!(follow("language", LanguageCase::read_all, LanguageCase::follow) > 60);
    assert!(follow("big_lstm", LanguageCase::read_all, LanguageCase::follow) > 60);
}

#[test]
fn classifiers_of_texts_hold() {
    assert!(follow("text_classifier", TextCase::read_all, TextCase::follow) > 60);
    assert!(follow("transfer", TextCase::read_all, TextCase::follow) > 60);
}

#[test]
fn synthesisers_hold() {
    assert!(follow("tacotron", SynthesisCase::read_all, SynthesisCase::train) > 100);
}

/// Changes cases, and returns how many were changed; each must be told apart in both types.
fn told_apart<C>(
    name: &str,
    read: impl FnOnce(&[u8]) -> Result<Vec<C>, String>,
    change: impl Fn(&mut C) -> bool,
    follow: impl Fn(&C, &Device, Compute) -> Result<usize, String>,
) -> usize {
    let mut changed = 0;
    for (i, mut case) in read(&fixture(name)).unwrap().into_iter().enumerate() {
        if change(&mut case) {
            for compute in HALVES {
                let error = follow(&case, &Device::flex(), compute).expect_err(name);
                assert!(error.contains("differs by"), "{name} {i}, {}: {error}", compute.name());
            }
            changed += 1;
        }
    }
    changed
}

#[test]
fn another_model_is_told_apart_in_half_precision() {
    let inactive = |case: &mut AcousticCase| {
        case.spec.layer.iter_mut().any(|layer| match layer {
            AcousticLayerSpec::Convolution(layer) => {
                std::mem::replace(&mut layer.activation, Activation::None) != Activation::None
            }
            _ => false,
        })
    };
    assert!(told_apart("acoustic", AcousticCase::read_all, inactive, AcousticCase::follow) >= 2);

    let stateless = |case: &mut LanguageCase| std::mem::replace(&mut case.carries, false);
    assert_eq!(told_apart("language", LanguageCase::read_all, stateless, LanguageCase::follow), 3);

    let undropped = |case: &mut SynthesisCase| {
        let SynthesisDecoderSpec::Tacotron(decoder) = &mut case.model.decoder;
        decoder.prenet.dropout = 0.4;
        true
    };
    assert_eq!(told_apart("tacotron", SynthesisCase::read_all, undropped, SynthesisCase::train), 3);

    // Another pool of a network with sigmoids differs by less than these types do.
    let bent = |case: &mut ClassifierCase| {
        case.spec.layer.iter_mut().any(|layer| match layer {
            ClassifierLayerSpec::Relu {} => {
                *layer = ClassifierLayerSpec::Sigmoid {};
                true
            }
            _ => false,
        })
    };
    assert!(told_apart("classifier", ClassifierCase::read_all, bent, ClassifierCase::follow) >= 2);

    let pooled = |case: &mut TextCase| {
        case.spec.layer.iter_mut().any(|layer| match layer {
            TextLayerSpec::Pool { of, .. } | TextLayerSpec::OverPositions { of } => {
                *of = if *of == PoolKind::Max { PoolKind::Average } else { PoolKind::Max };
                true
            }
            _ => false,
        })
    };
    assert!(told_apart("text_classifier", TextCase::read_all, pooled, TextCase::follow) >= 2);
}
