//! Classifiers of texts agree with PyTorch, and the fixture tells other models apart.

use burn::tensor::{Device, FloatDType};
use zoo_models::precision::Compute;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::text_classification::{GateFunction, TextLayerSpec};
use zoo_training::tasks::text_classification::TextCase;

fn cases() -> Vec<TextCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/text_classifier.safetensors");
    TextCase::read_all(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn logits_losses_gradients_and_an_update_are_pytorchs() {
    let cases = cases();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let compared = case.follow(&Device::flex(), Compute::FP32).unwrap_or_else(|error| panic!("{error}"));
        assert!(compared >= 9, "{}: {compared}", case.name);
    }
}

#[test]
fn the_fixture_has_every_kind_of_layer() {
    let mut kinds: Vec<&str> =
        cases().iter().flat_map(|case| &case.spec.layer).map(TextLayerSpec::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let due =
        ["convolution", "dense", "dropout", "embedding", "kernels", "lstm", "over-positions", "pool", "relu"];
    assert_eq!(kinds, due);
}

fn other(of: PoolKind) -> PoolKind {
    if of == PoolKind::Max { PoolKind::Average } else { PoolKind::Max }
}

/// Each change leaves the shapes as they are.
#[test]
fn another_model_is_told_apart() {
    let mut told = 0;
    for place in 0..cases().len() {
        for layer in 0..cases()[place].spec.layer.len() {
            let mut case = cases().swap_remove(place);
            match &mut case.spec.layer[layer] {
                TextLayerSpec::Embedding { zero_padding, .. } => *zero_padding = !*zero_padding,
                TextLayerSpec::Pool { of, .. } | TextLayerSpec::OverPositions { of } => *of = other(*of),
                TextLayerSpec::Lstm { gates, .. } => {
                    *gates = match gates {
                        GateFunction::Sigmoid => GateFunction::HardSigmoid,
                        GateFunction::HardSigmoid => GateFunction::Sigmoid,
                    };
                }
                TextLayerSpec::Dense { row_norm, .. } => {
                    *row_norm = match row_norm {
                        None => Some(1.0),
                        Some(_) => None,
                    };
                }
                layer @ TextLayerSpec::Relu {} => *layer = TextLayerSpec::Dropout { rate: 0.5 },
                _ => continue,
            }
            let error = case.follow(&Device::flex(), Compute::FP32).unwrap_err();
            assert!(error.contains("differs by"), "{}, layer {layer}: {error}", case.name);
            told += 1;
        }
    }
    assert_eq!(told, 27);
}

/// Units of FP16 and bf16 are 1 / 1024 and 1 / 128. Roundings of a dozen steps add up.
#[test]
fn half_types_are_near_fp32() {
    for case in cases() {
        let found = |compute| case.logits(&Device::flex(), compute).unwrap();
        let exact = found(Compute::FP32);
        let size = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
        for (half, limit) in [(FloatDType::F16, 1.0 / 128.0), (FloatDType::BF16, 1.0 / 16.0)] {
            let found = found(Compute(half));
            assert_ne!(found, exact, "{} {half:?}", case.name);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= limit * size;
            assert!(found.iter().zip(&exact).all(near), "{} {half:?}: {found:?}, not {exact:?}", case.name);
        }
    }
}
