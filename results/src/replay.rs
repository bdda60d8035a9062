//! Comparison of one update that was computed twice, tensor by tensor.
//!
//! This module reads and writes no files. The program that trains hands over the tensors.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;

/// Number of values whose sums one task computes. It is fixed, so that sums do not depend on the
/// number of threads.
const BLOCK: usize = 1 << 15;

/// What a tensor is, in the order in which an update computes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TensorKind {
    /// Output of a layer in the forward pass.
    Output,
    /// Gradient of a layer's output in the backward pass, divided by the loss scale.
    OutputGradient,
    /// Gradient of a parameter, divided by the loss scale, before penalty and clipping.
    WeightGradient,
    /// Parameter after the update.
    NewWeight,
}

impl TensorKind {
    /// Name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::OutputGradient => "output gradient",
            Self::WeightGradient => "weight gradient",
            Self::NewWeight => "new weight",
        }
    }
}

/// How far two tensors are apart. Errors are those of the one with the less exact type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TensorDifference {
    /// What the tensor is.
    pub what: TensorKind,
    /// Path of the layer or parameter.
    pub layer: String,
    /// Number of the call of the layer in the update, from 1.
    pub call: usize,
    /// Number of values.
    pub values: usize,
    /// ||a - b|| / ||b||, where b has the more exact type. `None` if it is not finite: a value is
    /// not, or b is 0 and a is not.
    pub relative_error: Option<f64>,
    /// Largest |a - b|; `None` if it is not finite.
    pub largest_error: Option<f64>,
    /// Numbers of infinities and NaN in the run's own type and in the other one.
    pub not_finite: [usize; 2],
    /// Whether the relative error is above the limit, or not finite.
    pub exceeds: bool,
}

/// The computation whose type is the more exact one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// The first one, in the run's own type.
    First,
    /// The second one, in the other type.
    Second,
}

/// Largest relative errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Limit of outputs.
    pub forward: f64,
    /// Limit of gradients and new weights.
    pub backward: f64,
}

impl Limits {
    /// One limit of all tensors.
    #[must_use]
    pub fn all(limit: f64) -> Self {
        Self { forward: limit, backward: limit }
    }

    fn of(self, what: TensorKind) -> f64 {
        match what {
            TensorKind::Output => self.forward,
            _ => self.backward,
        }
    }
}

/// Tensors of the first computation, and their differences from those of the second.
#[derive(Debug)]
pub struct TensorComparison {
    reference: Reference,
    limits: Limits,
    /// Tensors of the first computation that were not compared yet.
    first: HashMap<(TensorKind, String, usize), Vec<f32>>,
    calls: HashMap<(TensorKind, String), usize>,
    rows: Vec<TensorDifference>,
    /// Tensors that only one of the computations has.
    unpaired: usize,
    is_second: bool,
}

impl TensorComparison {
    /// A comparison with limits of the relative errors, before the first computation.
    #[must_use]
    pub fn new(reference: Reference, limits: Limits) -> Self {
        Self {
            reference,
            limits,
            first: HashMap::new(),
            calls: HashMap::new(),
            rows: Vec::new(),
            unpaired: 0,
            is_second: false,
        }
    }

    /// Forgets the tensors of the first computation, which begins again.
    pub fn begin_first(&mut self) {
        self.first.clear();
        self.calls.clear();
        self.is_second = false;
    }

    /// Ends the first computation.
    pub fn begin_second(&mut self) {
        self.calls.clear();
        self.is_second = true;
    }

    /// Takes a tensor of the present computation. Its values are divided by `scale` in errors.
    pub fn add(&mut self, what: TensorKind, layer: &str, values: &[f32], scale: f64) {
        let call = self.calls.entry((what, layer.to_owned())).or_default();
        *call += 1;
        let key = (what, layer.to_owned(), *call);
        if !self.is_second {
            self.first.insert(key, values.to_vec());
            return;
        }
        match self.first.remove(&key) {
            Some(first) if first.len() == values.len() => {
                let sums = match self.reference {
                    Reference::Second => Sums::of(&first, values),
                    Reference::First => Sums::of(values, &first),
                };
                let not_finite = match self.reference {
                    Reference::Second => sums.not_finite,
                    Reference::First => [sums.not_finite[1], sums.not_finite[0]],
                };
                let relative_error = sums.relative();
                let (_, layer, call) = key;
                self.rows.push(TensorDifference {
                    what,
                    layer,
                    call,
                    values: values.len(),
                    relative_error,
                    largest_error: Some(sums.largest / scale).filter(|largest| largest.is_finite()),
                    not_finite,
                    exceeds: relative_error.is_none_or(|error| error > self.limits.of(what)),
                });
            }
            _ => self.unpaired += 1,
        }
    }

