use burn::module::Param;
use burn::tensor::{FloatDType, TensorData};
use safetensors::SafeTensors;
use zoo_models::Term;
use zoo_models::parameters::reads;
use zoo_recipes::{LossScalingSpec, Velocity};

use super::*;
use crate::flat::as_on_a_device;
use crate::parts::Unwatched;
use crate::reduce::Local;

#[derive(Module, Debug)]
struct Line {
    slope: Param<Tensor<2>>,
    shift: Param<Tensor<1>>,
}

impl Line {
    fn new() -> Self {
        let device = Device::flex().autodiff();
        Self {
            slope: Param::from_tensor(Tensor::from_data([[0.5f32, -1.0], [2.0, 0.25]], &device)),
            shift: Param::from_tensor(Tensor::from_data([0.1f32, 0.2], &device)),
        }
    }

    fn weights(self) -> Vec<f32> {
        let parts = [self.slope.val().flatten::<1>(0, 1), self.shift.val()];
        parts.map(|part| parameters::host_values(part.inner())).concat()
    }
}

/// Sums of squares and of magnitudes of the line's output: two terms to read from the device.
struct Sums;

impl Objective<Line, f32> for Sums {
    fn counts(&self, _: &f32) -> Vec<(&'static str, f64)> {
        vec![("squares", 2.0), ("magnitudes", 2.0)]
    }

    fn terms(&self, model: &Line, batch: &f32, _: &mut Pass) -> Vec<Term> {
        let x = Tensor::<2>::from_data([[*batch, 1.0]], &model.slope.val().device());
        let y = (x.matmul(model.slope.val()) + model.shift.val().unsqueeze()).flatten::<1>(0, 1);
        vec![
            Term { name: "squares", sum: (y.clone() * y.clone()).sum(), weight: 1.0 },
            Term { name: "magnitudes", sum: y.abs().sum(), weight: 0.5 },
        ]
    }
}

fn l2(scale: f64, recurrent: bool, norm_scales: bool) -> RegularizerSpec {
    RegularizerSpec::L2 { scale, recurrent, embeddings: true, norm_scales }
}

/// Two updates of two micro-batches each, with every mechanism of an update. Returns their reports
/// and the weights.
fn two_updates(rule: &OptimizerSpec, scaling: &LossScalingSpec) -> (Vec<PhaseReport>, Vec<f32>) {
    let scaler = LossScaler::new(scaling).unwrap();
    let schedule = ScheduleSpec::Fixed { lr: 0.1 };
    let phase = Phase::single(Box::new(Sums), rule, &schedule, scaler, None).unwrap();
    let mut phase = phase.clipped(Some(0.5)).regularized(Some(&l2(0.01, true, false)));
    let mut model = Line::new();
    let mut reports = Vec::new();
    for update in 0..2u8 {
        let batches: Vec<_> =
            (0..2u8).map(|i| MicroBatch { position: i.into(), batch: f32::from(update + i) }).collect();
        let around = Surroundings {
            compute: Compute(FloatDType::F32),
            seed: 1,
            micro_step: 2 * u64::from(update),
            group: 2,
        };
        let before = reads();
        let (next, report) =
            run_phase(&mut phase, (0, 1), model, &batches, around, &mut Local, &mut Unwatched).unwrap();
        assert_eq!(reads() - before, 1, "loss, norm and finiteness are read together: {rule:?}");
        (model, reports) = (next, [reports, vec![report]].concat());
    }
    (reports, model.weights())
}

#[test]
fn an_update_on_a_device_reads_once_and_gives_what_the_host_gives() {
    let adam = OptimizerSpec::Adam {
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        epsilon_place: zoo_recipes::EpsilonPlace::default(),
        weight_decay: 0.0,
    };
    let rules = [
        adam,
        OptimizerSpec::Sgd {
            momentum: 0.9,
            weight_decay: 0.0,
            nesterov: false,
            velocity: Velocity::Gradients,
        },
    ];
    for (rule, scaling) in rules.iter().flat_map(|rule| {
        [LossScalingSpec::None, LossScalingSpec::Static { scale: 8.0 }].map(|scaling| (rule, scaling))
    }) {
        let (reports, weights) = as_on_a_device(|| two_updates(rule, &scaling));
        let (expected, expected_weights) = two_updates(rule, &scaling);
        assert!(expected.iter().all(|report| report.grad_norm > 0.5), "clipped: {expected:?}");
        // The host sums squares in FP64.
        for (found, expected) in reports.iter().zip(&expected) {
            assert!((found.grad_norm / expected.grad_norm - 1.0).abs() < 1e-6, "{found:?} {expected:?}");
            assert_eq!(found.terms, expected.terms);
        }
        for (found, expected) in weights.iter().zip(&expected_weights) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert_ne!(weights, Line::new().weights());
    }
}

