//! Classifiers with the layers of a language model agree with PyTorch, and the fixture tells other
//! models apart.

use std::collections::BTreeSet;

use burn::tensor::{Device, FloatDType};
use safetensors::SafeTensors;
use zoo_models::precision::Compute;
use zoo_recipes::tasks::text_classification::{StateOutput, TextLayerSpec};
use zoo_training::tasks::text_classification::TextCase;

fn fixture() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/transfer.safetensors");
    std::fs::read(path).unwrap()
}

fn cases() -> Vec<TextCase> {
    TextCase::read_all(&fixture()).unwrap()
}

#[test]
fn logits_losses_gradients_and_an_update_are_pytorchs() {
    let cases = cases();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let compared = case.follow(&Device::flex(), Compute::FP32).unwrap_or_else(|error| panic!("{error}"));
        // Logits, loss and right answers; a gradient and an update of each parameter.
        assert!(compared >= 3 + 2 * 15, "{}: {compared}", case.name);
    }
}

#[test]
fn the_fixture_has_both_outputs_and_texts_padded_on_all_sides() {
    let states: Vec<StateOutput> = cases()
        .iter()
        .flat_map(|case| case.spec.layer.clone())
        .filter_map(|layer| match layer {
            TextLayerSpec::LayerNormLstm { state, .. } => Some(state),
            _ => None,
        })
        .collect();
    assert!(states.contains(&StateOutput::Output) && states.contains(&StateOutput::OutputAndCell));
    let bytes = fixture();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    for case in cases() {
        let ids = file.tensor(&format!("{}/ids", case.name)).unwrap();
        let positions = ids.shape()[1];
        let is_word: Vec<bool> =
            ids.data().as_chunks().0.iter().map(|id| i64::from_le_bytes(*id) >= 0).collect();
        let ends: BTreeSet<[bool; 2]> = is_word
            .chunks(positions)
            .filter(|text| text.contains(&true))
            .map(|text| [text[0], text[positions - 1]])
            .collect();
        assert_eq!(ends.len(), 4, "{}: without padding, with it in front, behind, and both", case.name);
        assert!(is_word.chunks(positions).any(|text| !text.contains(&true)), "{}: no words", case.name);
    }
}

#[test]
fn another_number_in_the_cell_is_told_apart() {
    for place in 0..cases().len() {
        for change in 0..2 {
            let mut case = cases().swap_remove(place);
            let TextLayerSpec::LayerNormLstm { forget_bias, epsilon, .. } = &mut case.spec.layer[1] else {
                panic!("the second layer is another one")
            };
            match change {
                0 => *forget_bias = 0.0,
                _ => *epsilon = 1e-3,
            }
            let error = case.follow(&Device::flex(), Compute::FP32).unwrap_err();
            assert!(error.contains("differs by"), "{}, change {change}: {error}", case.name);
        }
    }
}

/// Units of FP16 and bf16 are 1 / 1024 and 1 / 128. Roundings of the layers add up.
#[test]
fn half_types_are_near_fp32() {
    for case in cases() {
        let found = |compute| case.logits(&Device::flex(), compute).unwrap();
        let exact = found(Compute::FP32);
        let size = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
        for (half, limit) in [(FloatDType::F16, 1.0 / 64.0), (FloatDType::BF16, 1.0 / 8.0)] {
            let found = found(Compute(half));
            assert_ne!(found, exact, "{} {half:?}", case.name);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= limit * size;
            assert!(found.iter().zip(&exact).all(near), "{} {half:?}: {found:?}, not {exact:?}", case.name);
        }
    }
}
