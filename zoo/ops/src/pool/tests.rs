use burn::tensor::{Device, FloatDType, TensorData};

use super::*;
use crate::parameters::host_values;
use crate::precision::{Compute, to_f32};
use crate::random::Key;
use crate::rounding::Half;

const KINDS: [PoolKind; 2] = [PoolKind::Max, PoolKind::Average];

/// Shapes and pools: remainders, overlaps, gaps, one pixel, more channels than a vector.
fn cases() -> impl Iterator<Item = ([usize; 4], Pooling)> {
    let geometries = [
        ([3, 6, 4, 5], [2, 2], [2, 2]),
        ([2, 7, 5, 19], [2, 2], [2, 2]),
        ([2, 8, 7, 3], [3, 3], [2, 2]),
        ([1, 6, 6, 33], [3, 3], [1, 1]),
        ([2, 5, 8, 4], [2, 2], [3, 3]),
        ([2, 9, 7, 2], [3, 3], [3, 3]),
        ([2, 4, 3, 6], [1, 1], [1, 1]),
        ([2, 4, 4, 6], [2, 2], [1, 1]),
        ([1, 2, 2, 1], [2, 2], [2, 2]),
        // Sequences: groups of steps with a rest, and all steps.
        ([3, 11, 1, 9], [4, 1], [4, 1]),
        ([2, 40, 1, 17], [40, 1], [40, 1]),
        ([2, 7, 6, 3], [3, 2], [1, 2]),
        ([1, 5, 7, 4], [1, 3], [2, 3]),
    ];
    geometries
        .into_iter()
        .flat_map(|(shape, size, stride)| KINDS.map(|of| (shape, Pooling { of, size, stride })))
}

/// Values of few steps, so that many rectangles have several equal maxima.
fn values(n: usize, stream: u64) -> Vec<f32> {
    let key = Key::new(5, stream, 0);
    (0..n).map(|i| (2.0 * key.normal(i as u32)).round() / 2.0).collect()
}

/// Output and gradient, by a loop over the outputs.
fn plain(x: &[f32], upstream: &[f32], [n, h, w, c]: [usize; 4], how: Pooling) -> [Vec<f32>; 2] {
    let ([rows, columns], [down, across]) = (how.outputs([h, w]), how.size);
    let (mut out, mut dx) = (Vec::new(), vec![0f32; x.len()]);
    for (place, &gradient) in upstream.iter().enumerate().take(n * rows * columns * c) {
        let (channel, column) = (place % c, place / c % columns);
        let (row, image) = (place / c / columns % rows, place / c / columns / rows);
        let pixels = (0..down * across).map(|k| {
            let (y, x) = (row * how.stride[0] + k / across, column * how.stride[1] + k % across);
            ((image * h + y) * w + x) * c + channel
        });
        let pixels: Vec<usize> = pixels.collect();
        match how.of {
            PoolKind::Max => {
                // `>` keeps the first of equal values.
                let most = pixels.iter().copied().reduce(|a, b| if x[b] > x[a] { b } else { a }).unwrap();
                out.push(x[most]);
                dx[most] += gradient;
            }
            PoolKind::Average => {
                out.push(pixels.iter().map(|&i| x[i]).sum::<f32>() / (down * across) as f32);
                pixels.iter().for_each(|&i| dx[i] += gradient / (down * across) as f32);
            }
        }
    }
    [out, dx]
}

/// Output and gradient of an operation.
fn run(
    x: &[f32],
    upstream: &[f32],
    shape: [usize; 4],
    compute: Compute,
    of: impl Fn(Tensor<4>) -> Tensor<4>,
) -> [Vec<f32>; 2] {
    let device = Device::flex().autodiff();
    let x = Tensor::<4>::from_data(TensorData::new(x.to_vec(), shape), &device).require_grad();
    let out = of(compute.cast(x.clone()));
    assert_eq!(out.dtype(), compute.0.into());
    let upstream = Tensor::from_data(TensorData::new(upstream.to_vec(), out.dims()), &device);
    let grads = (to_f32(out.clone()) * upstream).sum().backward();
    [host_values(out.inner()), host_values(x.grad(&grads).unwrap())]
}

fn assert_near(found: &[Vec<f32>; 2], due: &[Vec<f32>; 2], limit: f32, what: &str) {
    for (part, (found, due)) in ["output", "gradient"].iter().zip(found.iter().zip(due)) {
        assert_eq!(found.len(), due.len(), "{what}: {part}");
        let far = found.iter().zip(due).position(|(a, b)| (a - b).abs() > limit * b.abs().max(1.0));
        assert_eq!(far, None, "{what}: {part} {found:?} {due:?}");
    }
}