    /// Takes the differences of both computations: outputs in the order of the forward pass, gradients of
    /// outputs in the order of the backward pass, gradients and new values of parameters.
    #[must_use]
    pub fn take(&mut self) -> TensorDifferences {
        let mut rows = std::mem::take(&mut self.rows);
        // A stable sort. An update of several batches goes through the layers several times.
        rows.sort_by_key(|row| row.what);
        let unpaired = std::mem::take(&mut self.unpaired) + self.first.len();
        self.first.clear();
        TensorDifferences { rows, unpaired }
    }
}

/// Differences of all tensors.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct TensorDifferences {
    /// The differences, in the order of the computation.
    pub rows: Vec<TensorDifference>,
    /// Number of tensors that only one of the computations has, such as the new weights of an update
    /// that the other one skipped.
    pub unpaired: usize,
}

impl TensorDifferences {
    /// The first output that exceeds the limit.
    #[must_use]
    pub fn first_forward(&self) -> Option<&TensorDifference> {
        self.rows.iter().find(|row| row.exceeds && row.what == TensorKind::Output)
    }

    /// The first gradient or new weight that exceeds the limit.
    #[must_use]
    pub fn first_backward(&self) -> Option<&TensorDifference> {
        self.rows.iter().find(|row| row.exceeds && row.what != TensorKind::Output)
    }

    /// Whether every tensor has a partner within the limit.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.unpaired == 0 && self.rows.iter().all(|row| !row.exceeds)
    }
}

/// Sums over the values of two tensors.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Sum of (a - b)^2.
    difference: f64,
    /// Sum of b^2.
    reference: f64,
    /// Largest |a - b|; NaN if one is NaN.
    largest: f64,
    /// Numbers of infinities and NaN in a and b.
    not_finite: [usize; 2],
}

impl Sums {
    fn of(a: &[f32], b: &[f32]) -> Self {
        let blocks: Vec<Self> = a
            .par_chunks(BLOCK)
            .zip(b.par_chunks(BLOCK))
            .map(|(a, b)| a.iter().zip(b).fold(Self::default(), |sums, (a, b)| sums.with(*a, *b)))
            .collect();
        blocks.into_iter().fold(Self::default(), Self::plus)
    }

    fn with(self, a: f32, b: f32) -> Self {
        let (x, y) = (f64::from(a), f64::from(b));
        // Equal infinities do not differ.
        let error = if a.to_bits() == b.to_bits() { 0.0 } else { (x - y).abs() };
        self.plus(Self {
            difference: error * error,
            reference: y * y,
            largest: error,
            not_finite: [usize::from(!a.is_finite()), usize::from(!b.is_finite())],
        })
    }

    fn plus(self, other: Self) -> Self {
        // `f64::max` would drop a NaN.
        let largest = if self.largest.is_nan() || other.largest.is_nan() {
            f64::NAN
        } else {
            self.largest.max(other.largest)
        };
        let [a, b] = self.not_finite;
        let [c, d] = other.not_finite;
        Self {
            difference: self.difference + other.difference,
            reference: self.reference + other.reference,
            largest,
            not_finite: [a + c, b + d],
        }
    }

