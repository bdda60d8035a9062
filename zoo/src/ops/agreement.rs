//! Own operations held against the same in Burn's tensor operations, on any device: values, gradients, and how many kernels each
//! way launches.

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use zoo_recipes::Smoothing;

use super::attention::Plan;
use super::dropout::{Mask, masked_in_order};
use super::{Segments, SmoothedTargets};
use super::{attention, cross_entropy, embedding, layer_norm, relu, residual};
use crate::contract::Pass;
use crate::parameters::host_values;
use crate::precision::{Compute, to_f32};
use crate::random::Key;

/// How far an own operation is from its composition.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The operation, with what matters of its arguments.
    pub operation: &'static str,
    /// The largest difference of a value or a gradient, by the largest number of the tensor that it is in.
    pub error: f64,
    /// What is allowed.
    pub limit: f64,
    /// Kernels that a forward and a backward pass launch: the own operation, its composition. `None` where nobody counts.
    pub launches: Option<[usize; 2]>,
}

impl Agreement {
    /// Within the limit? A NaN is not.
    pub fn holds(&self) -> bool {
        self.error <= self.limit
    }
}

/// A number of FP32 roundings on the way, and of those of a half: its fraction has 8 or 11 bits.
fn limit(compute: Compute) -> f64 {
    match compute.0 {
        FloatDType::BF16 => 1.0 / 32.0,
        FloatDType::F16 => 1.0 / 256.0,
        _ => 1e-5,
    }
}

type Operation<'a> = &'a dyn Fn(Vec<Tensor<2>>, &mut Pass) -> Tensor<2>;

/// Every operation with a kernel of its own for GPUs, its inputs in this type where it takes halves.
pub fn agreements(device: &Device, compute: Compute) -> Vec<Agreement> {
    let device = device.clone().autodiff();
    let case = |operation, shapes: &[[usize; 2]], own: Operation<'_>, composed: Operation<'_>| {
        let inputs: Vec<_> = (0..).zip(shapes).map(|(i, &shape)| draw(i, shape, &device)).collect();
        let [own, composed] = [own, composed].map(|run| Passes::of(run, &inputs, compute));
        Agreement {
            operation,
            error: own.far_from(&composed),
            limit: limit(compute),
            launches: own.launches.zip(composed.launches).map(<[usize; 2]>::from),
        }
    };
    let mask = |pass: &mut Pass| Mask::draw(RATE, pass);
    let mut found = Vec::new();
    // What the comparison itself launches.
    found.push(case("nothing", &[[150, 96]], &|x, _| x[0].clone(), &|x, _| x[0].clone()));
    found.push(case(
        "dropout",
        &[[150, 96]],
        &|x, pass| super::dropout(x[0].clone(), RATE, pass),
        &|x, pass| masked_in_order(x[0].clone(), mask(pass).expect("a training pass")),
    ));
    found.push(case(
        "relu_dropout",
        &[[150, 96]],
        &|x, pass| relu::relu_dropout(compute.cast(x[0].clone()), RATE, pass),
        &|x, pass| relu::composed(compute.cast(x[0].clone()), mask(pass)),
    ));
    found.push(case(
        "add_dropped",
        &[[150, 96], [150, 96]],
        &|x, pass| residual::add_dropped(x[0].clone(), compute.cast(x[1].clone()), RATE, pass),
        &|x, pass| residual::composed(x[0].clone(), compute.cast(x[1].clone()), mask(pass)),
    ));
    found.push(case(
        "layer_norm",
        &[[150, 96], [1, 96], [1, 96]],
        &|x, _| {
            let [gamma, beta] = [1, 2].map(|i: usize| x[i].clone().reshape([96]));
            layer_norm::layer_norm(x[0].clone(), gamma, beta, 1e-5)
        },
        &|x, _| {
            let [gamma, beta] = [1, 2].map(|i: usize| x[i].clone().reshape([96]));
            layer_norm::composed(x[0].clone(), gamma, beta, 1e-5)
        },
    ));
    let classes: Vec<u32> = (0..40).map(|i| i * 31 % 1009).collect();
    for (operation, epsilon, smoothing) in [
        ("cross_entropy", 0.0, Smoothing::AllClasses),
        ("cross_entropy, smoothed", 0.1, Smoothing::AllClasses),
        ("cross_entropy, smoothed over the others", 0.1, Smoothing::OtherClasses),
    ] {
        let targets = SmoothedTargets::new(&classes, 1009, epsilon, smoothing);
        found.push(case(
            operation,
            &[[40, 1009]],
            &|x, _| cross_entropy::sums(compute.cast(x[0].clone()), &targets).unsqueeze(),
            &|x, _| cross_entropy::composed(to_f32(compute.cast(x[0].clone())), &targets).unsqueeze(),
        ));
    }
    let ids: Vec<Option<u32>> = (0..90).map(|i| (i % 11 != 3).then_some(i * i % 41)).collect();
    found.push(case("embedding", &[[57, 96]], &|x, _| embedding::embedding(x[0].clone(), &ids), &|x, _| {
        embedding::composed(x[0].clone(), &ids)
    }));
    let lengths = [5u32, 1, 41, 17];
    for (operation, segments, keys, rate) in [
        ("attention, causal, dropout", Segments::own(&lengths, true), 64, RATE),
        ("attention, across", Segments::across(&lengths, &[7, 33, 2, 9]), 51, 0.0),
    ] {
        let typed = |x: Vec<Tensor<2>>| <[_; 3]>::try_from(x).expect("three").map(|x| compute.cast(x));
        found.push(case(
            operation,
            &[[64, 96], [keys, 96], [keys, 96]],
            &|x, pass| {
                let [q, k, v] = typed(x);
                attention::attention(q, k, v, &segments, 3, rate, pass)
            },
            &|x, pass| {
                let [q, k, v] = typed(x);
                attention::composed(q, k, v, &Plan::new(&segments, 3, Mask::draw(rate, pass)))
            },
        ));
    }
    found
}

