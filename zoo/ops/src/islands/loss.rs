//! Rows of the cross-entropy without FP32. Like published code, it takes the logarithms of the
//! probabilities first and then their sum; the formula of FP32 sums the logits.

use super::super::cross_entropy::SmoothedTargets;
use super::super::rounding::Half;
use super::super::simd::max;
use super::{each, exponentials, one, softmax, sum};

/// Share of the true class minus that of another class, rounded.
fn true_part(half: Half, targets: &SmoothedTargets) -> f32 {
    one(half, (targets.true_mass - targets.other_mass) as f32)
}

/// The smoothed and the plain loss of a row of logits, whose values are overwritten.
pub fn row_loss(half: Half, row: &mut [f32], targets: &SmoothedTargets, class: usize) -> (f32, f32) {
    half.round(row);
    let largest = max(row);
    each(half, row, |x| x - largest);
    let mut powers = row.to_vec();
    exponentials(&mut powers);
    half.round(&mut powers);
    let logarithm = one(half, sum(half, &powers).ln());
    each(half, row, |x| x - logarithm);
    let plain = -row[class];
    if targets.other_mass == 0.0 {
        return (plain, plain);
    }
    let of_true = one(half, true_part(half, targets) * plain);
    let of_others = one(half, one(half, targets.other_mass as f32) * sum(half, row));
    let smooth = one(half, of_true - of_others);
    (one(half, smooth - one(half, targets.constant as f32)), plain)
}

/// Both losses, summed over the rows.
pub fn loss(half: Half, rows: &[(f32, f32)]) -> [f32; 2] {
    let (smooth, plain): (Vec<f32>, Vec<f32>) = rows.iter().copied().unzip();
    [sum(half, &smooth), sum(half, &plain)]
}

/// Replaces logits by their gradient, given those of the two sums.
pub fn gradient(
    half: Half,
    row: &mut [f32],
    targets: &SmoothedTargets,
    class: usize,
    [smooth, plain]: [f32; 2],
) {
    half.round(row);
    softmax(half, row);
    let of_plain = (plain != 0.0).then(|| {
        let mut of_plain = row.to_vec();
        of_plain[class] = one(half, of_plain[class] - 1.0);
        let plain = one(half, plain);
        each(half, &mut of_plain, |x| x * plain);
        of_plain
    });
    let others = one(half, targets.other_mass as f32);
    each(half, row, |p| p - others);
    row[class] = one(half, row[class] - true_part(half, targets));
    let smooth = one(half, smooth);
    each(half, row, |x| x * smooth);
    if let Some(of_plain) = of_plain {
        super::with(half, row, &of_plain, |a, b| a + b);
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, Tensor, TensorData};
    use zoo_recipes::Smoothing;

    use super::super::Islands;
    use super::super::tests::draw;
    use crate::parameters::host_values;
    use crate::precision::{Compute, to_f32};
    use crate::{Pass, SmoothedTargets, cross_entropy};

    const F16: Compute = Compute(FloatDType::F16);

    /// Smoothed loss, plain loss and gradient of FP16 logits of `rows` rows.
    fn run(islands: Islands, rows: usize, classes: usize, epsilon: f64, scale: f32) -> (f32, f32, Vec<f32>) {
        let device = Device::flex().autodiff();
        let values = draw(9, (rows * classes) as u32, 1.0);
        let x = Tensor::<2>::from_data(TensorData::new(values, [rows, classes]), &device).require_grad();
        let true_classes: Vec<u32> = (0..rows as u32).map(|i| i * 7 % classes as u32).collect();
        let pass = Pass::training(F16, 1, 1).with_islands(islands);
        let targets =
            SmoothedTargets::new(&true_classes, classes, epsilon, Smoothing::AllClasses).in_pass(&pass);
        let (smooth, plain) = cross_entropy(F16.cast(x.clone()), &targets);
        let gradient = host_values(x.grad(&(smooth.clone() * scale).backward()).unwrap());
        (host_values(smooth.inner())[0], host_values(plain.inner())[0], gradient)
    }

    const OFF: Islands = Islands { loss: false, ..Islands::ALL };

    #[test]
    fn the_loss_of_few_classes_is_near_that_of_fp32_and_rounded() {
        for epsilon in [0.0, 0.1] {
            let (expected, expected_plain, gradients) = run(Islands::ALL, 9, 53, epsilon, 0.5);
            let (smooth, plain, found) = run(OFF, 9, 53, epsilon, 0.5);
            assert!((smooth / expected - 1.0).abs() < 0.01 && (plain / expected_plain - 1.0).abs() < 0.01);
            assert_ne!((smooth, plain), (expected, expected_plain));
            for (found, due) in found.iter().zip(&gradients) {
                assert!((found - due).abs() < 2e-3 * (1.0 + due.abs()), "{found} {due}");
            }
            assert_ne!(found, gradients);
            let rounded = host_values(to_f32(
                F16.cast(Tensor::<1>::from_data(TensorData::new(vec![smooth, plain], [2]), &Device::flex())),
            ));
            assert_eq!(rounded, [smooth, plain]);
        }
    }

    /// The logarithms of 9,712 probabilities near 1 / 9,712 add up to about -90,000.
    #[test]
    fn a_smoothed_loss_of_many_classes_overflows_fp16() {
        assert!(run(Islands::ALL, 2, 9_712, 0.1, 1.0).0.is_finite());
        let (smooth, plain, _) = run(OFF, 2, 9_712, 0.1, 1.0);
        assert_eq!(smooth, f32::INFINITY);
        assert!(plain.is_finite());
        assert!(run(OFF, 2, 9_712, 0.0, 1.0).0.is_finite());
    }

    #[test]
    fn the_gradient_of_both_sums_is_the_sum_of_their_gradients() {
        let device = Device::flex().autodiff();
        let of = |smooth: f32, plain: f32| {
            let x =
                Tensor::<2>::from_data(TensorData::new(draw(5, 40, 1.0), [1, 40]), &device).require_grad();
            let pass = Pass::training(F16, 1, 1).with_islands(OFF);
            let targets = SmoothedTargets::new(&[3], 40, 0.1, Smoothing::AllClasses).in_pass(&pass);
            let (a, b) = cross_entropy(F16.cast(x.clone()), &targets);
            host_values(x.grad(&(a * smooth + b * plain).backward()).unwrap())
        };
        for ((both, a), b) in of(1.0, 0.5).iter().zip(of(1.0, 0.0)).zip(of(0.0, 0.5)) {
            assert!((both - a - b).abs() < 1e-3, "{both} {a} {b}");
        }
    }
}
