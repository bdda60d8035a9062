//! The operation is a convolution and a maximum over positions, values and gradients.

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use zoo_recipes::PoolKind;

use super::{Geometry, convolution, convolution_maximum};
use crate::Pass;
use crate::parameters::host_values;
use crate::pool::{Pooling, pool};
use crate::precision::{Compute, to_f32};
use crate::random::Key;

const FP16: Compute = Compute(FloatDType::F16);
const BF16: Compute = Compute(FloatDType::BF16);

/// Texts, positions, channels, outputs, taps.
type Case = [usize; 5];
const CASES: [Case; 7] = [
    [3, 9, 5, 7, 3],
    [50, 37, 30, 20, 4],
    [4, 20, 33, 100, 5],
    [2, 4, 8, 3, 4],
    [1, 12, 1, 1, 1],
    [5, 11, 2, 17, 2],
    [0, 6, 4, 3, 2],
];

fn draw<const D: usize>(stream: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let key = Key::new(43, stream, 0);
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Texts whose ends are rows of zeros: the first one entirely, the last one not at all. Those of
/// more than two words have a row of zeros inside, too.
fn texts([texts, positions, channels, ..]: Case, device: &Device) -> Tensor<3> {
    let mut values = host_values(draw(0, [texts, positions, channels], device));
    for (i, text) in values.chunks_exact_mut(positions * channels).enumerate() {
        let words = if i + 1 == texts { positions } else { (i * 5) % positions };
        text[words * channels..].fill(0.0);
        if words > 2 {
            text[channels..2 * channels].fill(0.0);
        }
    }
    Tensor::from_data(TensorData::new(values, [texts, positions, channels]), device)
}

/// Output, and gradients of x, weight and bias.
fn run(
    case: Case,
    compute: Compute,
    of: impl Fn(Tensor<3>, Tensor<3>, Tensor<1>, &Pass) -> Tensor<2>,
) -> [Vec<f32>; 4] {
    let device = Device::flex().autodiff();
    let [count, _, channels, out, taps] = case;
    let x = texts(case, &device).require_grad();
    let weight = draw(1, [out, channels, taps], &device).require_grad();
    let bias = draw(2, [out], &device).require_grad();
    let most = of(compute.cast(x.clone()), weight.clone(), bias.clone(), &Pass::training(compute, 1, 1));
    assert_eq!((most.dims(), most.dtype()), ([count, out], compute.0.into()));
    let upstream = Tensor::from_inner(draw(3, [count, out], &device).inner());
    let grads = (to_f32(most.clone()) * upstream).sum().backward();
    [
        host_values(most.inner()),
        host_values(x.grad(&grads).unwrap()),
        host_values(weight.grad(&grads).unwrap()),
        host_values(bias.grad(&grads).unwrap()),
    ]
}

fn separate(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<1>, pass: &Pass) -> Tensor<2> {
    let ([texts, positions, channels], [out, _, taps]) = (x.dims(), weight.dims());
    let (x, weight) = (x.reshape([texts, 1, positions, channels]), weight.reshape([out, channels, 1, taps]));
    let y = convolution(x, weight, Some(bias), Geometry::default(), pass);
    let steps = positions + 1 - taps;
    pool(y.reshape([texts, steps, 1, out]), Pooling::of_steps(PoolKind::Max, steps)).reshape([texts, out])
}

fn assert_near(found: &[Vec<f32>; 4], due: &[Vec<f32>; 4], limit: f32, what: &str) {
    for (part, (found, due)) in ["output", "dx", "dw", "db"].iter().zip(found.iter().zip(due)) {
        assert_eq!(found.len(), due.len(), "{what}: {part}");
        let size = due.iter().fold(1f32, |most, x| most.max(x.abs()));
        let far = found.iter().zip(due).position(|(a, b)| a.is_nan() || (a - b).abs() > limit * size);
        assert_eq!(far, None, "{what}: {part}");
    }
}

#[test]
fn it_is_a_convolution_and_a_maximum() {
    for case in CASES {
        let (found, due) =
            (run(case, Compute::FP32, convolution_maximum), run(case, Compute::FP32, separate));
        // Sums of FP32 in another order.
        assert_near(&found, &due, 1e-6, &format!("{case:?}"));
    }
}

#[test]
fn half_types_round_operands_results_and_gradients() {
    // A sum that rounds apart moves a result by one unit, and may choose another of two windows that
    // are equal in half precision: FP16's are few enough, so that no case has one.
    for (compute, unit) in [(FP16, 1.0 / 1024.0), (BF16, 1.0 / 128.0)] {
        for case in CASES {
            let (found, due) = (run(case, compute, convolution_maximum), run(case, compute, separate));
            assert_near(&found, &due, unit, &format!("{compute:?} {case:?}"));
        }
    }
}

#[test]
fn of_equal_windows_the_first_one_gets_the_gradient() {
    let device = Device::flex().autodiff();
    let x = [1.0f32, 2.0, 1.0, 2.0, 0.0, 0.0, 0.0];
    let x = Tensor::<3>::from_data(TensorData::new(x.to_vec(), [1, 7, 1]), &device).require_grad();
    let weight = |by: f32| Tensor::<3>::from_data(TensorData::new(vec![by], [1, 1, 1]), &device);
    let bias = Tensor::<1>::zeros([1], &device);
    for (by, first) in [(1.0, 1), (-1.0, 4)] {
        let pass = Pass::training(Compute::FP32, 1, 1);
        let most = convolution_maximum(x.clone(), weight(by), bias.clone(), &pass);
        let dx = host_values(x.grad(&most.sum().backward()).unwrap());
        let due: Vec<f32> = (0..7).map(|at| if at == first { by } else { 0.0 }).collect();
        assert_eq!(dx, due);
    }
}

#[test]
fn an_untracked_input_has_no_gradient() {
    let case = CASES[0];
    let [_, _, channels, out, taps] = case;
    let device = Device::flex().autodiff();
    let x = Tensor::from_inner(texts(case, &Device::flex()));
    let weight = draw(1, [out, channels, taps], &device).require_grad();
    let bias = draw(2, [out], &device);
    let pass = Pass::training(Compute::FP32, 1, 1);
    let most = convolution_maximum(x, weight.clone(), bias, &pass);
    let upstream = Tensor::from_inner(draw(3, most.dims(), &device).inner());
    let dw = host_values(weight.grad(&(most * upstream).sum().backward()).unwrap());
    assert_eq!(dw, run(case, Compute::FP32, convolution_maximum)[2]);
}

#[test]
fn a_nan_comes_through() {
    let device = Device::flex();
    for place in 0..6 {
        let mut x = vec![1.0; 6];
        x[place] = f32::NAN;
        let x = Tensor::<3>::from_data(TensorData::new(x, [1, 6, 1]), &device);
        let weight = Tensor::<3>::ones([1, 1, 2], &device);
        let most =
            convolution_maximum(x, weight, Tensor::zeros([1], &device), &Pass::evaluation(Compute::FP32));
        assert!(host_values(most)[0].is_nan(), "{place}");
    }
}
