use burn::tensor::{Device, FloatDType};
use zoo_recipes::RecurrentBiases;
use zoo_recipes::tasks::language_modelling::{
    GptModelSpec, LanguageLossSpec, LanguageModelSpec, LayerNormLstmModelSpec, LossOver, LstmModelSpec,
    ProjectionSpec,
};

use super::*;
use crate::contract::{Objective, Running};
use crate::ops::Islands;
use crate::parameters::{count, export, host_values, import, shapes as paths, take_gradients};
use crate::precision::{Compute, to_f32};

const UNITS: usize = 11;

fn lstm(width: u32, layers: u32, tied: bool, biases: RecurrentBiases) -> LstmModelSpec {
    LstmModelSpec {
        width,
        units: width,
        layers,
        tied,
        dropout: 0.0,
        biases,
        bound: None,
        embedding_bound: 0.1,
        softmax_bias_bound: 0.0,
        forget_bias: None,
        projection: None,
    }
}

fn projected(width: u32, units: u32, layers: u32) -> LstmModelSpec {
    let projection = Some(ProjectionSpec { width, bound: 0.2 });
    LstmModelSpec {
        units,
        projection,
        bound: Some(0.2),
        ..lstm(width, layers, false, RecurrentBiases::OneOfZeros)
    }
}

fn gpt(width: u32, layers: u32, heads: u32, context: u32) -> GptModelSpec {
    GptModelSpec { width, layers, heads, context, dropout: 0.0, init_std: 0.02, epsilon: 1e-5 }
}

fn normed(width: u32, units: u32, layers: u32) -> LayerNormLstmModelSpec {
    LayerNormLstmModelSpec {
        width,
        units,
        layers,
        embedding_dropout: 0.0,
        candidate_dropout: 0.0,
        dropout: 0.0,
        forget_bias: 1.0,
        embedding_bound: 0.1,
        epsilon: 1e-12,
    }
}

/// Two windows of a text: the second one goes on where the first ends.
fn windows() -> [WindowBatch; 2] {
    let text = |row: usize, at: usize| ((7 * at * at + 3 * row + at / 3) % UNITS) as u32;
    [0, 4].map(|from| {
        let units = |shift: usize| {
            (0..3).flat_map(|row| (0..4).map(move |at| text(row, from + at + shift))).collect::<Vec<_>>()
        };
        WindowBatch { inputs: units(0), targets: units(1), rows: 3, begins: from == 0 }
    })
}

fn small(rows: usize, device: &Device) -> LanguageModel {
    let spec = LanguageModelSpec::Lstm(lstm(8, 2, true, RecurrentBiases::Two));
    LanguageModel::new(&spec, UNITS, rows, 1, device)
}

fn loss(over: LossOver, carries: bool) -> LanguageLoss {
    LanguageLoss::new(&LanguageLossSpec::CrossEntropy { over }, 4, carries)
}

fn value(loss: &LanguageLoss, model: &LanguageModel, batch: &WindowBatch, pass: &mut Pass) -> f32 {
    let sum = loss.terms(model, batch, pass).remove(0).sum;
    host_values(if sum.device().is_autodiff() { sum.inner() } else { sum })[0]
}

