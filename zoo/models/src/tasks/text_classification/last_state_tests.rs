//! Classifiers with the layers of a language model.

use burn::tensor::{Device, FloatDType};
use zoo_recipes::tasks::text_classification::StateOutput;

use super::*;
use crate::contract::Objective;
use crate::parameters::{count, host_values, shapes as paths, take_gradients};
use crate::precision::Compute;

const ROWS: u32 = 30;
const POSITIONS: u32 = 9;

/// Sizes and dropouts of a classifier.
#[derive(Clone, Copy)]
struct Sizes {
    units: u32,
    width: u32,
    layers: u32,
    state: StateOutput,
    element_dropout: f64,
    candidate_dropout: f64,
    dropout: f64,
}

const SMALL: Sizes = Sizes {
    units: 7,
    width: 5,
    layers: 3,
    state: StateOutput::Output,
    element_dropout: 0.0,
    candidate_dropout: 0.0,
    dropout: 0.0,
};

fn spec(sizes: Sizes) -> TextClassifierSpec {
    let Sizes { units, width, layers, state, element_dropout, candidate_dropout, dropout } = sizes;
    let weights = TextWeightInit::Uniform { bound: 0.3 };
    let layer = vec![
        TextLayerSpec::Embedding { width, weights, zero_padding: false, element_dropout },
        TextLayerSpec::LayerNormLstm {
            units,
            width,
            layers,
            candidate_dropout,
            dropout,
            forget_bias: 1.0,
            epsilon: 1e-12,
            state,
        },
        TextLayerSpec::Dense { units: 2, weights, row_norm: None },
    ];
    TextClassifierSpec { layer }
}

fn model(sizes: Sizes, device: &Device) -> TextModel {
    TextModel::new(&spec(sizes), [POSITIONS, ROWS].map(|n| n as usize), 1, 1, device)
}

/// Texts with padding in front.
fn batch(texts: &[&[u32]], positions: usize) -> TextBatch {
    let padded = |text: &&[u32]| [vec![NO_WORD; positions - text.len()], text.to_vec()].concat();
    let labels = (0..texts.len()).map(|text| text as u32 % 2).collect();
    TextBatch { ids: texts.iter().flat_map(padded).collect(), labels, fold: 0 }
}

const TEXTS: [&[u32]; 3] = [&[1, 0, 2, 29, 4, 5, 0, 0], &[3, 1], &[7]];

fn logits(model: &TextModel, batch: &TextBatch, pass: &mut Pass) -> Vec<f32> {
    scores(model, batch, pass).concat()
}

fn evaluated(model: &TextModel, batch: &TextBatch) -> Vec<f32> {
    logits(model, batch, &mut Pass::evaluation(Compute::FP32))
}

#[test]
fn openseq2seqs_classifiers_have_their_number_of_parameters() {
    let of = |units, state| Sizes { units, width: 256, state, ..SMALL };
    let both = StateOutput::OutputAndCell;
    for (name, sizes, rows, due) in [
        // (256 + 1,024) x 4,096, 2,048 x 4,096, 1,280 x 1,024; 10 x (1,024 + 1,024 + 256); 2 x 257.
        ("imdb-wkt103", of(1024, StateOutput::Output), 267_340, 83_404_802),
        ("imdb-wkt2", of(896, StateOutput::Output), 33_000, 20_199_938),
        ("sst-wkt2", of(896, both), 33_000, 20_200_450),
    ] {
        let spec = spec(sizes);
        assert_eq!(cost(&spec, 96, rows).unwrap().parameters, due, "{name}");
        let few = TextModel::new(&spec, [96, 10], 1, 1, &Device::flex());
        assert_eq!(count(&few) as u64, due - (rows - 10) * 256, "{name}");
    }
    let of_layers = |layers| cost(&spec(Sizes { layers, ..SMALL }), POSITIONS, 10).unwrap();
    // (5 + 5) x 20 and (5 + 7) x 28 + (7 + 5) x 20 products a word, and 2 x 5 in the end.
    assert_eq!(of_layers(1).source_token, 9 * 200 + 10);
    assert_eq!(of_layers(2).source_token, 9 * (336 + 240) + 10);
    assert_eq!(of_layers(4).source_token - of_layers(3).source_token, 9 * 14 * 28);
}