/// A sum over a batch's numbers, whose count is their number.
struct Weighted;

impl Objective<Line, Vec<f32>> for Weighted {
    fn counts(&self, batch: &Vec<f32>) -> Vec<(&'static str, f64)> {
        vec![("shifts", batch.len() as f64), ("seen", batch.len() as f64)]
    }

    fn terms(&self, model: &Line, batch: &Vec<f32>, _: &mut Pass) -> Vec<Term> {
        let shift = model.shift.val();
        let all: f32 = batch.iter().sum();
        let seen = Tensor::from_data([batch.len() as f32], &shift.device());
        vec![
            Term { name: "shifts", sum: (shift * all).sum(), weight: 1.0 },
            Term { name: "seen", sum: seen, weight: 0.0 },
        ]
    }
}

/// Batches `[1, 2, 3]` and `[10]`: 16 / 4 = 4 over the update, (2 + 10) / 2 = 6 as the mean of the
/// batches' means. The batch `[]` adds nothing, and counts as one of three.
#[test]
fn the_mean_over_an_update_is_of_all_its_tokens_or_of_its_batches_means() {
    let (long, short, none) = (vec![1.0, 2.0, 3.0], vec![10.0], vec![]);
    let batches = |given: &[&Vec<f32>]| -> Vec<MicroBatch<Vec<f32>>> {
        (0..).zip(given).map(|(position, batch)| MicroBatch { position, batch: (*batch).clone() }).collect()
    };
    for (mean, given, expected) in [
        (LossMean::WholeUpdate, vec![&long, &short], 4.0),
        (LossMean::OfBatches, vec![&long, &short], 6.0),
        (LossMean::WholeUpdate, vec![&long, &short, &none], 4.0),
        (LossMean::OfBatches, vec![&long, &short, &none], 4.0),
        (LossMean::OfBatches, vec![&long, &long], 2.0),
    ] {
        for scale in [1.0, 8.0] {
            let rule = OptimizerSpec::Sgd {
                momentum: 0.0,
                weight_decay: 0.0,
                nesterov: false,
                velocity: Velocity::Gradients,
            };
            let scaler = LossScaler::new(&LossScalingSpec::Static { scale }).unwrap();
            let schedule = ScheduleSpec::Fixed { lr: 0.1 };
            let phase = Phase::single(Box::new(Weighted), &rule, &schedule, scaler, None).unwrap();
            let mut phase = phase.averaged(mean);
            let group = given.len() as u64;
            let around = Surroundings { compute: Compute::FP32, seed: 1, micro_step: 0, group };
            let before = Line::new().weights();
            let (moved, report) = run_phase(
                &mut phase,
                (0, 1),
                Line::new(),
                &batches(&given),
                around,
                &mut Local,
                &mut Unwatched,
            )
            .unwrap();
            let after = moved.weights();
            for shift in [4, 5] {
                assert!((before[shift] - after[shift] - 0.1 * expected).abs() < 1e-5, "{mean:?} {given:?}");
            }
            // The reported loss is the one whose gradient was taken; counts and other terms are
            // those of the update.
            let tokens: f64 = given.iter().map(|batch| batch.len() as f64).sum();
            assert!((report.loss() - f64::from(before[4] + before[5]) * f64::from(expected)).abs() < 1e-5);
            assert_eq!((report.terms[0].count, report.terms[1].sum), (tokens, tokens));
        }
    }
}

/// One tensor whose gradient is given.
#[derive(Module, Debug)]
struct Given {
    weight: Param<Tensor<2>>,
}

struct Times;

