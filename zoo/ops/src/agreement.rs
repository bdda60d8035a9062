//! Comparison of custom operations with their composition of Burn's tensor operations, on any
//! device: values, gradients, and the number of kernels that each launches.

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use zoo_recipes::Smoothing;

use super::attention::Plan;
use super::convolution::{self, Axis, Geometry};
use super::dropout::{Mask, masked_in_order};
use super::recurrent::Kind;
use super::{
    Normalization, Rows, Segments, Sequences, SmoothedTargets, Statistics, has_own_kernels, launches,
};
use super::{
    attention, batch_norm, cross_entropy, embedding, layer_norm, magnitude, recurrent, relu, residual,
};
use crate::Pass;
use crate::parameters::host_values;
use crate::precision::{Compute, matmul, to_f32};
use crate::random::Key;

/// Difference between a custom operation and its composition.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// Name of the operation, with the arguments that matter.
    pub operation: &'static str,
    /// Largest difference of a value or gradient, divided by the largest value of its tensor.
    pub error: f64,
    /// Maximum allowed error.
    pub limit: f64,
    /// Kernels that a forward and a backward pass launch: custom operation, composition. `None`
    /// where launches are not counted.
    pub launches: Option<[usize; 2]>,
}

impl Agreement {
    /// Whether the error is within the limit; false for NaN.
    pub fn holds(&self) -> bool {
        self.error <= self.limit
    }
}

/// Limit for a number of FP32 roundings, and for those of a half type, whose fraction has 8 or 11
/// bits.
fn limit(compute: Compute) -> f64 {
    match compute.0 {
        FloatDType::BF16 => 1.0 / 32.0,
        FloatDType::F16 => 1.0 / 256.0,
        _ => 1e-5,
    }
}

type Operation<'a> = &'a dyn Fn(Vec<Tensor<2>>, &mut Pass) -> Tensor<2>;