#[test]
fn parameters_are_named_as_in_the_language_model() {
    let names: Vec<String> =
        paths(&model(SMALL, &Device::flex())).into_iter().map(|(path, _)| path).collect();
    let of = |at: usize| format!("layers.1.layers.{at}.weight_hh");
    assert!((0..3).all(|at| names.contains(&of(at))) && !names.contains(&of(3)), "{names:?}");
    assert!(names.contains(&"layers.1.layers.0.state_norm.bias".to_owned()), "{names:?}");
}

#[test]
fn padding_is_not_read_wherever_it_is() {
    for state in [StateOutput::Output, StateOutput::OutputAndCell] {
        let model = model(Sizes { state, ..SMALL }, &Device::flex());
        let whole = evaluated(&model, &batch(&TEXTS, POSITIONS as usize));
        let close = |found: &[f32], due: &[f32]| {
            assert!(found.iter().zip(due).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {due:?}");
        };
        for (at, text) in TEXTS.iter().enumerate() {
            let due = &whole[2 * at..2 * at + 2];
            close(&evaluated(&model, &batch(&[text], text.len())), due);
            let mut behind = batch(&[text], text.len() + 3);
            behind.ids.rotate_left(2);
            close(&evaluated(&model, &behind), due);
        }
        assert_ne!(whole[..2], whole[2..4]);
        // A text without words has zeros: the scores are the biases, which are 0.
        assert_eq!(evaluated(&model, &batch(&[&[], &[3]], 4))[..2], [0.0; 2]);
        assert_eq!(evaluated(&model, &batch(&[&[]], 4)), [0.0; 2]);
    }
}

#[test]
fn each_dropout_is_of_training_and_the_last_output_has_none() {
    let batch = batch(&TEXTS, POSITIONS as usize);
    let training =
        |model: &TextModel, step| logits(model, &batch, &mut Pass::training(Compute::FP32, 1, step));
    for sizes in [
        Sizes { element_dropout: 0.5, ..SMALL },
        Sizes { candidate_dropout: 0.5, ..SMALL },
        Sizes { dropout: 0.5, ..SMALL },
    ] {
        let model = model(sizes, &Device::flex());
        assert_eq!(training(&model, 0), training(&model, 0));
        assert_ne!(training(&model, 0), training(&model, 1));
        assert_ne!(training(&model, 0), evaluated(&model, &batch));
    }
    let model = model(Sizes { layers: 1, dropout: 0.5, ..SMALL }, &Device::flex());
    assert_eq!(training(&model, 0), evaluated(&model, &batch));
}

#[test]
fn all_places_of_a_word_lose_the_same_elements() {
    let model = model(Sizes { element_dropout: 0.5, ..SMALL }, &Device::flex());
    let batch = batch(&[&[4, 4, 4], &[4, 4, 4]], 3);
    let found = logits(&model, &batch, &mut Pass::training(Compute::FP32, 1, 0));
    assert_eq!(found[..2], found[2..]);
}

#[test]
fn every_parameter_is_trained_in_every_type() {
    let device = Device::flex().autodiff();
    let model = model(Sizes { state: StateOutput::OutputAndCell, ..SMALL }, &device);
    let batch = batch(&TEXTS, POSITIONS as usize);
    for dtype in [FloatDType::F32, FloatDType::F16, FloatDType::BF16] {
        let terms = TextLoss::default().terms(&model, &batch, &mut Pass::training(Compute(dtype), 1, 0));
        let mut gradients = (terms[0].sum.clone() * 1024.0).backward();
        for ((path, _), gradient) in paths(&model).into_iter().zip(take_gradients(&model, &mut gradients)) {
            let gradient = host_values(gradient.unwrap());
            assert!(gradient.iter().all(|x| x.is_finite()), "{dtype:?} {path}");
            assert!(gradient.iter().any(|x| *x != 0.0), "{dtype:?} {path}");
        }
    }
}