    fn relative(&self) -> Option<f64> {
        if self.difference == 0.0 {
            // Also if both tensors are zeros.
            return Some(0.0);
        }
        Some((self.difference / self.reference).sqrt()).filter(|error| error.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The differences of an update with one layer `a`, whose output is `first` and then `second`.
    fn compared(reference: Reference, limit: f64, first: &[f32], second: &[f32]) -> TensorDifference {
        let mut comparison = TensorComparison::new(reference, Limits::all(limit));
        comparison.add(TensorKind::Output, "a", first, 1.0);
        comparison.begin_second();
        comparison.add(TensorKind::Output, "a", second, 1.0);
        let differences = comparison.take();
        assert_eq!((differences.rows.len(), differences.unpaired), (1, 0));
        differences.rows.into_iter().next().unwrap()
    }

    /// ||(0.3, -0.4)|| = 0.5 and ||(3, 4)|| = 5.
    #[test]
    fn the_error_is_relative_to_the_norm_of_the_more_exact_tensor() {
        let (exact, other) = ([3.0, 4.0], [3.3, 3.6]);
        let found = compared(Reference::First, 0.11, &exact, &other);
        assert!((found.relative_error.unwrap() - 0.1).abs() < 1e-6, "{found:?}");
        assert!((found.largest_error.unwrap() - 0.4).abs() < 1e-6, "{found:?}");
        assert!(!found.exceeds && compared(Reference::First, 0.09, &exact, &other).exceeds);
        let swapped = compared(Reference::Second, 0.11, &exact, &other);
        let norm = (3.3f64 * 3.3 + 3.6 * 3.6).sqrt();
        assert!((swapped.relative_error.unwrap() - 0.5 / norm).abs() < 1e-6, "{swapped:?}");
    }

    #[test]
    fn what_is_not_finite_is_counted_by_computation_and_exceeds_every_limit() {
        for reference in [Reference::First, Reference::Second] {
            let found = compared(reference, 1e30, &[1.0, 2.0, 3.0], &[f32::INFINITY, f32::NAN, 3.0]);
            assert_eq!((found.not_finite, found.relative_error, found.exceeds), ([0, 2], None, true));
            assert_eq!(found.largest_error, None);
        }
        // A gradient that is lost in the first, and a tensor that is 0 in both.
        let lost = compared(Reference::First, 1e30, &[0.0, 0.0], &[0.0, 1e-9]);
        assert_eq!((lost.relative_error, lost.exceeds), (None, true));
        let zeros = compared(Reference::First, 0.0, &[0.0, -0.0], &[0.0, 0.0]);
        assert_eq!((zeros.relative_error, zeros.largest_error, zeros.exceeds), (Some(0.0), Some(0.0), false));
    }

    #[test]
    fn many_values_are_each_counted_once() {
        let a = vec![1.5f32; 2 * BLOCK + 3];
        let b = vec![1.0f32; a.len()];
        let found = compared(Reference::Second, 1.0, &a, &b);
        assert_eq!(
            (found.values, found.relative_error, found.largest_error),
            (a.len(), Some(0.5), Some(0.5))
        );
    }

    /// Two batches, each with a forward and a backward pass through the layers `a` and `b`.
    fn computed(comparison: &mut TensorComparison, error: f32) {
        for batch in [0.0, 10.0] {
            comparison.add(TensorKind::Output, "a", &[1.0 + batch], 1.0);
            comparison.add(TensorKind::Output, "b", &[2.0 + batch + error], 1.0);
            comparison.add(TensorKind::OutputGradient, "b", &[8.0], 4.0);
            comparison.add(TensorKind::OutputGradient, "a", &[8.0 + error], 4.0);
        }
        comparison.add(TensorKind::WeightGradient, "a.weight", &[1.0], 1.0);
    }

    #[test]
    fn tensors_are_paired_by_layer_and_call_and_the_first_that_exceeds_is_named() {
        let mut comparison = TensorComparison::new(Reference::First, Limits::all(0.01));
        // The first computation of an update that is then skipped is not counted.
        computed(&mut comparison, 5.0);
        comparison.begin_first();
        computed(&mut comparison, 0.0);
        comparison.begin_second();
        computed(&mut comparison, 0.5);
        let found = comparison.take();
        let order: Vec<_> = found.rows.iter().map(|row| (row.what, row.layer.as_str(), row.call)).collect();
        let (output, gradient) = (TensorKind::Output, TensorKind::OutputGradient);
        let due = [
            (output, "a", 1),
            (output, "b", 1),
            (output, "a", 2),
            (output, "b", 2),
            (gradient, "b", 1),
            (gradient, "a", 1),
            (gradient, "b", 2),
            (gradient, "a", 2),
            (TensorKind::WeightGradient, "a.weight", 1),
        ];
        assert_eq!(order, due);
        let name = |row: Option<&TensorDifference>| row.map(|row| (row.layer.clone(), row.call));
        assert_eq!(name(found.first_forward()), Some(("b".to_owned(), 1)));
        assert_eq!(name(found.first_backward()), Some(("a".to_owned(), 1)));
        assert_eq!(found.first_backward().unwrap().largest_error, Some(0.125), "without the loss scale");
        assert!(!found.is_within());
    }

    #[test]
    fn equal_infinities_do_not_differ_and_unequal_ones_do() {
        let infinite = [1.0, f32::INFINITY, f32::NAN];
        let same = compared(Reference::First, 0.0, &infinite, &infinite);
        assert_eq!((same.relative_error, same.exceeds, same.not_finite), (Some(0.0), false, [2, 2]));
        let other = compared(Reference::First, 0.5, &infinite, &[1.0, f32::NEG_INFINITY, f32::NAN]);
        assert_eq!((other.relative_error, other.exceeds), (None, true));
    }

    #[test]
    fn outputs_and_gradients_have_their_own_limits() {
        let first = |limits: Limits| {
            let mut comparison = TensorComparison::new(Reference::First, limits);
            computed(&mut comparison, 0.0);
            comparison.begin_second();
            computed(&mut comparison, 0.5);
            let found = comparison.take();
            [found.first_forward().is_some(), found.first_backward().is_some()]
        };
        // The outputs of `b` differ by 0.25, the gradients of `a` by 0.0625.
        assert_eq!(first(Limits { forward: 0.3, backward: 0.01 }), [false, true]);
        assert_eq!(first(Limits { forward: 0.01, backward: 0.1 }), [true, false]);
        assert_eq!(first(Limits { forward: 0.3, backward: 0.1 }), [false, false]);
    }

    #[test]
    fn a_tensor_without_a_partner_is_a_difference() {
        let mut comparison = TensorComparison::new(Reference::First, Limits::all(0.01));
        computed(&mut comparison, 0.0);
        comparison.add(TensorKind::NewWeight, "a.weight", &[1.0], 1.0);
        comparison.begin_second();
        computed(&mut comparison, 0.0);
        let found = comparison.take();
        assert_eq!((found.unpaired, found.first_backward(), found.is_within()), (1, None, false));
    }
}
