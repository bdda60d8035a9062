use burn::tensor::{Device, FloatDType, TensorData};
use zoo_recipes::PoolKind;
use zoo_recipes::tasks::image_classification::{BiasInit, ClassifierLossSpec, FlattenOrder, WeightInit};

use super::*;
use crate::contract::Objective;
use crate::ops::Pooling;
use crate::parameters::{count, export, host_values, shapes as paths, take_gradients};
use crate::precision::{Compute, to_f32};
use crate::random::Key;

const RELU: ClassifierLayerSpec = ClassifierLayerSpec::Relu {};
const SIGMOID: ClassifierLayerSpec = ClassifierLayerSpec::Sigmoid {};

fn convolution(channels: u32, kernel: u32, padding: u32) -> ClassifierLayerSpec {
    let (weights, bias) = (WeightInit::XavierUniform, BiasInit::Torch);
    ClassifierLayerSpec::Convolution { channels, kernel, stride: 1, padding, weights, bias }
}

fn dense(units: u32) -> ClassifierLayerSpec {
    ClassifierLayerSpec::Dense { units, weights: WeightInit::XavierFanIn, bias: BiasInit::Zero }
}

fn pool(of: PoolKind) -> ClassifierLayerSpec {
    ClassifierLayerSpec::Pool { of, size: 2, stride: 2 }
}

fn flatten(order: FlattenOrder) -> ClassifierLayerSpec {
    ClassifierLayerSpec::Flatten { order }
}

fn dropout(rate: f64) -> ClassifierLayerSpec {
    ClassifierLayerSpec::Dropout { rate }
}

/// D2L's LeNet, Caffe's LeNet, Keras's `mnist_cnn` and `mnist_mlp`.
fn published() -> [(&'static str, Vec<ClassifierLayerSpec>, u64); 4] {
    let (max, average) = (pool(PoolKind::Max), pool(PoolKind::Average));
    let (first, last) = (flatten(FlattenOrder::ChannelsFirst), flatten(FlattenOrder::ChannelsLast));
    let d2l = vec![
        convolution(6, 5, 2),
        SIGMOID,
        average.clone(),
        convolution(16, 5, 0),
        SIGMOID,
        average,
        first.clone(),
        dense(120),
        SIGMOID,
        dense(84),
        SIGMOID,
        dense(10),
    ];
    let caffe = vec![
        convolution(20, 5, 0),
        max.clone(),
        convolution(50, 5, 0),
        max.clone(),
        first,
        dense(500),
        RELU,
        dense(10),
    ];
    let cnn = vec![
        convolution(32, 3, 0),
        RELU,
        convolution(64, 3, 0),
        RELU,
        max,
        dropout(0.25),
        last.clone(),
        dense(128),
        RELU,
        dropout(0.5),
        dense(10),
    ];
    let mlp = vec![last, dense(512), RELU, dropout(0.2), dense(512), RELU, dropout(0.2), dense(10)];
    [
        ("LeNet of D2L", d2l, 61_706),
        ("LeNet of Caffe", caffe, 431_080),
        ("mnist_cnn of Keras", cnn, 1_199_882),
        ("mnist_mlp of Keras", mlp, 669_706),
    ]
}

fn batch(pictures: usize, size: [usize; 3]) -> PictureBatch {
    let key = Key::new(3, 0, 0);
    let pixels = (0..pictures * size.iter().product::<usize>()).map(|i| key.uniform(i as u32));
    PictureBatch {
        pixels: pixels.collect(),
        size,
        labels: (0..pictures as u32).map(|i| i * 7 % 10).collect(),
    }
}

fn model(layer: Vec<ClassifierLayerSpec>, size: [usize; 3], device: &Device) -> Classifier {
    Classifier::new(&ClassifierSpec { layer }, size, 1, device)
}

#[test]
fn published_systems_have_their_number_of_parameters() {
    for (name, layer, due) in published() {
        let spec = ClassifierSpec { layer };
        assert_eq!(cost(&spec, [28, 28, 1]).unwrap().parameters, due, "{name}");
        let built = Classifier::new(&spec, [28, 28, 1], 1, &Device::flex());
        assert_eq!(count(&built) as u64, due, "{name}");
    }
}

#[test]
fn operations_are_the_products_of_a_picture() {
    let [(_, layer, _), ..] = published();
    let spec = ClassifierSpec { layer };
    // 28 x 28 x 6 x 25 + 10 x 10 x 16 x 150 + 400 x 120 + 120 x 84 + 84 x 10.
    assert_eq!(cost(&spec, [28, 28, 1]).unwrap().source_token, 416_520);
    assert!(cost(&spec, [9, 9, 1]).is_err());
}

#[test]
fn parameters_are_named_after_their_layers() {
    let [(_, layer, _), ..] = published();
    let names: Vec<String> = paths(&model(layer, [28, 28, 1], &Device::flex()))
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.ends_with("weight"))
        .collect();
    let due = ["layers.0", "layers.3", "layers.7", "layers.9", "output"];
    assert_eq!(names, due.map(|layer| format!("{layer}.weight")));
}

