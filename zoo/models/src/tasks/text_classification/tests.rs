use burn::tensor::{Device, FloatDType, TensorData};
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::text_classification::GateFunction;

use super::layer::step;
use super::*;
use crate::contract::{Objective, Running};
use crate::parameters::{count, export, host_values, shapes as paths, take_gradients};
use crate::precision::Compute;
use crate::random::Key;

const RELU: TextLayerSpec = TextLayerSpec::Relu {};
const XAVIER: TextWeightInit = TextWeightInit::XavierUniform {};
const MAXIMUM: TextLayerSpec = TextLayerSpec::OverPositions { of: PoolKind::Max };
const MEAN: TextLayerSpec = TextLayerSpec::OverPositions { of: PoolKind::Average };

fn embedding(width: u32, zero_padding: bool) -> TextLayerSpec {
    let weights = TextWeightInit::Uniform { bound: 0.05 };
    TextLayerSpec::Embedding { width, weights, zero_padding, element_dropout: 0.0 }
}

fn dropout(rate: f64) -> TextLayerSpec {
    TextLayerSpec::Dropout { rate }
}

fn convolution(channels: u32, kernel: u32) -> TextLayerSpec {
    TextLayerSpec::Convolution { channels, kernel, weights: XAVIER }
}

fn lstm(units: u32, gates: GateFunction, bidirectional: bool) -> TextLayerSpec {
    TextLayerSpec::Lstm { units, gates, bidirectional }
}

fn dense(units: u32, row_norm: Option<f64>) -> TextLayerSpec {
    TextLayerSpec::Dense { units, weights: XAVIER, row_norm }
}

