//! Scores of classes: their loss, the number of right answers, and their values on the host.

use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_recipes::Smoothing;

use crate::Pass;
use crate::contract::Term;
use crate::ops::{SmoothedTargets, cross_entropy};
use crate::parameters::host_values;
use crate::precision::to_f32;

/// Denominators of [`class_terms`]: the number of examples for both.
pub fn class_counts(examples: usize) -> Vec<(&'static str, f64)> {
    vec![("loss", examples as f64), ("top1", examples as f64)]
}

/// Terms of an objective for logits `[examples, classes]`: `loss`, the cross-entropy of the labels
/// in nats, which is minimised, and `top1`, the number of right answers, which is reported. The
/// cross-entropy is FP32, or in the half type of the pass if `loss` is not one of its FP32 islands.
pub fn class_terms(logits: Tensor<2>, labels: &[u32], pass: &Pass) -> Vec<Term> {
    let right = right_answers(logits.clone(), labels);
    let [_, classes] = logits.dims();
    let targets = SmoothedTargets::new(labels, classes, 0.0, Smoothing::AllClasses).in_pass(pass);
    let loss = cross_entropy(logits, &targets).0;
    vec![Term { name: "loss", sum: loss, weight: 1.0 }, Term { name: "top1", sum: right, weight: 0.0 }]
}

/// Number of examples whose label has the highest score, `[1]`, FP32, not differentiable. Of equal
/// scores the first class counts. An example with a score that is NaN is not right.
fn right_answers(logits: Tensor<2>, labels: &[u32]) -> Tensor<1> {
    let tracked = logits.device().is_autodiff();
    let scores = to_f32(if tracked { logits.inner() } else { logits });
    let ([examples, classes], device): (_, Device) = (scores.dims(), scores.device());
    let labels: Vec<i32> = labels.iter().map(|&label| label as i32).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [examples, 1]), &device);
    let of_label = scores.clone().gather(1, labels.clone());
    let numbers = Tensor::<1, Int>::arange(0..classes as i64, &device).reshape([1, classes]);
    let before = numbers.expand([examples, classes]).lower(labels.expand([examples, classes]));
    let of_label = of_label.expand([examples, classes]);
    // A class wins against the label if its score is higher, or equal and its number lower. With
    // NaN neither `<` nor `<=` holds, so the label has to win every comparison.
    let wins = scores.clone().lower(of_label.clone());
    let wins_ties = scores.lower_equal(of_label);
    let wins = wins.bool_or(wins_ties.bool_and(before.bool_not()));
    // The smallest of an example's comparisons: 1 if the label wins all of them.
    let right = to_f32(wins.float()).min_dim(1).sum();
    if tracked { Tensor::from_inner(right) } else { right }
}

/// Scores of each example: FP32 logits, on the host.
pub fn class_scores(logits: Tensor<2>) -> Vec<Vec<f32>> {
    let logits = to_f32(logits);
    let logits = if logits.device().is_autodiff() { logits.inner() } else { logits };
    let classes = logits.dims()[1];
    host_values(logits).chunks(classes.max(1)).map(<[f32]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::FloatDType;

    use super::*;
    use crate::ops::Islands;
    use crate::precision::Compute;

    fn right(rows: &[[f32; 3]], labels: &[u32]) -> f32 {
        let values: Vec<f32> = rows.iter().flatten().copied().collect();
        let found = [Device::flex(), Device::flex().autodiff()].map(|device| {
            let logits = Tensor::from_data(TensorData::new(values.clone(), [rows.len(), 3]), &device);
            let right = right_answers(logits, labels);
            host_values(if device.is_autodiff() { right.inner() } else { right })
        });
        assert_eq!(found[0], found[1]);
        found[0][0]
    }

    #[test]
    fn the_loss_is_rounded_in_a_pass_without_its_island() {
        let values = [0.1f32, 3.0, 2.0, -1.3, 0.7, 0.2];
        let logits = Tensor::<2>::from_data(TensorData::new(values.to_vec(), [2, 3]), &Device::flex());
        let sums = |compute, loss| {
            let pass = Pass::training(compute, 1, 0).with_islands(Islands { loss, ..Islands::ALL });
            class_terms(logits.clone(), &[1, 2], &pass).into_iter().map(|term| host_values(term.sum)[0])
        };
        let sums = |compute, loss| sums(compute, loss).collect::<Vec<f32>>();
        let half = Compute(FloatDType::F16);
        let exact = sums(half, true);
        assert_eq!(exact, sums(Compute::FP32, false), "FP32 has no other type to compute in");
        let rounded = sums(half, false);
        assert_eq!(rounded[1], exact[1], "right answers are counted in FP32");
        let error = (rounded[0] - exact[0]).abs();
        assert!(error > 1e-6 && error < 0.01, "{rounded:?} {exact:?}");
    }

    #[test]
    fn the_highest_score_is_the_answer() {
        let rows = [[1.0, 3.0, 2.0], [0.0, -1.0, -2.0], [5.0, 6.0, 7.0]];
        assert_eq!(right(&rows, &[1, 0, 2]), 3.0);
        assert_eq!(right(&rows, &[1, 1, 1]), 1.0);
        assert_eq!(right(&rows, &[0, 2, 0]), 0.0);
    }

    #[test]
    fn of_equal_scores_the_first_class_is_the_answer() {
        for (label, due) in [(0, 0.0), (1, 1.0), (2, 0.0)] {
            assert_eq!(right(&[[1.0, 3.0, 3.0]], &[label]), due, "{label}");
        }
        assert_eq!(right(&[[2.0; 3]; 3], &[0, 1, 2]), 1.0);
    }

    #[test]
    fn a_nan_is_never_right() {
        for row in [[f32::NAN; 3], [f32::NAN, 1.0, 0.0], [0.0, f32::NAN, 1.0]] {
            assert_eq!(right(&[row; 3], &[0, 1, 2]), 0.0, "{row:?}");
        }
    }
}