#[test]
fn published_models_have_their_number_of_parameters() {
    let tutorial = |width| lstm(width, 2, false, RecurrentBiases::OneOfZeros);
    let torch = |width, tied| lstm(width, 2, tied, RecurrentBiases::Two);
    let models = [
        (LanguageModelSpec::Lstm(tutorial(200)), 10_000, 4_651_600),
        (LanguageModelSpec::Lstm(tutorial(650)), 10_000, 19_775_200),
        (LanguageModelSpec::Lstm(tutorial(1500)), 10_000, 66_022_000),
        (LanguageModelSpec::Lstm(torch(200, false)), 10_000, 4_653_200),
        (LanguageModelSpec::Lstm(torch(200, true)), 10_000, 2_653_200),
        (LanguageModelSpec::Lstm(torch(650, false)), 10_000, 19_780_400),
        (LanguageModelSpec::Lstm(torch(650, true)), 10_000, 13_280_400),
        (LanguageModelSpec::Lstm(torch(1500, false)), 10_000, 66_034_000),
        (LanguageModelSpec::Lstm(torch(1500, true)), 10_000, 51_034_000),
        // OpenSeq2Seq on WikiText-103: the size of its text, 123.7 million, and that of its
        // configuration.
        (LanguageModelSpec::LayerNormLstm(normed(400, 1024, 3)), 267_340, 123_727_532),
        (LanguageModelSpec::LayerNormLstm(normed(320, 1024, 3)), 267_340, 101_453_772),
        // Its small test: (64 + 128) x 512, (128 + 64) x 256, 10 x (128 + 64), 1,000 x 65.
        (LanguageModelSpec::LayerNormLstm(normed(64, 128, 2)), 1000, 214_376),
        (LanguageModelSpec::Gpt(gpt(128, 4, 4, 64)), 65, 804_096),
        (LanguageModelSpec::Gpt(gpt(384, 6, 6, 256)), 65, 10_745_088),
        // bigLSTM and LSTM-2048-512 on the One Billion Word Benchmark, and the first with 1,000
        // words.
        (LanguageModelSpec::Lstm(projected(1024, 8192, 2)), 793_470, 1_776_880_510),
        (LanguageModelSpec::Lstm(projected(512, 2048, 1)), 793_470, 822_752_126),
        (LanguageModelSpec::Lstm(projected(512, 2048, 1)), 1000, 10_470_376),
    ];
    for (spec, units, due) in models {
        assert_eq!(cost(&spec, units as u64).parameters, due, "{spec:?}");
        if due < 12_000_000 {
            let model = LanguageModel::new(&spec, units, 0, 1, &Device::flex());
            assert_eq!(count(&model) as u64, due, "{spec:?}");
        }
    }
}

#[test]
fn operations_are_the_products_of_an_input() {
    let spec = lstm(200, 2, true, RecurrentBiases::Two);
    // Two layers of 400 x 800, and the softmax.
    assert_eq!(cost(&LanguageModelSpec::Lstm(spec), 10_000).target_token, 2 * 320_000 + 2_000_000);
    // Four blocks of 12 width^2, and the softmax.
    assert_eq!(cost(&LanguageModelSpec::Gpt(gpt(128, 4, 4, 64)), 65).target_token, 4 * 196_608 + 8320);
}

#[test]
fn training_begins_a_window_with_the_state_of_the_last_accepted_one() {
    let device = Device::flex().autodiff();
    let [first, second] = windows();
    let loss = loss(LossOver::Mean, true);
    let training = || Pass::training(Compute::FP32, 1, 0);
    let model = small(3, &device);
    let zero = value(&loss, &model, &WindowBatch { begins: true, ..second.clone() }, &mut training());
    loss.discard();
    value(&loss, &model, &first, &mut training());
    let model = loss.commit(model);
    let carried = value(&loss, &model, &second, &mut training());
    assert_ne!(carried, zero);
    loss.discard();
    assert_eq!(value(&loss, &model, &second, &mut training()), carried, "a skipped update keeps the state");
    // One window of eight steps is the same text.
    let whole: Vec<u32> = [0, 1, 2]
        .iter()
        .flat_map(|row| [&first, &second].map(|batch| &batch.inputs[4 * row..][..4]).concat())
        .collect();
    let (logits, _) = model.forward(&whole, 3, None, &mut training());
    let (again, _) = model.forward(&second.inputs, 3, model.carried(), &mut training());
    let (logits, again) = (host_values(logits.inner()), host_values(again.inner()));
    for row in 0..3 {
        let late = &logits[(8 * row + 4) * UNITS..][..4 * UNITS];
        assert_eq!(late, &again[4 * row * UNITS..][..4 * UNITS]);
    }
    // The state is part of the weights, and without a gradient.
    let resumed = import(small(3, &device), export(&model)).unwrap();
    assert_eq!(value(&loss, &resumed, &second, &mut training()), carried);
    let names: Vec<String> = paths(&model).into_iter().map(|(path, _)| path).collect();
    let sum = loss.terms(&model, &second, &mut training()).remove(0).sum;
    let gradients = take_gradients(&model, &mut sum.backward());
    for (name, gradient) in names.iter().zip(gradients) {
        assert_eq!(gradient.is_none(), name.starts_with("state."), "{name}");
    }
    assert_eq!(names.iter().filter(|name| name.starts_with("state.")).count(), 4, "{names:?}");
}

