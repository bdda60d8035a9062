//! Batch-norm statistics of forward passes, kept until the update that they belong to is accepted.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ops::Statistics;

/// Statistics of each batch norm, one list for each pass. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<Vec<Statistics>>>>);

impl Seen {
    /// Adds the statistics of one pass.
    pub fn push(&self, statistics: Vec<Statistics>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(statistics);
    }

    /// Removes and returns the statistics of all passes since the last call, in order.
    pub fn take(&self) -> Vec<Vec<Statistics>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Mean over the passes since the last call; `None` without a pass. Running statistics are
    /// updated with this mean once an update, because published momentums belong to a worker that
    /// processes one batch an update. (With several workers OpenSeq2Seq keeps the statistics of the
    /// first one.)
    pub fn mean(&self) -> Option<Vec<Statistics>> {
        let seen = self.take();
        let (first, others) = seen.split_first()?;
        let mean = |(norm, first): (usize, &Statistics)| {
            let all = || others.iter().map(|batch| &batch[norm]);
            let n = seen.len() as f64;
            Statistics {
                mean: all().fold(first.mean.clone(), |sum, other| sum + other.mean.clone()) / n,
                variance: all().fold(first.variance.clone(), |sum, other| sum + other.variance.clone()) / n,
                count: (first.count + all().map(|other| other.count).sum::<usize>()) / seen.len(),
            }
        };
        Some(first.iter().enumerate().map(mean).collect())
    }
}
