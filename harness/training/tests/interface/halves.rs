//! The models of every fixture agree with PyTorch in half precision, too, within the limits of
//! `docs/align.md`, and wrong ones are told apart. `parity.rs` has those of translation.

use burn::tensor::{Device, FloatDType};
use zoo_models::precision::Compute;
use zoo_recipes::tasks::speech_recognition::AcousticLayerSpec;
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

#[test]
fn another_model_is_told_apart_in_half_precision() {
    let mut told = 0;
    for compute in HALVES {
        for mut case in AcousticCase::read_all(&fixture("acoustic")).unwrap() {
            let convolution = case.spec.layer.iter_mut().find_map(|layer| match layer {
                AcousticLayerSpec::Convolution(layer) => Some(layer),
                _ => None,
            });
            let Some(convolution) = convolution else { continue };
            convolution.dilation += 1;
            assert!(case.follow(&Device::flex(), compute).is_err(), "{}", case.name);
            told += 1;
        }
        for mut case in LanguageCase::read_all(&fixture("language")).unwrap() {
            if std::mem::replace(&mut case.carries, false) {
                assert!(case.follow(&Device::flex(), compute).is_err(), "{}", case.name);
                told += 1;
            }
        }
    }
    assert!(told >= 10, "{told}");
}