impl Objective<Given, Vec<f32>> for Times {
    fn counts(&self, _: &Vec<f32>) -> Vec<(&'static str, f64)> {
        vec![("sum", 1.0)]
    }

    fn terms(&self, model: &Given, gradient: &Vec<f32>, _: &mut Pass) -> Vec<Term> {
        let weight = model.weight.val();
        let gradient = TensorData::new(gradient.clone(), weight.dims());
        let gradient = Tensor::<2>::from_data(gradient, &weight.device());
        vec![Term { name: "sum", sum: (weight * gradient).sum(), weight: 1.0 }]
    }
}

/// `tests/reference/optimizers.py` computes in FP64. Weights of size 1 differ by at most 1e-6 after
/// five updates in FP32.
#[test]
fn adaptive_rates_are_those_of_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/optimizers.safetensors");
    let bytes = std::fs::read(path).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let described: serde_json::Value =
        serde_json::from_str(&metadata.metadata().as_ref().unwrap()["zoo"]).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let values = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).unwrap().data().to_vec();
        data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    };
    let (gradients, rates) = (values("gradients"), values("learning_rates"));
    let mut followed = 0;
    for (name, larc) in described["larc"].as_object().unwrap() {
        let larc: LarcSpec = serde_json::from_value(larc.clone()).unwrap();
        let rule = OptimizerSpec::Sgd {
            momentum: 0.9,
            weight_decay: 0.0,
            nesterov: false,
            velocity: Velocity::Gradients,
        };
        let scaler = LossScaler::new(&LossScalingSpec::None).unwrap();
        let fixed = |lr: f32| ScheduleSpec::Fixed { lr: f64::from(lr) };
        let phase = Phase::single(Box::new(Times), &rule, &fixed(0.1), scaler, None).unwrap();
        let mut phase = phase.adapted(Some(&larc));
        let weight = TensorData::new(values("weight"), [7, 5]);
        let mut model =
            Given { weight: Param::from_tensor(Tensor::from_data(weight, &Device::flex().autodiff())) };
        let all = values(&format!("{name}/weights"));
        for (update, expected) in all.chunks_exact(35).enumerate() {
            phase.schedule = Schedule::new(&fixed(rates[update]), None).unwrap();
            let batches = [MicroBatch { position: 0, batch: gradients[35 * update..][..35].to_vec() }];
            let around = Surroundings { compute: Compute::FP32, seed: 1, micro_step: 0, group: 1 };
            let (moved, report) =
                run_phase(&mut phase, (0, 1), model, &batches, around, &mut Local, &mut Unwatched).unwrap();
            assert!(!report.skipped);
            model = moved;
            let found = parameters::host_values(model.weight.val().inner());
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6, "{name} {update}: {found} {expected}");
            }
            followed += 1;
        }
    }
    assert_eq!(followed, 10);
}

/// Weights and velocity after updates that each subtract `steps` from weights that are 1. The
/// learning rate is 1.
fn stepped(weights: Compute, momentum: f64, steps: &[f32], updates: u64) -> (Vec<f32>, Vec<f32>) {
    let rule =
        OptimizerSpec::Sgd { momentum, weight_decay: 0.0, nesterov: false, velocity: Velocity::Gradients };
    let scaler = LossScaler::new(&LossScalingSpec::None).unwrap();
    let schedule = ScheduleSpec::Fixed { lr: 1.0 };
    let phase = Phase::single(Box::new(Times), &rule, &schedule, scaler, None).unwrap();
    let mut phase = phase.with_weights(weights);
    let ones = TensorData::new(vec![1f32; steps.len()], [1, steps.len()]);
    let mut model = Given { weight: Param::from_tensor(Tensor::from_data(ones, &Device::flex().autodiff())) };
    for micro_step in 0..updates {
        let batches = [MicroBatch { position: 0, batch: steps.to_vec() }];
        let around = Surroundings { compute: Compute::FP32, seed: 1, micro_step, group: 1 };
        let before = reads();
        let (moved, report) =
            run_phase(&mut phase, (0, 1), model, &batches, around, &mut Local, &mut Unwatched).unwrap();
        assert!(!report.skipped);
        assert_eq!(reads() - before, 1, "rounding reads nothing from the device");
        model = moved;
    }
    let moments = phase.optimizer.export().moments.into_iter().flat_map(|moment| moment.values);
    (parameters::host_values(model.weight.val().inner()), moments.collect())
}