#[test]
fn evaluation_carries_its_own_state_or_none() {
    let device = Device::flex();
    let [first, second] = windows();
    let alone = WindowBatch { begins: true, ..second.clone() };
    let model = small(3, &device);
    let evaluation = || Pass::evaluation(Compute::FP32);
    for carries in [true, false] {
        let loss = loss(LossOver::Mean, carries);
        let zero = value(&loss, &model, &alone, &mut evaluation());
        value(&loss, &model, &first, &mut evaluation());
        let after = value(&loss, &model, &second, &mut evaluation());
        assert_eq!(after != zero, carries);
        let (_, state) = losses(&model, &first, None, &mut evaluation());
        let (by_hand, _) = losses(&model, &second, carries.then_some(state), &mut evaluation());
        assert_eq!(by_hand, f64::from(after));
        assert_eq!(export(&loss.commit(model.clone())), export(&model), "training has no part in it");
    }
}

#[test]
fn a_sum_over_steps_weighs_the_mean_by_the_steps() {
    let device = Device::flex().autodiff();
    let [first, _] = windows();
    for (over, weight) in [(LossOver::Mean, 1.0), (LossOver::SumOfSteps, 4.0)] {
        let loss = loss(over, true);
        let term = loss.terms(&small(3, &device), &first, &mut Pass::training(Compute::FP32, 1, 0)).remove(0);
        assert_eq!((term.name, term.weight), ("nll", weight));
        assert_eq!(loss.counts(&first), [("nll", 12.0)]);
    }
}

#[test]
fn a_transformer_does_not_look_ahead() {
    let spec = LanguageModelSpec::Gpt(gpt(16, 2, 4, 8));
    let model = LanguageModel::new(&spec, UNITS, 0, 1, &Device::flex());
    let logits = |inputs: &[u32], rows| {
        host_values(model.forward(inputs, rows, None, &mut Pass::evaluation(Compute::FP32)).0)
    };
    let [first, _] = windows();
    let whole = logits(&first.inputs, 3);
    let mut changed = first.inputs.clone();
    changed[4 * 2 - 1] = (changed[4 * 2 - 1] + 1) % UNITS as u32;
    let other = logits(&changed, 3);
    for (at, (one, other)) in whole.chunks(UNITS).zip(other.chunks(UNITS)).enumerate() {
        assert_eq!(one == other, at != 7, "row {at}");
    }
}

#[test]
fn dropout_is_new_at_each_step_and_off_in_evaluation() {
    let spec = LstmModelSpec { dropout: 0.5, ..lstm(8, 2, true, RecurrentBiases::Two) };
    let specs = [
        LanguageModelSpec::Lstm(spec),
        LanguageModelSpec::Gpt(GptModelSpec { dropout: 0.5, ..gpt(16, 2, 4, 8) }),
        LanguageModelSpec::LayerNormLstm(LayerNormLstmModelSpec { dropout: 0.5, ..normed(8, 8, 2) }),
        LanguageModelSpec::LayerNormLstm(LayerNormLstmModelSpec {
            embedding_dropout: 0.5,
            ..normed(8, 8, 2)
        }),
        LanguageModelSpec::LayerNormLstm(LayerNormLstmModelSpec {
            candidate_dropout: 0.5,
            ..normed(8, 8, 2)
        }),
    ];
    let [first, _] = windows();
    for spec in specs {
        let model = LanguageModel::new(&spec, UNITS, 0, 1, &Device::flex());
        let logits = |mut pass: Pass| host_values(model.forward(&first.inputs, 3, None, &mut pass).0);
        let training = |step| logits(Pass::training(Compute::FP32, 1, step));
        assert_eq!(training(0), training(0));
        assert_ne!(training(0), training(1));
        assert_ne!(training(0), logits(Pass::evaluation(Compute::FP32)));
    }
}

#[test]
fn every_parameter_is_trained_in_every_type() {
    let device = Device::flex().autodiff();
    let [first, _] = windows();
    for spec in [
        LanguageModelSpec::Lstm(lstm(8, 2, false, RecurrentBiases::OneOfZeros)),
        LanguageModelSpec::LayerNormLstm(normed(8, 12, 2)),
        LanguageModelSpec::Lstm(projected(8, 12, 2)),
        LanguageModelSpec::Gpt(gpt(16, 2, 4, 8)),
    ] {
        let model = LanguageModel::new(&spec, UNITS, 3, 1, &device);
        let logits = |compute| {
            let (logits, _) = model.forward(&first.inputs, 3, None, &mut Pass::evaluation(compute));
            host_values(to_f32(logits).inner())
        };
        let exact = logits(Compute::FP32);
        let size = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
        for (dtype, limit) in [(FloatDType::F32, 0.0), (FloatDType::F16, 4e-3), (FloatDType::BF16, 4e-2)] {
            let found = logits(Compute(dtype));
            let apart = found.iter().zip(&exact).map(|(a, b)| (a - b).abs() / size);
            let apart = apart.fold(0f32, |most, x| if x.is_nan() { f32::INFINITY } else { most.max(x) });
            assert!(apart <= limit, "{spec:?} {dtype:?}: {apart}");
            let mut pass = Pass::training(Compute(dtype), 1, 0);
            let sum = loss(LossOver::Mean, true).terms(&model, &first, &mut pass).remove(0).sum;
            let gradients = take_gradients(&model, &mut (sum * 16.0).backward());
            for ((path, _), gradient) in paths(&model).into_iter().zip(gradients) {
                let Some(gradient) = gradient.map(host_values) else {
                    assert!(path.starts_with("state."), "{path}");
                    continue;
                };
                assert!(gradient.iter().all(|x| x.is_finite()), "{spec:?} {dtype:?} {path}");
                assert!(gradient.iter().any(|x| *x != 0.0), "{spec:?} {dtype:?} {path}");
            }
        }
    }
}

