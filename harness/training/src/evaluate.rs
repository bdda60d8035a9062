//! Loss of a model on batches, without training.

use std::borrow::Borrow;

use burn::tensor::Tensor;
use zoo_models::parameters::host_values;
use zoo_models::precision::{Compute, to_f32};
use zoo_models::{Objective, Pass};

use crate::error::OtherError;
use crate::update::TermSum;

/// Sums the terms of an objective over batches, without dropout. The sum of each batch is FP32, the
/// sum over batches FP64 in their order. The device is read once, at the end.
pub fn evaluate<M, B, T: Borrow<B>>(
    objective: &dyn Objective<M, B>,
    model: &M,
    batches: impl Iterator<Item = Result<T, OtherError>>,
    compute: Compute,
) -> Result<Vec<TermSum>, OtherError> {
    let mut totals: Vec<TermSum> = Vec::new();
    let mut pending: Vec<Tensor<1>> = Vec::new();
    for batch in batches {
        let batch = batch?;
        let batch = batch.borrow();
        let counts = objective.counts(batch);
        let terms = objective.terms(model, batch, &mut Pass::evaluation(compute));
        if counts.len() != terms.len()
            || terms.iter().zip(&counts).any(|(term, (name, _))| term.name != *name)
        {
            return Err("the objective's counts and terms do not match".into());
        }
        for (place, (term, (name, count))) in terms.into_iter().zip(counts).enumerate() {
            if place == totals.len() {
                totals.push(TermSum { name: name.to_string(), sum: 0.0, count: 0.0, weight: term.weight });
            }
            totals[place].count += count;
            pending.push(to_f32(term.sum));
        }
    }
    if !pending.is_empty() {
        let terms = totals.len();
        for (i, sum) in host_values(Tensor::cat(pending, 0)).into_iter().enumerate() {
            totals[i % terms].sum += f64::from(sum);
        }
    }
    Ok(totals)
}