/// Keras's `imdb_fasttext`, with and without pairs, `imdb_cnn`, `imdb_bidirectional_lstm` and
/// `imdb_cnn_lstm`; Kim's CNN on TREC: layers, positions, rows and parameters.
fn published() -> [(&'static str, Vec<TextLayerSpec>, u32, usize, u64); 6] {
    let hard = GateFunction::HardSigmoid;
    let mean = vec![embedding(50, false), MEAN, dense(1, None)];
    let cnn = vec![
        embedding(50, false),
        dropout(0.2),
        convolution(250, 3),
        RELU,
        MAXIMUM,
        dense(250, None),
        dropout(0.2),
        RELU,
        dense(1, None),
    ];
    let both = vec![embedding(128, false), lstm(64, hard, true), dropout(0.5), dense(1, None)];
    let pool = TextLayerSpec::Pool { of: PoolKind::Max, size: 4 };
    let of_cnn = vec![
        embedding(128, false),
        dropout(0.25),
        convolution(64, 5),
        RELU,
        pool,
        lstm(70, hard, false),
        dense(1, None),
    ];
    let kernels = TextLayerSpec::Kernels { channels: 100, kernels: vec![3, 4, 5], weights: XAVIER };
    let kim = vec![embedding(300, true), kernels, dropout(0.5), dense(6, Some(3.0))];
    [
        ("imdb_fasttext", mean.clone(), 400, 20_000, 1_000_051),
        ("imdb_fasttext with pairs", mean, 400, 1_205_443, 60_272_201),
        ("imdb_cnn", cnn, 400, 5_000, 350_751),
        ("imdb_bidirectional_lstm", both, 100, 20_000, 2_658_945),
        ("imdb_cnn_lstm", of_cnn, 100, 20_000, 2_638_895),
        ("Kim's CNN on TREC", kim, 45, 8_765, 2_991_606),
    ]
}

/// The published models with fewer rows and positions, to compute with.
fn small() -> impl Iterator<Item = (&'static str, TextClassifierSpec)> {
    published().into_iter().map(|(name, layer, ..)| (name, TextClassifierSpec { layer }))
}

const ROWS: u32 = 30;
const POSITIONS: u32 = 24;

fn batch(texts: u32, classes: u32) -> TextBatch {
    let key = Key::new(3, 0, 0);
    // A third of each text is padding.
    let id = |i: u32| if i % POSITIONS < 8 { 0 } else { 1 + key.bits(i) % (ROWS - 1) };
    TextBatch {
        ids: (0..texts * POSITIONS).map(id).collect(),
        labels: (0..texts).map(|i| i * 7 % classes).collect(),
        fold: 0,
    }
}

fn model(spec: &TextClassifierSpec, device: &Device) -> TextModel {
    TextModel::new(spec, [POSITIONS, ROWS].map(|n| n as usize), 1, 1, device)
}

#[test]
fn published_systems_have_their_number_of_parameters() {
    for (name, layer, positions, rows, due) in published() {
        let spec = TextClassifierSpec { layer };
        assert_eq!(cost(&spec, positions, rows as u64).unwrap().parameters, due, "{name}");
        let built = TextModel::new(&spec, [positions as usize, rows], 1, 1, &Device::flex());
        assert_eq!(count(&built) as u64, due, "{name}");
    }
}

#[test]
fn operations_are_the_products_of_a_text() {
    let [_, _, (_, layer, positions, rows, _), .., kim] = published();
    let of = |layer: Vec<TextLayerSpec>, positions: u32, rows: usize| {
        cost(&TextClassifierSpec { layer }, positions, rows as u64).unwrap().source_token
    };
    assert_eq!(of(layer, positions, rows), 398 * 150 * 250 + 250 * 250 + 250);
    let (_, layer, positions, rows, _) = kim;
    assert_eq!(of(layer, positions, rows), 300 * 100 * (3 * 43 + 4 * 42 + 5 * 41) + 300 * 6);
}

#[test]
fn parameters_are_named_after_their_layers() {
    let [_, _, (_, cnn, ..), (_, both, ..), _, (_, kim, ..)] = published();
    let names = |layer: Vec<TextLayerSpec>| {
        let model = model(&TextClassifierSpec { layer }, &Device::flex());
        paths(&model).into_iter().map(|(path, _)| path).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names(cnn),
        "embedding.weight layers.2.weight layers.2.bias layers.5.weight layers.5.bias output.weight output.bias"
    );
    assert!(
        names(both)
            .contains("layers.1.forward.weight_ih layers.1.forward.weight_hh layers.1.forward.bias_ih")
    );
    assert!(names(kim).contains("layers.1.convolutions.2.weight layers.1.convolutions.2.bias output.weight"));
}

#[test]
fn weights_start_as_the_spec_says() {
    let start = |weights| {
        vec![
            TextLayerSpec::Embedding { width: 40, weights, zero_padding: false, element_dropout: 0.0 },
            TextLayerSpec::Convolution { channels: 60, kernel: 3, weights },
            MAXIMUM,
            TextLayerSpec::Dense { units: 20, weights, row_norm: None },
        ]
    };
    let of = |weights| export(&model(&TextClassifierSpec { layer: start(weights) }, &Device::flex()));
    let largest = |values: &[f32]| values.iter().fold(0f32, |most, x| most.max(x.abs()));
    let bounds = [6f32 / 70.0, 6.0 / (120.0 + 180.0), 6.0 / 80.0].map(f32::sqrt);
    for (weights, bounds) in [(XAVIER, bounds), (TextWeightInit::Uniform { bound: 0.25 }, [0.25; 3])] {
        let values = of(weights);
        for (path, bound) in ["embedding.weight", "layers.1.weight", "output.weight"].iter().zip(bounds) {
            let found = largest(&values.iter().find(|values| values.path == *path).unwrap().values);
            assert!(found <= bound && found > 0.95 * bound, "{weights:?} {path}: {found}, not {bound}");
        }
        assert!(values.iter().filter(|v| v.path.ends_with("bias")).all(|v| largest(&v.values) == 0.0));
    }
    for values in of(TextWeightInit::Normal { deviation: 0.3 }).iter().filter(|v| v.path.ends_with("weight"))
    {
        let square: f32 = values.values.iter().map(|x| x * x).sum();
        let deviation = (square / values.values.len() as f32).sqrt();
        assert!((deviation / 0.3 - 1.0).abs() < 0.1, "{}: {deviation}", values.path);
    }
}

#[test]
fn padding_without_a_vector_has_no_gradient_and_another_one_has() {
    let device = Device::flex().autodiff();
    for zero_padding in [true, false] {
        let layer = vec![embedding(4, zero_padding), MEAN, dense(1, None)];
        let model = model(&TextClassifierSpec { layer }, &device);
        let terms = TextLoss::default().terms(&model, &batch(3, 2), &mut Pass::evaluation(Compute::FP32));
        let mut gradients = terms[0].sum.clone().backward();
        let table = host_values(take_gradients(&model, &mut gradients).swap_remove(0).unwrap());
        assert_eq!(table[..4].iter().all(|x| *x == 0.0), zero_padding);
        assert!(table[4..].iter().any(|x| *x != 0.0));
    }
}

#[test]
fn one_output_is_the_score_of_the_second_class() {
    let model = model(&TextClassifierSpec { layer: published()[0].1.clone() }, &Device::flex());
    let rows = scores(&model, &batch(3, 2), &mut Pass::evaluation(Compute::FP32));
    assert_eq!((model.classes(), rows.len()), (2, 3));
    assert!(rows.iter().all(|row| row.len() == 2 && row[0] == 0.0 && row[1] != 0.0), "{rows:?}");
}

#[test]
fn rows_have_their_norm_after_an_update_and_others_keep_theirs() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        for (norm, layer) in [(Some(3.0), dense(4, Some(3.0))), (None, dense(4, None))] {
            let layer = vec![embedding(7, false), MEAN, layer.clone(), RELU, layer];
            let before = model(&TextClassifierSpec { layer }, &device);
            let (old, after) = (export(&before), TextLoss::default().commit(before));
            for (old, new) in old.iter().zip(export(&after)) {
                let rescaled = norm.is_some() && ["layers.2.weight", "output.weight"].contains(&&*old.path);
                assert_eq!(old.values != new.values, rescaled, "{}", old.path);
                let width = old.shape[old.shape.len() - 1];
                for (old, new) in old.values.chunks(width).zip(new.values.chunks(width)).filter(|_| rescaled)
                {
                    let length = new.iter().map(|x| x * x).sum::<f32>().sqrt();
                    assert!((length - 3.0).abs() < 1e-5, "{length}");
                    assert!(old.iter().zip(new).all(|(old, new)| old.signum() == new.signum()));
                }
            }
        }
    }
}