#[test]
fn each_island_that_a_gpt_leaves_changes_its_training_a_little() {
    let device = Device::flex().autodiff();
    let [first, _] = windows();
    let spec = LanguageModelSpec::Gpt(GptModelSpec { init_std: 0.3, ..gpt(16, 2, 4, 8) });
    let model = LanguageModel::new(&spec, UNITS, 0, 1, &device);
    // The loss, and the gradient of every parameter.
    let trained = |islands: Islands| -> Vec<Vec<f32>> {
        let mut pass = Pass::training(Compute(FloatDType::F16), 1, 0).with_islands(islands);
        let sum = loss(LossOver::Mean, true).terms(&model, &first, &mut pass).remove(0).sum;
        let gradients = take_gradients(&model, &mut (sum.clone() * 16.0).backward());
        let gradients = gradients.into_iter().flatten().map(host_values);
        std::iter::once(host_values(sum.inner())).chain(gradients).collect()
    };
    let exact = trained(Islands::ALL);
    for islands in [
        Islands { softmax: false, ..Islands::ALL },
        Islands { norms: false, ..Islands::ALL },
        Islands { loss: false, ..Islands::ALL },
        Islands { softmax: false, norms: false, loss: false },
    ] {
        let found = trained(islands);
        assert_ne!(found, exact, "{islands:?}");
        for (found, exact) in found.iter().zip(&exact) {
            let largest = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
            for (found, exact) in found.iter().zip(exact) {
                assert!((found - exact).abs() <= 0.03 * largest, "{islands:?}: {found} {exact}");
            }
        }
    }
}

#[test]
fn the_lookup_alone_reads_the_dropped_embedding_which_is_one_for_all_rows() {
    let device = Device::flex().autodiff();
    let spec = LayerNormLstmModelSpec { embedding_dropout: 0.5, ..normed(8, 8, 1) };
    let model = LanguageModel::new(&LanguageModelSpec::LayerNormLstm(spec), UNITS, 0, 1, &device);
    let inputs = vec![1, 2, 3, 1, 2, 3];
    let mut pass = Pass::training(Compute::FP32, 1, 0);
    let (logits, _) = model.forward(&inputs, 2, None, &mut pass);
    let found = host_values(logits.inner());
    // Two rows that read the same units read the same dropped vectors.
    assert_eq!(found[..3 * UNITS], found[3 * UNITS..]);
    let batch = WindowBatch { inputs, targets: vec![2, 3, 4, 2, 3, 4], rows: 2, begins: true };
    let mut pass = Pass::training(Compute::FP32, 1, 0);
    let sum = loss(LossOver::Mean, false).terms(&model, &batch, &mut pass).remove(0).sum;
    let gradients = take_gradients(&model, &mut sum.backward());
    let at = paths(&model).iter().position(|(path, _)| path == "embedding.weight").unwrap();
    let gradient = host_values(gradients[at].clone().unwrap());
    // Units that are not read have the softmax's gradient alone: no element is dropped there.
    assert!(gradient[5 * 8..].iter().all(|x| *x != 0.0), "{gradient:?}");
}

#[test]
fn a_layer_normalised_lstm_goes_on_with_the_state_that_it_is_given() {
    let spec = LanguageModelSpec::LayerNormLstm(normed(8, 12, 2));
    let model = LanguageModel::new(&spec, UNITS, 3, 1, &Device::flex());
    assert!(model.carried().is_none(), "training begins each window with zeros");
    let mut pass = Pass::evaluation(Compute::FP32);
    let inputs: Vec<u32> = (0..8).collect();
    let (whole, _) = model.forward(&inputs, 1, None, &mut pass);
    let (_, state) = model.forward(&inputs[..5], 1, None, &mut pass);
    let (rest, _) = model.forward(&inputs[5..], 1, Some(state), &mut pass);
    assert_eq!(host_values(whole)[5 * UNITS..], host_values(rest));
}