#[test]
fn weights_and_biases_start_within_their_bounds() {
    let largest = |weights: WeightInit, bias: BiasInit| {
        let layer = vec![
            ClassifierLayerSpec::Convolution {
                channels: 24,
                kernel: 3,
                stride: 1,
                padding: 0,
                weights,
                bias,
            },
            flatten(FlattenOrder::ChannelsLast),
            ClassifierLayerSpec::Dense { units: 100, weights, bias },
        ];
        let values = export(&model(layer, [4, 4, 8], &Device::flex()));
        let most = |path: &str| {
            let found = values.iter().find(|values| values.path == path).unwrap();
            found.values.iter().fold(0f32, |most, x| most.max(x.abs()))
        };
        ["layers.0.weight", "layers.0.bias", "output.weight", "output.bias"].map(most)
    };
    // Fans of the convolution: 72 and 216; of the dense layer: 96 and 100.
    for (weights, bounds) in [
        (WeightInit::XavierUniform, [6f32 / 288.0, 6.0 / 196.0]),
        (WeightInit::XavierFanIn, [3.0 / 72.0, 3.0 / 96.0]),
        (WeightInit::Torch, [1.0 / 72.0, 1.0 / 96.0]),
    ] {
        for (bias, biases) in [(BiasInit::Zero, [0.0; 2]), (BiasInit::Torch, [1f32 / 72.0, 1.0 / 96.0])] {
            let due = [bounds[0], biases[0], bounds[1], biases[1]].map(f32::sqrt);
            for (found, due) in largest(weights, bias).into_iter().zip(due) {
                assert!(found <= due && found >= 0.8 * due, "{weights:?} {bias:?}: {found}, not {due}");
            }
        }
    }
}

#[test]
fn the_order_of_a_row_is_that_of_the_spec() {
    // A picture of two rows, three columns and two channels: 10 for a row, 2 for a column.
    let pixels = [[[[0.0f32, 1.0], [2.0, 3.0], [4.0, 5.0]], [[10.0, 11.0], [12.0, 13.0], [14.0, 15.0]]]];
    let x = Tensor::<4>::from_data(pixels, &Device::flex());
    for (order, due) in [
        (FlattenOrder::ChannelsFirst, [0.0, 2.0, 4.0, 10.0, 12.0, 14.0, 1.0, 3.0, 5.0, 11.0, 13.0, 15.0]),
        (FlattenOrder::ChannelsLast, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]),
    ] {
        let layer: Layer = Step::Flatten(order).into();
        let mut pass = Pass::evaluation(Compute::FP32);
        assert_eq!(host_values(layer.forward(Flow::Picture(x.clone()), &mut pass).row()), due);
    }
}

/// Logits, and the gradient of the pixels, of layers as they are given.
fn run(layers: &[Layer], pixels: &[f32], shape: [usize; 4]) -> [Vec<f32>; 2] {
    let device = Device::flex().autodiff();
    let x = Tensor::<4>::from_data(TensorData::new(pixels.to_vec(), shape), &device).require_grad();
    let mut pass = Pass::training(Compute::FP32, 3, 4);
    let mut flow = Flow::Picture(x.clone());
    for layer in layers {
        flow = layer.forward(flow, &mut pass);
    }
    let y = flow.row();
    let upstream = Tensor::from_inner(y.clone().inner().cos());
    let gradients = (y.clone() * upstream).sum().backward();
    [host_values(y.inner()), host_values(x.grad(&gradients).unwrap())]
}

#[test]
fn rewriting_layers_keeps_every_number_and_gradient() {
    let key = Key::new(8, 0, 0);
    // Few steps: many equal maxima, many of them 0 after the ReLU.
    let pixels: Vec<f32> = (0..2 * 6 * 6 * 3).map(|i| (2.0 * key.normal(i)).round() - 1.0).collect();
    let layers = || {
        let max = Step::Pool(Pooling::square(PoolKind::Max, 2, 2));
        let steps = [Step::Relu, max, Step::Dropout(0.25), Step::Flatten(FlattenOrder::ChannelsLast)];
        steps.into_iter().map(Layer::from).collect::<Vec<_>>()
    };
    let shape = [2, 6, 6, 3];
    let rewritten = format!("{:?}", fused(layers()));
    assert!(rewritten.contains("ReluDropout(0.25)") && rewritten.contains("Done"), "{rewritten}");
    assert_eq!(run(&fused(layers()), &pixels, shape), run(&layers(), &pixels, shape));
}

