//! Comparison of update rules on a device with the host's loops, and the number of kernels that
//! they launch.

use burn::tensor::{Device, Tensor, TensorData};
use zoo_models::ops::{Agreement, count_launches, difference};
use zoo_recipes::{DecayedParameters, EpsilonPlace, NovogradVariant, OptimizerSpec, Velocity};

use crate::flat::{Flat, magnitude};
use crate::optimizer::{Gradient, Optimizer, Place, optimizer};

/// Shapes of the parameters: an embedding, matrices of other sizes, and vectors.
const SHAPES: [&[usize]; 8] = [&[57, 64], &[64, 96], &[96], &[300, 40], &[40], &[1], &[3, 3, 5, 7], &[513]];

/// Maximum difference, from FP32 roundings on either side.
const LIMIT: f64 = 1e-5;

/// Every update rule with each of its options.
pub(crate) fn rules() -> [(&'static str, OptimizerSpec); 14] {
    let adam = |lazy: bool, weight_decay: f64| {
        let (beta1, beta2, epsilon, epsilon_place) = (0.9, 0.98, 1e-8, EpsilonPlace::RawRoot);
        match lazy {
            true => OptimizerSpec::LazyAdam { beta1, beta2, epsilon, epsilon_place },
            false => OptimizerSpec::Adam { beta1, beta2, epsilon, epsilon_place, weight_decay },
        }
    };
    let adamw =
        |decayed| OptimizerSpec::Adamw { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.1, decayed };
    let novograd = |variant| OptimizerSpec::Novograd {
        beta1: 0.95,
        beta2: 0.5,
        epsilon: 1e-8,
        weight_decay: 0.001,
        grad_averaging: true,
        variant,
    };
    let sgd = |momentum, weight_decay, nesterov| {
        let velocity = Velocity::Gradients;
        OptimizerSpec::Sgd { momentum, weight_decay, nesterov, velocity }
    };
    let steps =
        OptimizerSpec::Sgd { momentum: 0.9, weight_decay: 0.01, nesterov: false, velocity: Velocity::Steps };
    [
        ("adam, 8 parameters", adam(false, 0.0)),
        ("adam, decay, 8 parameters", adam(false, 0.01)),
        ("lazy adam, 8 parameters", adam(true, 0.0)),
        ("adamw, 8 parameters", adamw(DecayedParameters::All)),
        ("adamw, decay of matrices, 8 parameters", adamw(DecayedParameters::Matrices)),
        ("sgd, 8 parameters", sgd(0.0, 0.0, false)),
        ("sgd, momentum and decay, 8 parameters", sgd(0.9, 0.01, false)),
        ("sgd, nesterov, 8 parameters", sgd(0.9, 0.01, true)),
        ("sgd, sum of steps, 8 parameters", steps),
        ("rmsprop, 8 parameters", OptimizerSpec::Rmsprop { rho: 0.9, epsilon: 1e-7 }),
        ("adadelta, 8 parameters", OptimizerSpec::Adadelta { rho: 0.95, epsilon: 1e-7 }),
        ("adagrad, 8 parameters", OptimizerSpec::Adagrad { initial_accumulator: 0.1 }),
        ("novograd, 8 parameters", novograd(NovogradVariant::Published)),
        ("novograd as coded, 8 parameters", novograd(NovogradVariant::AsCoded)),
    ]
}

/// Compares every update rule that is `wanted`, on eight parameters.
pub fn agreements(device: &Device, wanted: &dyn Fn(&str) -> bool) -> Vec<Agreement> {
    let device = device.clone().inner();
    let wanted = rules().into_iter().filter(|(operation, _)| wanted(operation));
    wanted.map(|(operation, spec)| rule(operation, &spec, &device)).collect()
}

/// Numbers of both signs. The second half of the embedding's gradients is 0.
fn values(stream: usize, parameter: usize) -> Vec<f32> {
    let n: usize = SHAPES[parameter].iter().product();
    let draw = |i: usize| ((i * 7919 + stream * 104_729 + parameter * 31) % 10_007) as f32 / 10_007.0 - 0.5;
    (0..n).map(|i| if parameter == 0 && stream > 0 && i > n / 2 { 0.0 } else { draw(i) }).collect()
}

fn placed(values: Vec<f32>, device: Option<&Device>) -> Flat {
    match device {
        Some(device) => {
            let n = values.len();
            Flat::Device(Tensor::from_data(TensorData::new(values, [n]), device))
        }
        None => Flat::Host(values),
    }
}

fn gradient(stream: usize, parameter: usize, device: Option<&Device>) -> Gradient {
    let values = values(stream, parameter);
    let square_sum = Some(magnitude(&values).square_sum);
    Gradient { values: placed(values, device), factor: 0.7, square_sum }
}

fn rule(operation: &'static str, spec: &OptimizerSpec, device: &Device) -> Agreement {
    let step = |rule: &mut dyn Optimizer, weights: Vec<Flat>, gradients: Vec<Gradient>| -> Vec<Flat> {
        rule.begin();
        let moved = SHAPES.iter().enumerate().zip(weights.into_iter().zip(gradients));
        moved
            .map(|((i, &shape), (weight, gradient))| {
                let path = format!("parameter{i}");
                let place = Place { path: &path, shape, embedding: i == 0 };
                rule.step(place, 0.01, weight, gradient)
            })
            .collect()
    };
    let run = |device: Option<&Device>| {
        let mut rule = optimizer(spec);
        let mut weights: Vec<Flat> =
            (0..SHAPES.len()).map(|parameter| placed(values(0, parameter), device)).collect();
        let mut launches = None;
        for update in 1..=5 {
            let gradients = (0..SHAPES.len()).map(|parameter| gradient(update, parameter, device)).collect();
            let sync = || device.map(|device| device.sync().expect("the device works"));
            sync();
            let before = std::mem::take(&mut weights);
            (weights, launches) = count_launches(|| {
                let after = step(&mut *rule, before, gradients);
                sync();
                after
            });
        }
        let mut tensors: Vec<Vec<f32>> = weights.iter().map(Flat::to_vec).collect();
        tensors.extend(rule.export().moments.into_iter().map(|moment| moment.values));
        (tensors, launches)
    };
    let ((here, _), (there, launches)) = (run(None), run(Some(device)));
    Agreement {
        operation,
        error: difference(&there, &here),
        limit: LIMIT,
        launches: launches.map(|launches| [launches; 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees() {
        for found in agreements(&Device::flex(), &|_| true) {
            assert!(found.holds(), "{found:?}");
        }
    }
}
