use burn::module::Param;
use burn::tensor::{FloatDType, TensorData};
use safetensors::SafeTensors;
use zoo_models::parameters::reads;
use zoo_recipes::LossScalingSpec;

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

/// The squares and the magnitudes of what the line makes of a batch: two terms to be read.
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

/// Two updates of two micro-batches each, with everything that an update can have; their reports, and the weights.
fn two_updates(rule: &OptimizerSpec, scaling: &LossScalingSpec) -> (Vec<PhaseReport>, Vec<f32>) {
    let scaler = LossScaler::new(scaling).unwrap();
    let schedule = ScheduleSpec::Fixed { lr: 0.1 };
    let phase = Phase::single(Box::new(Sums), rule, &schedule, scaler, None).unwrap();
    let mut phase = phase.clipped(Some(0.5)).regularized(Some(&RegularizerSpec::L2 { scale: 0.01 }));
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
    let rules = [adam, OptimizerSpec::Sgd { momentum: 0.9, weight_decay: 0.0, nesterov: false }];
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

/// `tests/reference/optimizers.py` computes in FP64; weights of size 1 are 1e-6 apart at most after five updates in FP32.
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
        let rule = OptimizerSpec::Sgd { momentum: 0.9, weight_decay: 0.0, nesterov: false };
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