/// Outputs, and the gradient of the input, of layers as they are given.
fn run(layers: &[Layer], x: &[f32], shape: [usize; 3]) -> [Vec<f32>; 2] {
    let device = Device::flex().autodiff();
    let x = Tensor::<3>::from_data(TensorData::new(x.to_vec(), shape), &device).require_grad();
    let mut pass = Pass::training(Compute::FP32, 3, 4);
    let mut flow = Flow::Steps(x.clone());
    for layer in layers {
        flow = layer.forward(flow, &[], &mut pass);
    }
    let y = flow.row();
    let upstream = Tensor::from_inner(y.clone().inner().cos());
    let gradients = (y.clone() * upstream).sum().backward();
    [host_values(y.inner()), host_values(x.grad(&gradients).unwrap())]
}

#[test]
fn a_spec_that_is_too_large_to_count_has_the_largest_count() {
    let layer = serde_json::json!([
        {"kind": "embedding", "width": 4, "weights": {"kind": "uniform", "bound": 0.1}},
        {"kind": "lstm", "units": 4_000_000_000_u32, "gates": "sigmoid"},
        {"kind": "dense", "units": 1, "weights": {"kind": "xavier-uniform"}},
    ]);
    let spec = TextClassifierSpec { layer: serde_json::from_value(layer).unwrap() };
    assert_eq!(cost(&spec, 400, 10).unwrap().parameters, u64::MAX);
}

#[test]
fn rewriting_layers_keeps_every_number_and_gradient() {
    let key = Key::new(8, 0, 0);
    // Few steps: many equal maxima, many of them 0 after the ReLU.
    let x: Vec<f32> = (0..3 * 10 * 4).map(|i| (2.0 * key.normal(i)).round() - 1.0).collect();
    let plain = |steps: &[Step]| steps.iter().map(|step| Layer::from(*step)).collect::<Vec<_>>();
    let all = Step::Pool(PoolKind::Max, None);
    for (steps, changed) in [
        (&[Step::Relu, all, Step::Dropout(0.25)][..], &[all, Step::ReluDropout(0.25)][..]),
        (&[Step::Dropout(0.25), Step::Relu, all], &[Step::ReluDropout(0.25), all]),
        (
            &[Step::Relu, Step::Pool(PoolKind::Max, Some(3)), all],
            &[Step::Pool(PoolKind::Max, Some(3)), all, Step::Relu],
        ),
        (
            &[Step::Relu, Step::Pool(PoolKind::Average, None)],
            &[Step::Relu, Step::Pool(PoolKind::Average, None)],
        ),
    ] {
        let rewritten = fused(plain(steps));
        let left: Vec<Step> = rewritten.iter().filter_map(step).filter(|step| *step != Step::Done).collect();
        assert_eq!(left, changed);
        assert_eq!(run(&rewritten, &x, [3, 10, 4]), run(&plain(steps), &x, [3, 10, 4]), "{steps:?}");
    }
}

