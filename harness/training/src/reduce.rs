//! Sums over the workers of a data-parallel run.

use crate::flat::Flat;

/// Reason why a sum over the workers failed.
#[derive(Debug, thiserror::Error)]
#[error(
    "worker {rank} of {world}: {reason}\nhint: resume from the last checkpoint once all workers can be reached"
)]
pub struct ReduceError {
    /// Rank of this worker.
    pub rank: u32,
    /// Number of workers.
    pub world: u32,
    /// Description of the failure.
    pub reason: String,
}

/// Sums values over the workers. Every worker calls the same methods in the same order, with
/// buffers of the same lengths. All workers get bitwise equal results, because the order of the sum
/// is fixed.
pub trait Reducer: Send {
    /// Rank of this worker, from 0.
    fn rank(&self) -> u32;

    /// Number of workers.
    fn world(&self) -> u32;

    /// Replaces each buffer by its FP32 sum over all workers.
    fn sum(&mut self, buckets: &mut [Flat]) -> Result<(), ReduceError>;

    /// Replaces each value (a count or a loss) by its sum over all workers.
    fn sum_values(&mut self, values: &mut [f64]) -> Result<(), ReduceError>;
}

/// Reducer of a run with one worker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

impl Reducer for Local {
    fn rank(&self) -> u32 {
        0
    }

    fn world(&self) -> u32 {
        1
    }

    fn sum(&mut self, _: &mut [Flat]) -> Result<(), ReduceError> {
        Ok(())
    }

    fn sum_values(&mut self, _: &mut [f64]) -> Result<(), ReduceError> {
        Ok(())
    }
}