/// Drop rate of the cases that drop.
const RATE: f64 = 0.3;

fn draw(stream: u64, shape: [usize; 2], device: &Device) -> Tensor<2> {
    let key = Key::new(21, stream, 0);
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|i| key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), device).require_grad()
}

/// What an operation gives forward and backward.
struct Passes {
    /// The output, then the gradient of every input.
    tensors: Vec<Vec<f32>>,
    launches: Option<usize>,
}

impl Passes {
    fn of(run: Operation<'_>, inputs: &[Tensor<2>], compute: Compute) -> Self {
        let device = inputs[0].device();
        let once = || {
            let out = run(inputs.to_vec(), &mut Pass::training(compute, 1, 5));
            let upstream = draw(9, out.dims(), &device).inner();
            let gradients = (to_f32(out.clone()) * Tensor::from_inner(upstream)).sum().backward();
            let mut tensors = vec![out.inner()];
            tensors.extend(inputs.iter().map(|x| x.grad(&gradients).expect("a gradient of every input")));
            device.sync().expect("the device works");
            tensors
        };
        // The first times, kernels are tuned and fusions planned.
        (0..3).map(|_| once()).for_each(drop);
        let (tensors, launches) = launches::count(once);
        Self { tensors: tensors.into_iter().map(host_values).collect(), launches }
    }

    fn far_from(&self, other: &Self) -> f64 {
        let mut error = 0f64;
        for (a, b) in self.tensors.iter().zip(&other.tensors) {
            assert_eq!(a.len(), b.len(), "tensors of one shape");
            let largest = b.iter().fold(f64::MIN_POSITIVE, |most, x| most.max(f64::from(x.abs())));
            for (a, b) in a.iter().zip(b) {
                let far = f64::from((a - b).abs()) / largest;
                // A NaN is found, and stays: nothing is larger.
                if far > error || far.is_nan() {
                    error = far;
                }
            }
        }
        error
    }
}

/// Kernel launches of the whole process.
#[cfg(feature = "cubecl")]
mod launches {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cubecl::logging::{LaunchObservation, LaunchObserver};

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl LaunchObserver for Counter {
        fn launched(&self, _: &'static str) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What `run` gives, and how many kernels it launched.
    pub fn count<T>(run: impl FnOnce() -> T) -> (T, Option<usize>) {
        let counter = Arc::new(Counter::default());
        let watching = LaunchObservation::new(counter.clone());
        let out = run();
        drop(watching);
        (out, Some(counter.0.load(Ordering::Relaxed)))
    }
}

#[cfg(not(feature = "cubecl"))]
mod launches {
    /// Without CubeCL there is nobody to ask.
    pub fn count<T>(run: impl FnOnce() -> T) -> (T, Option<usize>) {
        (run(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees() {
        for compute in [Compute::FP32, Compute(FloatDType::BF16)] {
            for found in agreements(&Device::flex(), compute) {
                assert!(found.holds(), "{compute:?} {found:?}");
            }
        }
    }

    #[test]
    fn a_difference_and_a_nan_are_found() {
        let passes = |values: [f32; 2]| Passes { tensors: vec![values.to_vec()], launches: None };
        assert_eq!(passes([1.0, -4.0]).far_from(&passes([2.0, -4.0])), 0.25);
        for nan in [[f32::NAN, 1.0], [1.0, f32::NAN]] {
            let error = passes(nan).far_from(&passes([1.0, 1.0]));
            assert!(!Agreement { operation: "", error, limit: 1.0, launches: None }.holds());
        }
    }
}
