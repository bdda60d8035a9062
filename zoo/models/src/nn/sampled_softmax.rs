//! Cross-entropy among the true class and some classes that are drawn (Jean et al. 2015), with
//! TensorFlow's log-uniform sampler (`tensorflow/core/kernels/range_sampler.cc`) and its correction
//! of the scores (`sampled_softmax_loss`).

use std::collections::HashSet;

use burn::tensor::{Int, Tensor, TensorData};
use zoo_recipes::Smoothing;

use crate::Pass;
use crate::ops::{self, SmoothedTargets, cross_entropy};
use crate::precision::to_f32;
use crate::random::Key;

/// Score of a drawn class that is the true one: its probability is 0.
const HIDDEN: f32 = -1e9;

/// Distinct classes below a range, drawn one after the other. Class k is drawn with the probability
/// log((k + 2) / (k + 1)) / log(range + 1). A repeated class is rejected and counted in `tries`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    ids: Vec<u32>,
    /// Number of draws that it took.
    tries: u32,
    range: u32,
}

impl Candidates {
    /// Draws `count` classes.
    ///
    /// # Panics
    /// If there are fewer classes.
    pub fn draw(key: Key, count: u32, range: u32) -> Self {
        assert!(count <= range, "{count} different classes of {range}");
        let log_range = f64::from(range).ln_1p();
        let (mut seen, mut ids, mut tries) = (HashSet::new(), Vec::with_capacity(count as usize), 0u32);
        while ids.len() < count as usize {
            // 53 bits, as many as a number has.
            let (high, low) = (key.bits(2 * tries) >> 5, key.bits(2 * tries + 1) >> 6);
            let unit = (f64::from(high) * 2f64.powi(26) + f64::from(low)) * 2f64.powi(-53);
            tries += 1;
            let id = ((unit * log_range).exp() as u32 - 1) % range;
            if seen.insert(id) {
                ids.push(id);
            }
        }
        Self { ids, tries, range }
    }

    /// Classes that were drawn elsewhere below `range`, in `tries` draws.
    pub fn given(ids: Vec<u32>, tries: u32, range: u32) -> Self {
        Self { ids, tries, range }
    }

    /// The drawn classes.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Expected number of times that a class is among those of as many draws: 0 to 1, as TensorFlow
    /// computes it.
    pub fn expected(&self, id: u32) -> f64 {
        let id = f64::from(id);
        let p = ((id + 2.0) / (id + 1.0)).ln() / f64::from(self.range).ln_1p();
        let tries = f64::from(self.tries);
        match self.tries as usize == self.ids.len() {
            true => p * tries,
            false => -(tries * (-p).ln_1p()).exp_m1(),
        }
    }
}

/// Cross-entropy of the targets in nats, summed over the rows of `x` `[rows, width]`: FP32 `[1]`. A
/// row's classes are its target and the candidates of its part of the rows, without the target. The
/// rows have as many equal parts as there are candidates. The score of a class is x times its row
/// of `weight` `[classes, width]`, plus its bias, minus the logarithm of its expected count.
/// Products are in the compute type.
///
/// # Panics
/// If `candidates` is empty, or `targets` does not have one target per row.
pub fn sampled_softmax(
    x: Tensor<2>,
    (weight, bias): (Tensor<2>, Option<Tensor<1>>),
    targets: &[u32],
    candidates: &[Candidates],
    pass: &Pass,
) -> Tensor<1> {
    let ([rows, _], [classes, _], device) = (x.dims(), weight.dims(), x.device());
    assert_eq!(rows, targets.len(), "a target for every row");
    // One lookup, so that the weight has one gradient.
    let drawn = candidates.iter().flat_map(|candidates| candidates.ids.iter());
    let ids: Vec<Option<u32>> = targets.iter().chain(drawn).map(|id| Some(*id)).collect();
    let weight = ops::embedding(weight, &ids);
    let bias = bias.map(|bias| ops::embedding(bias.reshape([classes, 1]), &ids));
    let column = |values: Vec<f64>| {
        let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
        let count = values.len();
        Tensor::<2>::from_data(TensorData::new(values, [count, 1]), &device)
    };
    let rounded = |x: Tensor<2>| to_f32(pass.compute.cast(x));
    let part = rows.div_ceil(candidates.len());
    let (mut total, mut at): (Option<Tensor<1>>, usize) = (None, rows);
    for (number, candidates) in candidates.iter().enumerate() {
        let from = rows.min(number * part);
        let (count, drawn) = (part.min(rows - from), candidates.ids.len());
        if count == 0 {
            continue;
        }
        let (x, targets) = (x.clone().narrow(0, from, count), &targets[from..from + count]);
        let log = |ids: &[u32]| column(ids.iter().map(|id| candidates.expected(*id).ln()).collect());
        // The score of each row's target.
        let products = rounded(x.clone()) * rounded(weight.clone().narrow(0, from, count));
        let mut of_target = rounded(products.sum_dim(1));
        if let Some(bias) = &bias {
            of_target = of_target + bias.clone().narrow(0, from, count);
        }
        let of_target = of_target - log(targets);
        // Those of the candidates.
        let bias = bias.clone().map(|bias| bias.narrow(0, at, drawn).reshape([drawn]));
        let scores = ops::linear(x, weight.clone().narrow(0, at, drawn), bias, pass);
        let scores = to_f32(scores) - log(&candidates.ids).transpose();
        let scores = scores.mask_fill(hits(targets, &candidates.ids, &device), HIDDEN);
        let scores = Tensor::cat(vec![of_target, scores], 1);
        let first = SmoothedTargets::new(&vec![0; count], drawn + 1, 0.0, Smoothing::AllClasses);
        let loss = cross_entropy(scores, &first).0;
        total = Some(total.map_or(loss.clone(), |total| total + loss));
        at += drawn;
    }
    total.unwrap_or_else(|| Tensor::zeros([1], &device))
}

