//! The terms of a loss over the micro-batches and workers of an update: their denominators and
//! sums.

use burn::tensor::Tensor;
use zoo_models::precision::to_f32;
use zoo_models::{Objective, Term};

use crate::error::TrainError;
use crate::reduce::Reducer;
use crate::term::TermSum;

/// Denominators over the micro-batches of this worker, in the objective's order.
pub(crate) fn total_counts<'b, M, B: 'b>(
    objective: &dyn Objective<M, B>,
    batches: impl Iterator<Item = &'b B>,
) -> Vec<(String, f64)> {
    let mut totals: Vec<(String, f64)> = Vec::new();
    for batch in batches {
        for (place, (name, count)) in objective.counts(batch).into_iter().enumerate() {
            match totals.get_mut(place) {
                Some(total) => total.1 += count,
                None => totals.push((name.to_string(), count)),
            }
        }
    }
    totals
}

/// Sums counts over workers, some of which may have none.
pub(crate) fn sum_ragged(
    counts: &mut Vec<(String, f64)>,
    reducer: &mut dyn Reducer,
) -> Result<(), TrainError> {
    const MOST: usize = 32;
    if counts.len() > MOST {
        return Err(TrainError::Settings(format!(
            "an objective of more than {MOST} terms cannot be reduced"
        )));
    }
    // Values, followed by the number of workers that have each term.
    let mut values = [0.0; 2 * MOST];
    for (place, (_, count)) in counts.iter().enumerate() {
        values[place] = *count;
        values[MOST + place] = 1.0;
    }
    reducer.sum_values(&mut values)?;
    let known = values[MOST..].iter().take_while(|workers| **workers > 0.0).count();
    for (place, total) in values[..known].iter().enumerate() {
        match counts.get_mut(place) {
            Some(count) => count.1 = *total,
            None => counts.push((String::new(), *total)),
        }
    }
    Ok(())
}

/// Sums of the terms over micro-batches, which stay on the device until they are read.
pub(crate) struct TermSums {
    counts: Vec<(String, f64)>,
    sums: Vec<Option<Tensor<1>>>,
    weights: Vec<f64>,
}

impl TermSums {
    /// Empty sums of terms with these totals.
    pub(crate) fn new(counts: &[(String, f64)]) -> Self {
        Self { counts: counts.to_vec(), sums: vec![None; counts.len()], weights: vec![0.0; counts.len()] }
    }

    /// Factors of a micro-batch's sums that make sums over totals equal to the mean of the
    /// micro-batches' means.
    pub(crate) fn shares(&self, own: &[(&'static str, f64)], batches: u64) -> Vec<f64> {
        let share = |((_, total), (_, own)): (&(String, f64), &(&'static str, f64))| {
            if *own == 0.0 { 0.0 } else { total / (own * batches as f64) }
        };
        self.counts.iter().zip(own).map(share).collect()
    }

    /// Adds a micro-batch and returns the scaled loss for the backward pass. `shares` are the
    /// factors of the terms in the loss.
    pub(crate) fn add(
        &mut self,
        phase: &str,
        terms: &[Term],
        scale: f64,
        shares: Option<&[f64]>,
    ) -> Result<Tensor<1>, TrainError> {
        let same = terms.len() == self.counts.len()
            && terms.iter().zip(&self.counts).all(|(term, (name, _))| term.name == name);
        if !same {
            return Err(TrainError::Terms {
                phase: phase.to_string(),
                announced: self.counts.iter().map(|(name, _)| name.clone()).collect(),
                computed: terms.iter().map(|term| term.name.to_string()).collect(),
            });
        }
        let mut loss: Option<Tensor<1>> = None;
        for (place, term) in terms.iter().enumerate() {
            let mut value = to_f32(term.sum.clone());
            if let Some(share) = shares.map(|shares| shares[place]).filter(|_| term.weight != 0.0) {
                value = value.mul_scalar(share);
            }
            let detached = value.clone().inner();
            self.sums[place] = Some(match self.sums[place].take() {
                Some(sum) => sum.add(detached),
                None => detached,
            });
            self.weights[place] = term.weight;
            if term.weight != 0.0 {
                let count = self.counts[place].1;
                let factor = if count == 0.0 { 0.0 } else { scale * term.weight / count };
                let part = value.mul_scalar(factor);
                loss = Some(match loss {
                    Some(loss) => loss.add(part),
                    None => part,
                });
            }
        }
        loss.filter(|loss| loss.is_tracked()).ok_or_else(|| TrainError::Untracked(phase.to_string()))
    }

    /// One tensor of shape `[1]` for each term with a sum; none for a worker without batches.
    pub(crate) fn pending(&self) -> Vec<Tensor<1>> {
        self.sums.iter().flatten().cloned().collect()
    }

    /// Returns the terms over all workers. `read` holds the values of the pending sums.
    pub(crate) fn finish(
        self,
        read: Vec<f64>,
        reducer: &mut dyn Reducer,
    ) -> Result<Vec<TermSum>, TrainError> {
        let n = self.counts.len();
        let (mut sums, mut weights) = (read, self.weights);
        if reducer.world() > 1 {
            // A worker without batches has neither sums nor weights.
            let has_batches = f64::from(u8::from(sums.len() == n && n > 0));
            sums.resize(n, 0.0);
            let mut values = [sums, weights, vec![has_batches]].concat();
            reducer.sum_values(&mut values)?;
            let workers = values[2 * n].max(1.0);
            weights = values[n..2 * n].iter().map(|weight| weight / workers).collect();
            sums = values[..n].to_vec();
        }
        let named = self.counts.into_iter().zip(weights).zip(sums);
        Ok(named.map(|(((name, count), weight), sum)| TermSum { name, sum, count, weight }).collect())
    }
}