/// Compares every operation with a custom GPU kernel that is `wanted`. Operations that take half
/// types get inputs of type `compute`.
pub fn agreements(device: &Device, compute: Compute, wanted: &dyn Fn(&str) -> bool) -> Vec<Agreement> {
    let device = device.clone().autodiff();
    let scaled = |scale, operation, shapes: &[[usize; 2]], own: Operation<'_>, composed: Operation<'_>| {
        if !wanted(operation) {
            return None;
        }
        let inputs: Vec<_> = (0..).zip(shapes).map(|(i, &shape)| draw(i, shape, scale, &device)).collect();
        let [own, composed] = [own, composed].map(|run| Passes::of(run, &inputs, compute));
        Some(Agreement {
            operation,
            error: difference(&own.tensors, &composed.tensors),
            limit: limit(compute),
            launches: own.launches.zip(composed.launches).map(<[usize; 2]>::from),
        })
    };
    let case = |operation, shapes: &[[usize; 2]], own: Operation<'_>, composed: Operation<'_>| {
        scaled(1.0, operation, shapes, own, composed)
    };
    let mask = |pass: &mut Pass| Mask::draw(RATE, pass);
    let mut found = Vec::new();
    // Launches of the comparison itself.
    found.extend(case("nothing", &[[150, 96]], &|x, _| x[0].clone(), &|x, _| x[0].clone()));
    found.extend(case(
        "dropout",
        &[[150, 96]],
        &|x, pass| super::dropout(x[0].clone(), RATE, pass),
        &|x, pass| masked_in_order(x[0].clone(), mask(pass).expect("a training pass")),
    ));
    found.extend(case(
        "relu_dropout",
        &[[150, 96]],
        &|x, pass| relu::relu_dropout(compute.cast(x[0].clone()), RATE, pass),
        &|x, pass| relu::composed(compute.cast(x[0].clone()), mask(pass)),
    ));
    found.extend(case(
        "add_dropped",
        &[[150, 96], [150, 96]],
        &|x, pass| residual::add_dropped(x[0].clone(), compute.cast(x[1].clone()), RATE, pass),
        &|x, pass| residual::composed(x[0].clone(), compute.cast(x[1].clone()), mask(pass)),
    ));
    for (operation, shapes, [left, right]) in PRODUCTS {
        let turned = |x: Tensor<2>, turn: bool| if turn { x.transpose() } else { x };
        found.extend(case(
            operation,
            &shapes,
            &|x, _| {
                let [a, b] = [0, 1].map(|i| compute.cast(x[i].clone()));
                matmul(turned(a, left), turned(b, right))
            },
            &|x, _| {
                let [a, b] = [0, 1].map(|i| compute.rounded(x[i].clone()));
                compute.rounded(turned(a, left).matmul(turned(b, right)))
            },
        ));
    }
    for one in CONVOLUTIONS {
        let Convolution { operation, input, weight, axes, biased } = one;
        let [out, channels, tall, wide] = weight;
        let geometry = Geometry { axes: axes.map(Axis::from), groups: 1 };
        let shapes =
            [[input.iter().product::<usize>() / channels, channels], [out, channels * tall * wide], [1, out]];
        let arguments = |x: Vec<Tensor<2>>| {
            let bias = biased.then(|| x[2].clone().reshape([out]));
            (x[0].clone().reshape(input), x[1].clone().reshape(weight), bias)
        };
        let rows = |y: Tensor<4>| y.reshape([-1, out as i32]);
        found.extend(case(
            operation,
            &shapes[..if biased { 3 } else { 2 }],
            &|x, pass| {
                let (x, weight, bias) = arguments(x);
                rows(match has_own_kernels(&x.device()) {
                    true => convolution::convolution(x, weight, bias, geometry, pass),
                    false => convolution::by_parts(PATCHES, x, weight, bias, geometry, pass),
                })
            },
            &|x, _| {
                let (x, weight, bias) = arguments(x.into_iter().map(|x| compute.rounded(x)).collect());
                let pass = Pass::evaluation(Compute::FP32);
                rows(compute.rounded(convolution::composed(x, weight, bias, geometry, &pass)))
            },
        ));
    }
    for (operation, width) in LAYER_NORMS {
        let vector = |x: &Tensor<2>| x.clone().reshape([width]);
        found.extend(case(
            operation,
            &[[150, width], [1, width], [1, width]],
            &|x, _| layer_norm::layer_norm(x[0].clone(), vector(&x[1]), vector(&x[2]), 1e-5),
            &|x, _| layer_norm::composed(x[0].clone(), vector(&x[1]), vector(&x[2]), 1e-5),
        ));
    }
    let classes: Vec<u32> = (0..40).map(|i| i * 31 % 1009).collect();
    for (operation, epsilon, smoothing) in [
        ("cross_entropy", 0.0, Smoothing::AllClasses),
        ("cross_entropy, smoothed", 0.1, Smoothing::AllClasses),
        ("cross_entropy, smoothed over the others", 0.1, Smoothing::OtherClasses),
    ] {
        let targets = SmoothedTargets::new(&classes, 1009, epsilon, smoothing);
        found.extend(case(
            operation,
            &[[40, 1009]],
            &|x, _| cross_entropy::sums(compute.cast(x[0].clone()), &targets).unsqueeze(),
            &|x, _| cross_entropy::composed(to_f32(compute.cast(x[0].clone())), &targets).unsqueeze(),
        ));
    }
    let ids: Vec<Option<u32>> = (0..90).map(|i| (i % 11 != 3).then_some(i * i % 41)).collect();
    found.extend(case(
        "embedding",
        &[[57, 96]],
        &|x, _| embedding::embedding(x[0].clone(), &ids),
        &|x, _| embedding::composed(x[0].clone(), &ids),
    ));
    let lengths = [5u32, 1, 41, 17];
    for (operation, segments, keys, rate) in [
        ("attention, causal, dropout", Segments::own(&lengths, true), 64, RATE),
        ("attention, across", Segments::across(&lengths, &[7, 33, 2, 9]), 51, 0.0),
    ] {
        let typed = |x: Vec<Tensor<2>>| <[_; 3]>::try_from(x).expect("three").map(|x| compute.cast(x));
        found.extend(case(
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
    // Three of the sequences are empty; or all are non-empty. Few different numbers of sequences
    // are active, and the gates of both kinds round up to one power of two, because each size is a
    // product that is tuned separately.
    let (ragged, begun) =
        (Sequences::new(&[2, 5, 0, 5, 2].repeat(3)), Sequences::new(&[2, 5, 5, 2].repeat(3)).reversed());
    const HIDDEN: usize = 23;
    for (operation, kind, sequences, starts, biased) in [
        ("lstm", Kind::Lstm, &ragged, false, false),
        ("lstm, backwards from a state", Kind::Lstm, &begun, true, false),
        ("gru", Kind::Gru, &ragged, false, true),
        ("gru, backwards from a state", Kind::Gru, &begun, true, true),
    ] {
        let width = kind.gates() * HIDDEN;
        let mut shapes = vec![[sequences.rows(), width], [width, HIDDEN]];
        shapes.extend(biased.then_some([1, width]));
        shapes.extend(starts.then_some([kind.states() * sequences.count(), HIDDEN]));
        let passes = |own: bool| {
            move |x: Vec<Tensor<2>>, pass: &mut Pass| {
                let mut x = x.into_iter();
                let mut next = || x.next().expect("as many inputs as shapes");
                let (gates, weight) = (compute.cast(next()), next());
                let bias = biased.then(|| next().reshape([width]));
                let state = starts.then(next);
                let (out, last) = match own {
                    true => recurrent::recurrent(kind, gates, weight, bias, state, (sequences, None), pass),
                    false => recurrent::composed::recurrent(
                        kind,
                        gates,
                        weight,
                        bias,
                        state,
                        (sequences, None),
                        pass,
                    ),
                };
                Tensor::cat(vec![to_f32(out), last], 0)
            }
        };
        found.extend(scaled(0.3, operation, &shapes, &passes(true), &passes(false)));
    }
    for (operation, relu, rows) in [
        ("batch_norm", false, Rows::all()),
        ("batch_norm, relu, padding", true, Rows::of_lengths(&[90, 150, 1], 150)),
    ] {
        let how = Normalization { epsilon: 1e-3, relu, rows };
        let passes = |own: bool| {
            let how = how.clone();
            move |x: Vec<Tensor<2>>, pass: &mut Pass| {
                let input = compute.cast(x[0].clone());
                let [gamma, beta] = [1, 2].map(|i: usize| x[i].clone().reshape([37]));
                let (out, statistics) = match own {
                    true => batch_norm::batch_norm(input, gamma, beta, &how, pass),
                    false => batch_norm::composed_with_statistics(input, gamma, beta, &how),
                };
                let of_batch =
                    [statistics.mean, statistics.variance].map(|x| Tensor::from_inner(x).unsqueeze());
                Tensor::cat([vec![out], of_batch.to_vec()].concat(), 0)
            }
        };
        found.extend(case(operation, &[[450, 37], [1, 37], [1, 37]], &passes(true), &passes(false)));
    }
    for (operation, width) in EVALUATED_BATCH_NORMS {
        let how = Normalization { epsilon: 1e-3, relu: false, rows: Rows::all() };
        let vector = |x: &Tensor<2>| x.clone().reshape([width]);
        let running = |stream| vector(&draw(stream, [1, width], 1.0, &device)).inner();
        let mean = running(10);
        let statistics = Statistics { variance: running(11).square() + 0.5, mean, count: 150 };
        found.extend(case(
            operation,
            &[[150, width], [1, width], [1, width]],
            &|x, _| {
                let input = compute.cast(x[0].clone());
                batch_norm::batch_norm_by(input, vector(&x[1]), vector(&x[2]), &statistics, &how)
            },
            &|x, _| {
                let input = compute.cast(x[0].clone());
                batch_norm::composed(input, vector(&x[1]), vector(&x[2]), Some(&statistics), &how)
            },
        ));
    }
    if wanted(GRADIENT_NORM) {
        found.push(gradient_norm(&device));
    }
    found
}

/// Name, shapes of two matrices, and which of them is transposed before the product.
type Factors = (&'static str, [[usize; 2]; 2], [bool; 2]);

const PRODUCTS: [Factors; 4] = [
    ("product", [[150, 96], [96, 40]], [false, false]),
    ("product, transposed", [[150, 96], [40, 96]], [false, true]),
    ("product, odd sizes", [[33, 7], [7, 29]], [false, false]),
    ("product, many terms", [[1101, 72], [1101, 40]], [true, false]),
];

/// A convolution.
struct Convolution {
    operation: &'static str,
    /// Images, height, width, channels.
    input: [usize; 4],
    /// Output channels, channels, height, width.
    weight: [usize; 4],
    /// Stride, dilation, and zeros before and after, along both axes.
    axes: [[usize; 4]; 2],
    biased: bool,
}

const CONVOLUTIONS: [Convolution; 4] = [
    Convolution {
        operation: "convolution",
        input: [3, 1, 41, 24],
        weight: [20, 24, 1, 5],
        axes: [[1, 1, 0, 0], [1, 1, 4, 0]],
        biased: true,
    },
    Convolution {
        operation: "convolution, strides and dilation",
        input: [2, 19, 23, 3],
        weight: [8, 3, 4, 3],
        axes: [[2, 1, 1, 2], [3, 2, 2, 1]],
        biased: false,
    },
    Convolution {
        operation: "convolution, one tap",
        input: [2, 7, 9, 16],
        weight: [12, 16, 1, 1],
        axes: [[1, 1, 0, 0]; 2],
        biased: true,
    },
    Convolution {
        operation: "convolution, in parts",
        input: [3, 11, 17, 6],
        weight: [10, 6, 3, 3],
        axes: [[1, 1, 1, 1]; 2],
        biased: false,
    },
];

/// Bytes of patches that a convolution unfolds at once here, so that the larger ones have parts.
const PATCHES: usize = 40_000;

/// Widths that CubeCL pads on CUDA with TF32, where a row occupies a power of two bytes or a multiple
/// of 512.
/// An operation that confuses the allocation with the tensor is wrong at these widths, but right
/// at 64.
const LAYER_NORMS: [(&str, usize); 4] = [
    ("layer_norm", 96),
    ("layer_norm, width 29", 29),
    ("layer_norm, width 80", 80),
    ("layer_norm, width 300", 300),
];

/// Batch norm with given statistics, which Burn allocates, at the widths of [`LAYER_NORMS`].
const EVALUATED_BATCH_NORMS: [(&str, usize); 4] = [
    ("batch_norm, evaluation, width 96", 96),
    ("batch_norm, evaluation, width 29", 29),
    ("batch_norm, evaluation, width 80", 80),
    ("batch_norm, evaluation, width 300", 300),
];

const GRADIENT_NORM: &str = "gradient norm, 8 gradients";

/// Eight gradients: their sums of squares and largest magnitudes. CubeCL pads all of these sizes on
/// CUDA with TF32.
fn gradient_norm(device: &Device) -> Agreement {
    let sizes = [57 * 64, 10_000, 96, 300 * 140, 29, 1, 80, 300];
    let draw = |(i, &n)| draw(i, [1, n], 1.0, device).inner().reshape([n]);
    let gradients: Vec<Tensor<1>> = (0..).zip(&sizes).map(draw).collect();
    let run = |measure: fn(&[Tensor<1>]) -> (Tensor<1>, Vec<usize>)| {
        let once = || {
            let found = measure(&gradients);
            device.clone().inner().sync().expect("the device works");
            found
        };
        (0..3).map(|_| once()).for_each(drop);
        let ((parts, chunks), launches) = launches::count(once);
        let (parts, mut first, mut found) = (host_values(parts), 0, Vec::new());
        for chunks in chunks {
            let parts = &parts[2 * first..][..2 * chunks];
            let squares = parts.iter().step_by(2).sum::<f32>();
            let largest = parts.iter().skip(1).step_by(2).fold(0f32, |a, b| a.max(*b));
            found.extend([vec![squares], vec![largest]]);
            first += chunks;
        }
        (found, launches)
    };
    let ((own, launches), (composed, others)) = (run(magnitude::magnitudes), run(magnitude::composed));
    Agreement {
        operation: GRADIENT_NORM,
        error: difference(&own, &composed),
        limit: limit(Compute::FP32),
        launches: launches.zip(others).map(<[usize; 2]>::from),
    }
}

/// Drop rate of the cases with dropout.
const RATE: f64 = 0.3;

fn draw(stream: u64, shape: [usize; 2], scale: f32, device: &Device) -> Tensor<2> {
    let key = Key::new(21, stream, 0);
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|i| scale * key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), device).require_grad()
}

/// Results of a forward and a backward pass.
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
            let upstream = draw(9, out.dims(), 1.0, &device).inner();
            let gradients = (to_f32(out.clone()) * Tensor::from_inner(upstream)).sum().backward();
            let mut tensors = vec![out.inner()];
            tensors.extend(inputs.iter().map(|x| x.grad(&gradients).expect("a gradient of every input")));
            device.sync().expect("the device works");
            tensors
        };
        // The first runs tune kernels and plan fusions.
        (0..3).map(|_| once()).for_each(drop);
        let (tensors, launches) = launches::count(once);
        Self { tensors: tensors.into_iter().map(host_values).collect(), launches }
    }
}