fn sampled(draws: u32) -> LanguageLoss {
    let spec = LanguageLossSpec::SampledSoftmax { over: LossOver::Mean, sampled: 5, draws };
    LanguageLoss::new(&spec, 4, true)
}

#[test]
fn a_sampled_softmax_is_that_of_training_alone_and_new_at_each_step() {
    let device = Device::flex().autodiff();
    let [first, _] = windows();
    let model = LanguageModel::new(&LanguageModelSpec::Lstm(projected(8, 12, 2)), UNITS, 3, 1, &device);
    let at = |step| Pass::training(Compute::FP32, 1, step);
    for draws in [1, 3] {
        let found = |step| value(&sampled(draws), &model, &first, &mut at(step));
        assert_eq!(found(0), found(0));
        assert_ne!(found(0), found(1), "other candidates");
    }
    assert_ne!(
        value(&sampled(1), &model, &first, &mut at(0)),
        value(&sampled(3), &model, &first, &mut at(0)),
        "each part of the rows has its own"
    );
    let whole = value(&loss(LossOver::Mean, true), &model, &first, &mut at(0));
    assert_eq!(value(&sampled(3), &model, &first, &mut Pass::evaluation(Compute::FP32)), whole);
    let term = sampled(3).terms(&model, &first, &mut at(0)).remove(0);
    assert_eq!(
        (term.name, sampled(3).counts(&first)),
        ("loss", vec![("loss", 12.0)]),
        "it is not a likelihood"
    );
}

#[test]
fn every_parameter_of_a_sampled_model_is_trained_in_every_type() {
    let device = Device::flex().autodiff();
    let [first, _] = windows();
    let spec = LanguageModelSpec::Lstm(projected(8, 12, 2));
    let model = LanguageModel::new(&spec, UNITS, 3, 1, &device);
    for dtype in [FloatDType::F32, FloatDType::F16, FloatDType::BF16] {
        let mut pass = Pass::training(Compute(dtype), 1, 0);
        let sum = sampled(3).terms(&model, &first, &mut pass).remove(0).sum;
        let gradients = take_gradients(&model, &mut (sum * 16.0).backward());
        for ((path, _), gradient) in paths(&model).into_iter().zip(gradients) {
            let Some(gradient) = gradient.map(host_values) else {
                assert!(path.starts_with("state."), "{path}");
                continue;
            };
            assert!(gradient.iter().all(|x| x.is_finite()), "{dtype:?} {path}");
            assert!(gradient.iter().any(|x| *x != 0.0), "{dtype:?} {path}");
        }
    }
}

#[test]
fn logits_in_parts_have_the_loss_of_all_at_once() {
    let model = small(3, &Device::flex());
    let [first, _] = windows();
    let mut pass = Pass::evaluation(Compute::FP32);
    let (outputs, _) = model.outputs(&first.inputs, 3, None, &mut pass);
    let of = |part: usize| {
        host_values(super::loss::summed(outputs.clone(), &first.targets, model.softmax(), part, &pass))[0]
    };
    let whole = of(first.targets.len());
    for part in [1, 5] {
        assert!((of(part) - whole).abs() < 1e-5 * whole, "{part}: {} {whole}", of(part));
    }
}

#[test]
fn inputs_without_a_target_do_not_count() {
    let model = small(3, &Device::flex());
    let [first, _] = windows();
    let mut cut = first.clone();
    // The second row ends after one unit, the third has none.
    cut.targets[5..].fill(NO_TARGET);
    let whole = loss(LossOver::Mean, true);
    assert_eq!(whole.counts(&cut), [("nll", 5.0)]);
    let rows = |from: usize, steps: usize| WindowBatch {
        inputs: first.inputs[from..from + steps].to_vec(),
        targets: first.targets[from..from + steps].to_vec(),
        rows: 1,
        begins: true,
    };
    let of = |batch: &WindowBatch| losses(&model, batch, None, &mut Pass::evaluation(Compute::FP32)).0;
    let due = of(&rows(0, 4)) + of(&rows(4, 1));
    assert!((of(&cut) - due).abs() < 1e-5 * due, "{} {due}", of(&cut));
}