#[test]
fn a_mean_stays_behind_its_relu() {
    let average = Step::Pool(Pooling::square(PoolKind::Average, 2, 2));
    let layers = || vec![Layer::from(Step::Relu), Layer::from(average)];
    assert_eq!(format!("{:?}", fused(layers())), format!("{:?}", layers()));
}

#[test]
fn dropout_layers_have_masks_of_their_own_and_evaluation_has_none() {
    let [_, _, _, (_, layer, _)] = published();
    let model = model(layer, [28, 28, 1], &Device::flex());
    let pixels = || batch(2, [28, 28, 1]).pixels(&Device::flex());
    // By reference: rustc 1.95 makes one of two equal passes that are moved (rust-lang/rust#158830).
    let logits = |pass: &mut Pass| host_values(model.forward(pixels(), pass));
    let training = |step| logits(&mut Pass::training(Compute::FP32, 1, step));
    assert_eq!(training(0), training(0));
    assert_ne!(training(0), training(1));
    assert_ne!(training(0), logits(&mut Pass::evaluation(Compute::FP32)));
    let layers = [Step::Dropout(0.5), Step::Dropout(0.5), Step::Flatten(FlattenOrder::ChannelsLast)];
    let layers: Vec<Layer> = layers.into_iter().map(Layer::from).collect();
    let [y, _] = run(&layers, &[1.0; 4000], [1, 1, 1, 4000]);
    // With one mask for both, half of the numbers would be kept.
    let kept = y.iter().filter(|y| **y != 0.0).count();
    assert!((900..1100).contains(&kept), "{kept}");
}

#[test]
fn the_terms_are_sums_over_the_pictures() {
    let [(_, layer, _), ..] = published();
    let device = Device::flex().autodiff();
    let model = model(layer, [28, 28, 1], &device);
    let loss = ClassifierLoss::new(&ClassifierLossSpec::CrossEntropy {});
    let batch = batch(6, [28, 28, 1]);
    assert_eq!(loss.counts(&batch), [("loss", 6.0), ("top1", 6.0)]);
    let terms = loss.terms(&model, &batch, &mut Pass::training(Compute::FP32, 1, 0));
    let rows = scores(&model, &batch, &mut Pass::evaluation(Compute::FP32));
    let (mut nll, mut right) = (0.0, 0);
    for (row, &label) in rows.iter().zip(&batch.labels) {
        let mass: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        nll += mass.ln() - f64::from(row[label as usize]);
        right += u32::from(row.iter().all(|x| *x <= row[label as usize]));
    }
    let value = |i: usize| f64::from(host_values(terms[i].sum.clone().inner())[0]);
    assert!((value(0) - nll).abs() < 1e-5 * nll, "{} {nll}", value(0));
    assert_eq!(value(1), f64::from(right));
    assert_eq!((terms[0].weight, terms[1].weight), (1.0, 0.0));
}

#[test]
fn an_update_trains_every_parameter_in_every_type() {
    let device = Device::flex().autodiff();
    for (name, layer, _) in published() {
        let model = model(layer, [28, 28, 1], &device);
        let batch = batch(8, [28, 28, 1]);
        let logits = |compute| {
            let mut pass = Pass::evaluation(compute);
            host_values(to_f32(model.forward(batch.pixels(&device), &mut pass)).inner())
        };
        let exact = logits(Compute::FP32);
        let size = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
        for (dtype, limit) in [(FloatDType::F32, 0.0), (FloatDType::F16, 4e-3), (FloatDType::BF16, 4e-2)] {
            let apart = logits(Compute(dtype))
                .iter()
                .zip(&exact)
                .map(|(a, b)| (a - b).abs() / size)
                .fold(0f32, |most, apart| if apart.is_nan() { f32::INFINITY } else { most.max(apart) });
            println!("{name} {dtype:?}: logits {apart:.1e} apart");
            assert!(apart <= limit, "{name} {dtype:?}: {apart}");
            let loss = ClassifierLoss::new(&ClassifierLossSpec::CrossEntropy {});
            let terms = loss.terms(&model, &batch, &mut Pass::training(Compute(dtype), 1, 0));
            let mut gradients = terms[0].sum.clone().backward();
            for ((path, _), gradient) in paths(&model).into_iter().zip(take_gradients(&model, &mut gradients))
            {
                let gradient = host_values(gradient.unwrap());
                assert!(gradient.iter().all(|x| x.is_finite()), "{name} {dtype:?} {path}");
                assert!(gradient.iter().any(|x| *x != 0.0), "{name} {dtype:?} {path}");
            }
        }
    }
}
