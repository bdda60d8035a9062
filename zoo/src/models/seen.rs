//! What forward passes saw of running statistics, until the update that they belong to is known to be good.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ops::Statistics;

/// The statistics of each batch norm, pass by pass. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<Vec<Statistics>>>>);

impl Seen {
    /// Those of one more pass.
    pub fn push(&self, statistics: Vec<Statistics>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(statistics);
    }

    /// All passes since the last call, in their order.
    pub fn take(&self) -> Vec<Vec<Statistics>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The mean over the passes since the last call; `None` if there was none. Running statistics move once an update by it: published
    /// momentums are those of a worker that sees one batch an update (of several workers OpenSeq2Seq keeps the first one's).
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