/// Values above 1 are 2^-10 apart in fp16 and 2^-7 in bf16, those below 1 half of that. The middle
/// of two values goes to the even one, which 1 is.
#[test]
fn without_masters_an_update_below_half_of_the_unit_is_lost_and_one_above_is_kept() {
    for (half, unit) in [(FloatDType::F16, 2f32.powi(-10)), (FloatDType::BF16, 2f32.powi(-7))] {
        let steps = [-0.4 * unit, -0.5 * unit, -0.6 * unit, -unit, 0.2 * unit, 0.25 * unit, 0.3 * unit];
        let half = Compute(half);
        let due = [1.0, 1.0, 1.0 + unit, 1.0 + unit, 1.0, 1.0, 1.0 - unit / 2.0];
        let (found, _) = stepped(half, 0.0, &steps, 1);
        assert_eq!(found, due, "{half:?}");
        assert_eq!(as_on_a_device(|| stepped(half, 0.0, &steps, 1)).0, due, "{half:?}");
        // Masters add up what is lost: five updates of 0.4 units are two units.
        let (found, _) = stepped(half, 0.0, &steps, 5);
        assert_eq!((found[0], found[1]), (1.0, 1.0), "{half:?}");
        let (masters, _) = stepped(Compute::FP32, 0.0, &steps, 5);
        assert!((masters[0] - (1.0 + 2.0 * unit)).abs() < 1e-6, "{masters:?}");
    }
}

/// 0.1 is not a value of fp16.
#[test]
fn without_masters_moments_stay_fp32() {
    let (weights, velocity) = stepped(Compute(FloatDType::F16), 0.5, &[0.1], 1);
    assert_eq!((weights, velocity), (vec![0.899_902_34], vec![0.1]));
}

#[test]
fn without_masters_a_model_begins_with_rounded_parameters_of_the_phase() {
    let phase = |weights| {
        let scaler = LossScaler::new(&LossScalingSpec::None).unwrap();
        let (rule, schedule) =
            (OptimizerSpec::Adagrad { initial_accumulator: 0.1 }, ScheduleSpec::Fixed { lr: 1.0 });
        Phase::single(Box::new(Sums), &rule, &schedule, scaler, None).unwrap().with_weights(weights)
    };
    let halves = phase(Compute(FloatDType::F16));
    assert_eq!(
        halves.begun(Line::new()).unwrap().weights(),
        [0.5, -1.0, 2.0, 0.25, 0.099_975_586, 0.199_951_17]
    );
    let other = Phase { parameters: Box::new(|path| path == "slope"), ..halves };
    assert_eq!(other.begun(Line::new()).unwrap().weights(), Line::new().weights());
    assert_eq!(phase(Compute::FP32).begun(Line::new()).unwrap().weights(), Line::new().weights());
}

/// Parameters with the names of a dense layer, a recurrent layer and a norm.
#[derive(Module, Debug)]
struct Named {
    weight: Param<Tensor<2>>,
    layer: Cell,
    norm: Scale,
}

#[derive(Module, Debug)]
struct Cell {
    weight_ih: Param<Tensor<2>>,
    weight_hh: Param<Tensor<2>>,
    bias_ih: Param<Tensor<1>>,
}

#[derive(Module, Debug)]
struct Scale {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
}

const NAMES: [&str; 6] =
    ["weight", "layer.weight_ih", "layer.weight_hh", "layer.bias_ih", "norm.weight", "norm.bias"];

impl Named {
    /// One element each, so that a norm is the magnitude of the value.
    fn new() -> Self {
        let device = Device::flex().autodiff();
        let matrix = |value: f32| Param::from_tensor(Tensor::from_data([[value]], &device));
        let vector = |value: f32| Param::from_tensor(Tensor::from_data([value], &device));
        let layer = Cell { weight_ih: matrix(3.0), weight_hh: matrix(4.0), bias_ih: vector(12.0) };
        Self { weight: matrix(2.0), layer, norm: Scale { weight: vector(1.0), bias: vector(0.5) } }
    }

