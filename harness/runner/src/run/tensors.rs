//! Comparison of the tensors of an update that is computed twice.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zoo_models::ops::OutputReceiver;
use zoo_results::replay::{TensorComparison, TensorDifferences, TensorKind};
use zoo_training::TrainError;
use zoo_training::observe::Observer;
use zoo_training::parts::{Part, Watch};

/// Observes the two computations of an update. Clones share what they observe.
#[derive(Debug, Clone)]
pub struct TensorObserver(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    comparison: TensorComparison,
    is_second: bool,
}

impl TensorObserver {
    /// An observer of both computations, before the first one.
    pub fn new(comparison: TensorComparison) -> Self {
        Self(Arc::new(Mutex::new(State { comparison, is_second: false })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the first computation.
    pub fn begin_second(&self) {
        let mut state = self.state();
        state.is_second = true;
        state.comparison.begin_second();
    }

    /// The differences of what was observed.
    pub fn differences(&self) -> TensorDifferences {
        self.state().comparison.take()
    }

    fn add(&self, what: TensorKind, layer: &str, values: &[f32], scale: f64) {
        self.state().comparison.add(what, layer, values, scale);
    }
}

impl Watch for TensorObserver {
    fn begins(&mut self, _: u64) {
        let mut state = self.state();
        if !state.is_second {
            // The run skipped the update before, and the next batch has its number.
            state.comparison.begin_first();
        }
    }

    fn ended(&mut self, _: Part) -> Result<(), TrainError> {
        Ok(())
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Observer for TensorObserver {
    fn outputs(&mut self, scale: f64) -> Arc<dyn OutputReceiver> {
        Arc::new(Outputs { tensors: self.clone(), scale })
    }

    fn gradient(&mut self, path: &str, gradient: &[f32], _: Option<f32>) {
        self.add(TensorKind::WeightGradient, path, gradient, 1.0);
    }

    fn moved(&mut self, path: &str, after: &[f32]) {
        self.add(TensorKind::NewWeight, path, after, 1.0);
    }
}

/// Receiver of outputs and of their gradients, which a loss scale multiplied.
#[derive(Debug)]
struct Outputs {
    tensors: TensorObserver,
    scale: f64,
}

impl OutputReceiver for Outputs {
    fn wants_values(&self) -> bool {
        true
    }

    fn computed(&self, layer: &str, values: &[f32]) {
        self.tensors.add(TensorKind::Output, layer, values, 1.0);
    }

    fn received(&self, layer: &str, gradient: &[f32]) {
        self.tensors.add(TensorKind::OutputGradient, layer, gradient, self.scale);
    }
}

#[cfg(test)]
mod tests {
    use zoo_results::replay::{Limits, Reference};

    use super::*;

    /// An attempt with one layer whose output is `output`.
    fn attempt(tensors: &mut TensorObserver, output: f32) {
        tensors.begins(7);
        let receiver = tensors.outputs(8.0);
        assert!(receiver.wants_values());
        receiver.computed("a", &[output]);
        receiver.received("a", &[16.0 * output]);
        tensors.gradient("a.weight", &[output], None);
        tensors.moved("a.weight", &[10.0]);
    }

    #[test]
    fn the_last_attempt_in_the_runs_type_is_compared_with_the_other_type() {
        let mut tensors = TensorObserver::new(TensorComparison::new(Reference::First, Limits::all(0.4)));
        attempt(&mut tensors, 50.0);
        attempt(&mut tensors, 1.0);
        tensors.begin_second();
        attempt(&mut tensors, 1.5);
        let found = tensors.differences();
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.what, row.relative_error, row.largest_error)).collect();
        let due = [
            (TensorKind::Output, Some(0.5), Some(0.5)),
            // 16 times 0.5, without the loss scale.
            (TensorKind::OutputGradient, Some(0.5), Some(1.0)),
            (TensorKind::WeightGradient, Some(0.5), Some(0.5)),
            (TensorKind::NewWeight, Some(0.0), Some(0.0)),
        ];
        assert_eq!(rows, due);
        assert_eq!((found.unpaired, found.is_within()), (0, false));
    }
}