/// Whether a candidate is the row's target: `[targets, candidates]`.
fn hits(targets: &[u32], candidates: &[u32], device: &burn::tensor::Device) -> Tensor<2, burn::tensor::Bool> {
    let ints = |ids: &[u32], shape: [usize; 2]| {
        let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
        let shape_of_all = [targets.len(), candidates.len()];
        Tensor::<2, Int>::from_data(TensorData::new(ids, shape), device).expand(shape_of_all)
    };
    ints(targets, [targets.len(), 1]).equal(ints(candidates, [1, candidates.len()]))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;

    #[test]
    fn candidates_are_different_and_as_frequent_as_expected() {
        let (count, range, rounds) = (20, 300, 4000);
        let (mut seen, mut expected, mut repeated) = (vec![0f64; 300], vec![0f64; 300], 0);
        for step in 0..rounds {
            let drawn = Candidates::draw(Key::new(1, 2, step), count, range);
            assert_eq!(drawn.ids().iter().collect::<HashSet<_>>().len(), 20);
            repeated += u64::from(drawn.tries > count);
            drawn.ids().iter().for_each(|id| seen[*id as usize] += 1.0);
            (0..range).for_each(|id| expected[id as usize] += drawn.expected(id));
        }
        assert!((1..rounds).contains(&repeated), "{repeated} of {rounds} draws had repeats");
        // The expected counts take the number of tries for fixed, which is nearly right.
        for id in [0, 1, 5, 50, 299] {
            let (seen, expected) = (seen[id], expected[id]);
            assert!(
                (seen - expected).abs() < 4.0 * expected.sqrt() + 0.02 * expected,
                "{id}: {seen} {expected}"
            );
        }
        assert!(seen[0] > 10.0 * seen[100]);
        let again = Candidates::draw(Key::new(1, 2, 0), count, range);
        assert_eq!(again, Candidates::draw(Key::new(1, 2, 0), count, range));
        assert_ne!(again, Candidates::draw(Key::new(1, 2, 1), count, range));
    }

    #[test]
    fn without_a_repeated_draw_the_expected_count_is_a_product() {
        let drawn = Candidates::given(vec![4, 2], 2, 9);
        assert!((drawn.expected(0) - 2.0 * 2f64.ln() / 10f64.ln()).abs() < 1e-12);
        let drawn = Candidates::given(vec![4, 2], 3, 9);
        let p = 1.5f64.ln() / 10f64.ln();
        assert!((drawn.expected(1) - (1.0 - (1.0 - p).powi(3))).abs() < 1e-12);
    }

    fn tensor(count: usize, width: usize, stream: u64) -> Tensor<2> {
        let key = Key::new(5, stream, 0);
        let values: Vec<f32> = (0..count * width).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, [count, width]), &Device::flex())
    }

    /// All classes as candidates with equal counts: the full softmax.
    #[test]
    fn with_all_classes_it_is_the_softmax() {
        let (x, weight, bias) = (tensor(6, 4, 1), tensor(7, 4, 2), tensor(7, 1, 3).reshape([7]));
        let targets = [3, 0, 6, 1, 1, 5];
        let pass = Pass::evaluation(Compute::FP32);
        // As many tries that every class is expected once.
        let all = Candidates::given((0..7).collect(), 100_000, 7);
        let found = sampled_softmax(
            x.clone(),
            (weight.clone(), Some(bias.clone())),
            &targets,
            &[all.clone(), all],
            &pass,
        );
        let logits = ops::linear(x, weight, Some(bias), &pass);
        let due = cross_entropy(logits, &SmoothedTargets::new(&targets, 7, 0.0, Smoothing::AllClasses)).0;
        let (found, due) = (host_values(found)[0], host_values(due)[0]);
        assert!((found - due).abs() < 1e-5 * due, "{found} {due}");
    }

    #[test]
    fn parts_of_the_rows_have_candidates_of_their_own() {
        let (x, weight) = (tensor(5, 4, 1), tensor(20, 4, 2));
        let (targets, pass) = ([3, 0, 6, 1, 15], Pass::evaluation(Compute::FP32));
        let drawn = [1, 2].map(|step| Candidates::draw(Key::new(1, 1, step), 6, 20));
        let loss = |x: Tensor<2>, targets: &[u32], candidates: &[Candidates]| {
            host_values(sampled_softmax(x, (weight.clone(), None), targets, candidates, &pass))[0]
        };
        let whole = loss(x.clone(), &targets, &drawn);
        let first = loss(x.clone().narrow(0, 0, 3), &targets[..3], &drawn[..1]);
        let second = loss(x.narrow(0, 3, 2), &targets[3..], &drawn[1..]);
        assert!((whole - first - second).abs() < 1e-5, "{whole} {first} {second}");
    }
}