    /// The parameters in the order of [`NAMES`].
    fn weights(&self) -> Vec<f32> {
        let found = parameters::export(self);
        NAMES.map(|name| found.iter().find(|one| one.path == name).unwrap().values[0]).to_vec()
    }
}

/// Sum of the parameters times factors. The factors are the gradients.
struct Factors([f32; 6]);

impl Objective<Named, ()> for Factors {
    fn counts(&self, (): &()) -> Vec<(&'static str, f64)> {
        vec![("sum", 1.0)]
    }

    fn terms(&self, model: &Named, (): &(), _: &mut Pass) -> Vec<Term> {
        let of_matrix = |weight: &Param<Tensor<2>>| weight.val().flatten::<1>(0, 1);
        let Named { weight, layer, norm } = model;
        let all = [
            of_matrix(weight),
            of_matrix(&layer.weight_ih),
            of_matrix(&layer.weight_hh),
            layer.bias_ih.val(),
            norm.weight.val(),
            norm.bias.val(),
        ];
        let sum = all.into_iter().zip(self.0).map(|(value, factor)| value * factor);
        vec![Term { name: "sum", sum: sum.reduce(|a, b| a + b).unwrap(), weight: 1.0 }]
    }
}

/// Decrease of each parameter in an update, divided by the learning rate.
fn moves(factors: [f32; 6], with: impl FnOnce(Phase<Named, ()>) -> Phase<Named, ()>) -> Vec<f32> {
    let rule = OptimizerSpec::Sgd {
        momentum: 0.0,
        weight_decay: 0.0,
        nesterov: false,
        velocity: Velocity::Gradients,
    };
    let scaler = LossScaler::new(&LossScalingSpec::None).unwrap();
    let schedule = ScheduleSpec::Fixed { lr: 0.5 };
    let phase = Phase::single(Box::new(Factors(factors)), &rule, &schedule, scaler, None).unwrap();
    let (mut phase, model) = (with(phase), Named::new());
    let before = model.weights();
    let around = Surroundings { compute: Compute::FP32, seed: 1, micro_step: 0, group: 1 };
    let batches = [MicroBatch { position: 0, batch: () }];
    let (moved, _) =
        run_phase(&mut phase, (0, 1), model, &batches, around, &mut Local, &mut Unwatched).unwrap();
    before.iter().zip(moved.weights()).map(|(before, after)| (before - after) / 0.5).collect()
}

fn assert_close(found: &[f32], expected: [f32; 6]) {
    for ((name, found), expected) in NAMES.iter().zip(found).zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{name}: {found} {expected}");
    }
}

/// Weights of the recurrent layer have the norm |(3, 4, 12)| = 13, its gradients |(6, 8, 0)| = 10:
/// 0.01 x 13 / (0.5 x 10) = 0.026. For a separate parameter the factor is 0.01 |w| / (0.5 |g|);
/// that of a bias without a gradient is limited to 1.
#[test]
fn recurrent_layers_of_one_buffer_have_one_trust_ratio() {
    let factors = [4.0, 6.0, 8.0, 0.0, 2.0, 2.0];
    let larc = |recurrent| LarcSpec { eta: 0.01, min_update: 1e-7, epsilon: 1e-7, recurrent };
    let each = moves(factors, |phase| phase.adapted(Some(&larc(RecurrentGroup::Each))));
    assert_close(&each, [0.04, 0.06, 0.08, 0.0, 0.02, 0.01]);
    let one = moves(factors, |phase| phase.adapted(Some(&larc(RecurrentGroup::OneBuffer))));
    assert_close(&one, [0.04, 6.0 * 0.026, 8.0 * 0.026, 0.0, 0.02, 0.01]);
}

#[test]
fn the_penalty_leaves_out_recurrent_matrices_and_takes_in_scales_of_norms_as_it_says() {
    let of = |l2: RegularizerSpec| moves([0.0; 6], |phase| phase.regularized(Some(&l2)));
    assert_close(&of(l2(0.5, true, false)), [1.0, 1.5, 2.0, 0.0, 0.0, 0.0]);
    assert_close(&of(l2(0.5, false, false)), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_close(&of(l2(0.5, true, true)), [1.0, 1.5, 2.0, 0.0, 0.5, 0.0]);
}