#[test]
fn dropout_layers_have_masks_of_their_own_and_evaluation_has_none() {
    let model = model(&TextClassifierSpec { layer: published()[2].1.clone() }, &Device::flex());
    let batch = batch(2, 2);
    let logits = |mut pass: Pass| scores(&model, &batch, &mut pass).concat();
    let training = |step| logits(Pass::training(Compute::FP32, 1, step));
    assert_eq!(training(0), training(0));
    assert_ne!(training(0), training(1));
    assert_ne!(training(0), logits(Pass::evaluation(Compute::FP32)));
}

#[test]
fn the_terms_are_sums_over_the_texts() {
    let device = Device::flex().autodiff();
    for (name, spec) in small() {
        let model = model(&spec, &device);
        let batch = batch(6, model.classes() as u32);
        assert_eq!(TextLoss::default().counts(&batch), [("loss", 6.0), ("top1", 6.0)]);
        let terms = TextLoss::default().terms(&model, &batch, &mut Pass::evaluation(Compute::FP32));
        let rows = scores(&model, &batch, &mut Pass::evaluation(Compute::FP32));
        let (mut nll, mut right) = (0.0, 0);
        for (row, &label) in rows.iter().zip(&batch.labels) {
            let mass: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            nll += mass.ln() - f64::from(row[label as usize]);
            right += u32::from(row.iter().all(|x| *x <= row[label as usize]));
        }
        let value = |i: usize| f64::from(host_values(terms[i].sum.clone().inner())[0]);
        assert!((value(0) - nll).abs() < 1e-5 * nll, "{name}: {} {nll}", value(0));
        assert_eq!(value(1), f64::from(right), "{name}");
        assert_eq!((terms[0].weight, terms[1].weight), (1.0, 0.0));
    }
}

#[test]
fn an_update_trains_every_parameter_in_every_type() {
    let device = Device::flex().autodiff();
    for (name, spec) in small() {
        let model = model(&spec, &device);
        let batch = batch(8, model.classes() as u32);
        for dtype in [FloatDType::F32, FloatDType::F16, FloatDType::BF16] {
            let terms = TextLoss::default().terms(&model, &batch, &mut Pass::training(Compute(dtype), 1, 0));
            let mut gradients = (terms[0].sum.clone() * 1024.0).backward();
            for ((path, _), gradient) in paths(&model).into_iter().zip(take_gradients(&model, &mut gradients))
            {
                let gradient = host_values(gradient.unwrap());
                assert!(gradient.iter().all(|x| x.is_finite()), "{name} {dtype:?} {path}");
                assert!(gradient.iter().any(|x| *x != 0.0), "{name} {dtype:?} {path}");
            }
        }
    }
}

#[test]
fn each_part_of_a_cross_validation_trains_its_own_model() {
    let device = Device::flex().autodiff();
    let layer = vec![embedding(6, false), MEAN, dense(3, Some(2.0))];
    let spec = TextClassifierSpec { layer };
    let model = TextModel::new(&spec, [POSITIONS, ROWS].map(|n| n as usize), 3, 1, &device);
    let due = 3 * cost(&spec, POSITIONS, u64::from(ROWS)).unwrap().parameters;
    assert_eq!(count(&model) as u64, due);
    let of = |fold: u32| TextBatch { fold, ..batch(4, 3) };
    let found = |fold: u32| scores(&model, &of(fold), &mut Pass::evaluation(Compute::FP32));
    assert_ne!(found(0), found(1), "the parts start apart");
    let loss = TextLoss::default();
    let terms = loss.terms(&model, &of(1), &mut Pass::training(Compute::FP32, 1, 0));
    let mut gradients = terms[0].sum.clone().backward();
    for ((path, _), gradient) in paths(&model).into_iter().zip(take_gradients(&model, &mut gradients)) {
        assert_eq!(gradient.is_some(), path.starts_with("folds.1."), "{path}");
    }
    let before = export(&model);
    let after = loss.commit(model);
    for (old, new) in before.iter().zip(export(&after)) {
        assert_eq!(old.values != new.values, old.path == "folds.1.output.weight", "{}", old.path);
    }
    // A second commit without a batch changes nothing, and so does one after a skipped update.
    let before = export(&after);
    loss.terms(&after, &of(2), &mut Pass::training(Compute::FP32, 1, 1));
    loss.discard();
    assert_eq!(export(&loss.commit(after)), before);
}
