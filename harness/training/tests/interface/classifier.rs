//! Classifiers of pictures agree with PyTorch, and the fixture tells other models apart.

use burn::tensor::{Device, FloatDType};
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::image_classification::scores;
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::image_classification::{ClassifierLayerSpec, FlattenOrder};
use zoo_training::tasks::image_classification::ClassifierCase;

fn cases() -> Vec<ClassifierCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/classifier.safetensors");
    ClassifierCase::read_all(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn logits_losses_gradients_and_an_update_are_pytorchs() {
    let cases = cases();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let compared = case.follow(&Device::flex(), Compute::FP32).unwrap_or_else(|error| panic!("{error}"));
        assert!(compared >= 8, "{}: {compared}", case.name);
    }
}

#[test]
fn the_fixture_has_every_kind_of_layer() {
    let mut kinds: Vec<String> = cases()
        .iter()
        .flat_map(|case| &case.spec.layer)
        .map(|layer| match layer {
            ClassifierLayerSpec::Pool { of, .. } => format!("{of:?}"),
            ClassifierLayerSpec::Flatten { order } => format!("{order:?}"),
            layer => layer.kind().to_owned(),
        })
        .collect();
    kinds.sort();
    kinds.dedup();
    let due = [
        "Average",
        "ChannelsFirst",
        "ChannelsLast",
        "Max",
        "convolution",
        "dense",
        "dropout",
        "relu",
        "sigmoid",
    ];
    assert_eq!(kinds, due);
}

/// Each change leaves the shapes as they are.
#[test]
fn another_model_is_told_apart() {
    let mut told = 0;
    for place in 0..cases().len() {
        for layer in 0..cases()[place].spec.layer.len() {
            let mut case = cases().swap_remove(place);
            let changed = match &mut case.spec.layer[layer] {
                ClassifierLayerSpec::Pool { of, .. } => {
                    *of = if *of == PoolKind::Max { PoolKind::Average } else { PoolKind::Max };
                    true
                }
                ClassifierLayerSpec::Flatten { order } => {
                    *order = match order {
                        FlattenOrder::ChannelsFirst => FlattenOrder::ChannelsLast,
                        FlattenOrder::ChannelsLast => FlattenOrder::ChannelsFirst,
                    };
                    true
                }
                layer @ ClassifierLayerSpec::Relu {} => {
                    *layer = ClassifierLayerSpec::Sigmoid {};
                    true
                }
                layer @ ClassifierLayerSpec::Sigmoid {} => {
                    *layer = ClassifierLayerSpec::Relu {};
                    true
                }
                _ => false,
            };
            if changed {
                assert!(case.follow(&Device::flex(), Compute::FP32).is_err(), "{}, layer {layer}", case.name);
                told += 1;
            }
        }
    }
    assert!(told >= 15, "{told}");
}

#[test]
fn fp16_is_that_of_a_reference_that_rounds_at_the_same_places() {
    for case in cases() {
        let [same, all] = case.follow_half(&Device::flex()).unwrap_or_else(|error| panic!("{error}"));
        println!("{}: {same} of {all} are the same", case.name);
        assert!(20 * (all - same) <= all, "{}: {same} of {all} are the same", case.name);
    }
}

#[test]
fn bf16_is_near_fp32() {
    for case in cases() {
        let model = case.model(&Device::flex()).unwrap();
        let found = |compute| {
            let rows = scores(&model, &case.batch().unwrap(), &mut Pass::evaluation(compute));
            rows.into_iter().flatten().collect::<Vec<f32>>()
        };
        let exact = found(Compute::FP32);
        let size = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
        let found = found(Compute(FloatDType::BF16));
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 2e-2 * size;
        assert!(found.iter().zip(&exact).all(near), "{}: {found:?}, not {exact:?}", case.name);
    }
}
