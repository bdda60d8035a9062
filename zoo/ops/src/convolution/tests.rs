//! Custom kernels agree with Burn's operations, and are independent of padding and of other
//! sequences of the batch.

use burn::tensor::{Device, FloatDType, TensorData};

use super::*;
use crate::parameters::host_values;
use crate::precision::{Compute, to_f32};
use crate::random::Key;

fn draw<const D: usize>(stream: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let key = Key::new(41, stream, 0);
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

const BF16: Compute = Compute(FloatDType::BF16);
const FP16: Compute = Compute(FloatDType::F16);
/// Half types with the unit of their fraction.
const HALVES: [(Compute, f32); 2] = [(BF16, 1.0 / 128.0), (FP16, 1.0 / 1024.0)];

struct Case {
    input: [usize; 4],
    weight: [usize; 4],
    geometry: Geometry,
}

fn case(input: [usize; 4], weight: [usize; 4], axes: [Axis; 2], groups: usize) -> Case {
    Case { input, weight, geometry: Geometry { axes, groups } }
}

/// Covers every branch:
///
/// - runs that join the taps of a row, and runs that do not;
/// - strides that leave inputs unread;
/// - asymmetric padding;
/// - lanes and depths that end inside a panel;
/// - groups;
/// - depthwise, with and without remaining channels;
/// - 1 x 1, few columns and many;
/// - images enough for a product of each, with few channels: strides, padding, rows cut in parts.
fn cases() -> Vec<Case> {
    let axis = Axis::default;
    vec![
        case([2, 1, 37, 16], [20, 16, 1, 5], [axis(), axis().centred(5)], 1),
        case([3, 1, 50, 40], [33, 40, 1, 3], [axis(), axis().dilated(4).causal(3)], 1),
        case([2, 9, 11, 3], [7, 3, 3, 3], [axis().padded(1, 1), axis().padded(1, 1)], 1),
        case(
            [2, 15, 14, 1],
            [8, 1, 7, 5],
            [axis().strided(2).padded(3, 2), axis().strided(3).padded(0, 1)],
            1,
        ),
        case([1, 12, 13, 6], [9, 6, 3, 4], [axis().strided(2).same(12, 3), axis().dilated(2).strided(3)], 1),
        case([2, 10, 9, 64], [32, 64, 1, 1], [axis(), axis()], 1),
        case([2, 10, 9, 8], [12, 8, 1, 1], [axis().strided(2), axis().strided(2)], 1),
        case([2, 8, 9, 12], [18, 4, 3, 3], [axis().centred(3), axis().strided(2).centred(3)], 3),
        case([3, 1, 70, 41], [41, 1, 1, 6], [axis(), axis().padded(2, 3)], 41),
        case([2, 9, 8, 64], [64, 1, 3, 3], [axis().strided(2).centred(3), axis().strided(2).centred(3)], 64),
        case([1, 1, 300, 32], [32, 1, 1, 9], [axis(), axis().dilated(3).centred(9)], 32),
        case([2, 1, 31, 4], [8, 1, 1, 3], [axis(), axis().centred(3)], 4),
        case([2, 6, 5, 4], [5, 4, 3, 3], [axis().padded(4, 3), axis().padded(5, 0)], 1),
        case([2, 30, 30, 40], [50, 40, 3, 3], [axis().centred(3), axis().centred(3)], 1),
        // More positions than one chunk, in a row that is cut; runs longer than a block; rows of
        // the kernel outside the image.
        case([1, 1, 900, 5], [40, 5, 1, 4], [axis(), axis().strided(2).same(900, 4)], 1),
        case([2, 7, 13, 300], [70, 300, 2, 3], [axis().padded(3, 3), axis().dilated(2).padded(9, 1)], 1),
        case([9, 12, 13, 6], [16, 6, 5, 5], [axis(), axis().padded(2, 1)], 1),
        case([8, 40, 61, 3], [5, 3, 7, 4], [axis().padded(3, 3), axis().strided(2).padded(9, 0)], 1),
        case([8, 30, 90, 20], [50, 20, 5, 5], [axis().dilated(2), axis()], 1),
        case([2, 21, 23, 2], [3, 2, 1, 1], [axis().strided(3), axis().strided(2)], 1),
    ]
}

/// Output and gradients of x, weight and bias.
fn run(case: &Case, compute: Compute, own: bool, half: bool, biased: bool) -> Vec<Vec<f32>> {
    let device = Device::flex().autodiff();
    let x = draw(1, case.input, &device).require_grad();
    let weight = draw(2, case.weight, &device).require_grad();
    let bias = draw(3, [case.weight[0]], &device).require_grad();
    let pass = Pass::evaluation(compute);
    let input = if half { compute.cast(x.clone()) } else { x.clone() };
    let used = biased.then(|| bias.clone());
    let out = match own {
        true => convolution(input, weight.clone(), used, case.geometry, &pass),
        false => composed::convolution(input, weight.clone(), used, case.geometry, &pass),
    };
    assert_eq!(out.dtype(), DType::from(compute.0));
    assert_eq!(out.dims(), Shapes::new(case.input, case.weight, case.geometry).output);
    let upstream = draw(4, out.dims(), &device);
    let grads = (to_f32(out.clone()) * upstream).sum().backward();
    let mut values = vec![host_values(out.inner())];
    values.extend([x.grad(&grads), weight.grad(&grads)].into_iter().map(|g| host_values(g.unwrap())));
    values.extend(biased.then(|| host_values(bias.grad(&grads).unwrap())));
    values
}

#[test]
fn fp32_is_burns_convolution_but_for_the_order_of_sums() {
    for (i, case) in cases().iter().enumerate() {
        let [own, composed] = [true, false].map(|own| run(case, Compute::FP32, own, false, i % 2 == 0));
        for (j, (own, composed)) in own.iter().zip(&composed).enumerate() {
            assert_eq!(own.len(), composed.len());
            let largest = composed.iter().fold(0f32, |m, x| m.max(x.abs()));
            for (a, b) in own.iter().zip(composed) {
                assert!((a - b).abs() <= 3e-6 * largest, "case {i}, value {j}: {a} {b}");
            }
        }
    }
}

/// The composition rounds once more (product, then bias), and Flex adds gradients of half-precision
/// weights in parts.
#[test]
fn halves_are_burns_convolution_but_for_roundings() {
    for ((i, case), (compute, unit)) in
        cases().iter().enumerate().flat_map(|case| HALVES.map(|of| (case, of)))
    {
        for half in [false, true] {
            let [own, composed] = [true, false].map(|own| run(case, compute, own, half, i % 2 == 0));
            for (j, (own, composed)) in own.iter().zip(&composed).enumerate() {
                let largest = composed.iter().fold(0f32, |m, x| m.max(x.abs()));
                for (a, b) in own.iter().zip(composed) {
                    let limit = (2.0 * b.abs() + 4.0 * largest) * unit;
                    assert!((a - b).abs() <= limit, "case {i}, value {j}, half {half}: {a} {b}");
                }
            }
        }
    }
}

/// Half-precision products must equal FP32 products of rounded operands, rounded once.
#[test]
fn halves_are_fp32_of_rounded_operands_rounded_once() {
    let device = Device::flex().autodiff();
    for (case, (half, unit)) in cases().iter().flat_map(|case| HALVES.map(|of| (case, of))) {
        let [x, weight] = [(1, case.input), (2, case.weight)]
            .map(|(stream, shape)| half.cast(draw(stream, shape, &device)));
        let of = |compute: Compute| {
            let (x, weight) = (to_f32(x.clone()).require_grad(), to_f32(weight.clone()).require_grad());
            let pass = Pass::evaluation(compute);
            let y = to_f32(convolution(x.clone(), weight.clone(), None, case.geometry, &pass));
            let upstream = to_f32(half.cast(draw(4, y.dims(), &device)));
            let grads = (y.clone() * upstream).sum().backward();
            [y.inner(), x.grad(&grads).unwrap(), weight.grad(&grads).unwrap()].map(host_values)
        };
        for (own, exact) in of(half).iter().zip(&of(Compute::FP32)) {
            let largest = exact.iter().fold(0f32, |m, x| m.max(x.abs()));
            for (a, b) in own.iter().zip(exact) {
                assert!((a - b).abs() <= b.abs() * unit / 2.0 + largest * 2e-6, "{a} {b}");
            }
        }
    }
}

/// Products without a bf16 instruction must meet the same condition, on every CPU with FP32
/// vectors.
#[test]
fn emulated_bf16_is_fp32_of_rounded_operands_rounded_once() {
    if !super::super::fp32::available() {
        eprintln!("skipped: this CPU has no vectors for products");
        return;
    }
    let draw = |stream, n: usize| -> Vec<f32> {
        let key = Key::new(43, stream, 0);
        (0..n as u32).map(|i| key.normal(i)).collect()
    };
    let size = |shape: &[usize]| shape.iter().product::<usize>();
    let emulated = Products::Bf16(Instruction::Emulated);
    for (i, case) in cases().iter().enumerate() {
        let output = Shapes::new(case.input, case.weight, case.geometry).output;
        let biases = if i % 2 == 0 { case.weight[0] } else { 0 };
        for stored in [DType::F32, DType::BF16] {
            let tensors = |round: bool, of_sums: DType| {
                let tensor = |stream, shape: &[usize], dtype| {
                    let mut values = draw(stream, size(shape));
                    if round {
                        super::super::simd::round_in_place(&mut values);
                    }
                    host::tensor(values, shape.to_vec(), dtype)
                };
                let x = tensor(1, &case.input, if round { DType::F32 } else { stored });
                let [weight, bias] = [(2, &case.weight[..]), (3, &[biases])]
                    .map(|(stream, shape)| tensor(stream, shape, DType::F32));
                (x, weight, bias, tensor(4, &output, of_sums))
            };
            let all = |with, (x, weight, bias, dy): (FlexTensor, FlexTensor, FlexTensor, FlexTensor)| {
                let wanted = Wanted { input: true, bias: biases > 0 };
                let out = Flex::convolved(x.clone(), weight.clone(), bias, case.geometry, with);
                let (dx, dw, db) = Flex::convolved_backward(x, weight, dy, case.geometry, wanted, with);
                [out, dx, dw, db].map(|tensor| host::values(&tensor).into_owned())
            };
            let found = all(emulated, tensors(false, DType::BF16));
            let due = all(Products::Fp32, tensors(true, DType::F32));
            for (j, (found, due)) in found.iter().zip(&due).enumerate() {
                assert_eq!(found.len(), due.len());
                let largest = due.iter().fold(0f32, |m, x| m.max(x.abs()));
                for (a, b) in found.iter().zip(due) {
                    assert!(
                        (a - b).abs() <= b.abs() / 256.0 + largest * 2e-6,
                        "case {i}, value {j}, {stored:?}: {a} {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_output_depends_on_nothing_but_what_it_sees() {
    let device = Device::flex();
    for compute in [Compute::FP32, BF16, FP16] {
        for case in cases() {
            let pass = Pass::evaluation(compute);
            let (x, weight) = (draw(1, case.input, &device), draw(2, case.weight, &device));
            let all = convolution(x.clone(), weight.clone(), None, case.geometry, &pass);
            let last = case.input[0] - 1;
            let alone = convolution(x.narrow(0, last, 1), weight, None, case.geometry, &pass);
            let of_all = all.narrow(0, last, 1);
            assert_eq!(host_values(alone), host_values(of_all));
        }
    }
}

#[test]
fn an_empty_batch_has_gradients_of_zeros() {
    for (case, compute) in
        cases().iter().flat_map(|case| [Compute::FP32, BF16, FP16].map(|compute| (case, compute)))
    {
        let [_, height, width, channels] = case.input;
        let empty = Case { input: [0, height, width, channels], ..*case };
        let [out, dx, dw] =
            <[Vec<f32>; 3]>::try_from(run(&empty, compute, true, false, false)).expect("three");
        assert!(out.is_empty() && dx.is_empty() && dw.iter().all(|&g| g == 0.0));
        assert_eq!(dw.len(), case.weight.iter().product::<usize>());
    }
}

#[test]
fn an_untracked_input_has_no_gradient() {
    let device = Device::flex().autodiff();
    let case = &cases()[0];
    let (x, weight) = (draw(1, case.input, &device), draw(2, case.weight, &device).require_grad());
    let out = convolution(x.clone(), weight.clone(), None, case.geometry, &Pass::evaluation(Compute::FP32));
    let grads = out.sum().backward();
    assert!(x.grad(&grads).is_none() && weight.grad(&grads).is_some());
}

#[test]
fn a_kernel_longer_than_the_input_has_no_output() {
    let device = Device::flex().autodiff();
    let x = draw(1, [2, 1, 3, 4], &device).require_grad();
    let weight = draw(2, [5, 4, 1, 9], &device).require_grad();
    let pass = Pass::evaluation(Compute::FP32);
    let out = convolution(x, weight, None, Geometry::default(), &pass);
    assert_eq!(out.dims(), [2, 1, 0, 5]);
}