#[test]
fn outputs_and_gradients_are_those_of_a_plain_loop() {
    for (shape, how) in cases() {
        let x = values(shape.iter().product(), 0);
        let upstream = values(how.shape(shape).iter().product(), 1);
        let due = plain(&x, &upstream, shape, how);
        let found = run(&x, &upstream, shape, Compute::FP32, |x| pool(x, how));
        // Sums of halves are exact in any order.
        let limit = if how.of == PoolKind::Max { 0.0 } else { 1e-6 };
        assert_near(&found, &due, limit, &format!("{shape:?} {how:?}"));
    }
}

#[test]
fn half_types_are_computed_in_fp32_and_rounded_once() {
    for (half, unit) in [(Half::Fp16, 1.0 / 1024.0), (Half::Bf16, 1.0 / 128.0)] {
        let dtype = if half == Half::Fp16 { FloatDType::F16 } else { FloatDType::BF16 };
        for (shape, how) in cases() {
            // These values are exact in both types.
            let x = values(shape.iter().product(), 0);
            let upstream = values(how.shape(shape).iter().product(), 1);
            let mut due = plain(&x, &upstream, shape, how);
            due.iter_mut().for_each(|due| half.round(due));
            let found = run(&x, &upstream, shape, Compute(dtype), |x| pool(x, how));
            // The loop divides, the kernel multiplies by the inverse: FP32 values that round apart.
            let exact = how.size.iter().product::<usize>().is_power_of_two();
            let limit = if how.of == PoolKind::Average && !exact { unit } else { 0.0 };
            assert_near(&found, &due, limit, &format!("{half:?} {shape:?} {how:?}"));
        }
    }
}

#[test]
fn kernel_and_composition_agree() {
    for (shape, how) in cases() {
        let key = Key::new(6, 0, 0);
        // No two equal values: backends other than the CPU choose freely among equal maxima.
        let x: Vec<f32> = (0..shape.iter().product()).map(|i: usize| key.normal(i as u32)).collect();
        let upstream = values(how.shape(shape).iter().product(), 1);
        let own = run(&x, &upstream, shape, Compute::FP32, |x| pool(x, how));
        let composed = run(&x, &upstream, shape, Compute::FP32, |x| composed(x, how));
        assert_near(&own, &composed, 1e-6, &format!("{shape:?} {how:?}"));
    }
}

#[test]
fn the_first_of_equal_maxima_gets_the_gradient() {
    for (size, stride) in [(2, 2), (2, 3)] {
        let how = Pooling::square(PoolKind::Max, size, stride);
        for which in 1..16u32 {
            let largest = [0, 1, 2, 3].map(|pixel| which >> pixel & 1 == 1);
            let x = largest.map(|largest| if largest { 2.0 } else { 1.0 });
            let [_, dx] = run(&x, &[7.0], [1, 2, 2, 1], Compute::FP32, |x| pool(x, how));
            let mut due = [0.0; 4];
            due[which.trailing_zeros() as usize] = 7.0;
            assert_eq!(dx, due, "{x:?}");
        }
    }
}

#[test]
fn a_nan_comes_through_and_its_gradient_is_not_lost() {
    for (of, size) in KINDS.into_iter().flat_map(|of| [(of, 2), (of, 4)]) {
        for place in 0..16 {
            let mut x = vec![1.0; 16];
            x[place] = f32::NAN;
            let how = Pooling::square(of, size, size);
            let outputs = 16 / size / size;
            let [out, dx] = run(&x, &vec![3.0; outputs], [1, 4, 4, 1], Compute::FP32, |x| pool(x, how));
            assert_eq!(out.iter().filter(|x| x.is_nan()).count(), 1, "{how:?} {place}");
            assert_eq!(dx.iter().sum::<f32>(), 3.0 * outputs as f32, "{how:?} {place}");
        }
    }
}

#[test]
fn an_image_smaller_than_a_square_has_no_output_and_no_gradient() {
    for of in KINDS {
        let how = Pooling::square(of, 3, 1);
        for own in [true, false] {
            let found = run(&[1.0; 12], &[], [1, 2, 3, 2], Compute::FP32, |x| {
                if own { pool(x, how) } else { composed(x, how) }
            });
            assert_eq!(found, [vec![], vec![0.0; 12]]);
        }
    }
}