/// Largest difference of two values, divided by the largest value of their tensor; NaN if there is
/// one.
///
/// # Panics
/// If the sizes of the tensors differ.
pub fn difference(own: &[Vec<f32>], composed: &[Vec<f32>]) -> f64 {
    let mut error = 0f64;
    for (a, b) in own.iter().zip(composed) {
        assert_eq!(a.len(), b.len(), "tensors of one shape");
        let largest = b.iter().fold(f64::MIN_POSITIVE, |most, x| most.max(f64::from(x.abs())));
        for (a, b) in a.iter().zip(b) {
            let far = f64::from((a - b).abs()) / largest;
            // A NaN is detected and kept, because no value is larger.
            if far > error || far.is_nan() {
                error = far;
            }
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees() {
        for compute in [Compute::FP32, Compute(FloatDType::BF16), Compute(FloatDType::F16)] {
            for found in agreements(&Device::flex(), compute, &|_| true) {
                assert!(found.holds(), "{compute:?} {found:?}");
            }
        }
    }

    #[test]
    fn a_difference_and_a_nan_are_found() {
        let of = |own: [f32; 2], composed: [f32; 2]| difference(&[own.to_vec()], &[composed.to_vec()]);
        assert_eq!(of([1.0, -4.0], [2.0, -4.0]), 0.25);
        for nan in [[f32::NAN, 1.0], [1.0, f32::NAN]] {
            let error = of(nan, [1.0, 1.0]);
            assert!(!Agreement { operation: "", error, limit: 1.0, launches: None }.holds());
        }
    }
}
