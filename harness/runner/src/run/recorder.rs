//! Recording of the values of some updates as histograms.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zoo_models::ops::OutputReceiver;
use zoo_results::profile::{ExponentHistogram, Profile, ProfiledUpdate, WeightsBefore};
use zoo_training::TrainError;
use zoo_training::observe::Observer;
use zoo_training::parts::{Part, Watch};
use zoo_training::progress::UpdateReport;

use crate::error::Failure;

/// Records the named updates of a training. Clones share what is recorded.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    wanted: BTreeSet<u64>,
    /// The update that is being recorded.
    current: Option<ProfiledUpdate>,
    recorded: Vec<ProfiledUpdate>,
    /// Durations of the other updates, in seconds.
    others: Vec<f64>,
    /// Of the parameter that moves.
    before: WeightsBefore,
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The named updates that were made.
    pub profile: Profile,
    /// Durations of the other updates, in seconds.
    pub other_seconds: Vec<f64>,
    /// What is not in the profile; `None` if all named updates are.
    pub missing: Option<Missing>,
}

/// Named updates that were not made.
#[derive(Debug, Clone)]
pub struct Missing {
    /// Their numbers.
    pub updates: Vec<u64>,
    /// Why training ended before.
    pub failure: Failure,
}

impl Recorder {
    /// A recorder of the updates with these numbers.
    pub fn new(wanted: BTreeSet<u64>) -> Self {
        Self(Arc::new(Mutex::new(State { wanted, ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an update. A skipped update is not kept; the next one has its number.
    pub fn reported(&self, report: &UpdateReport) {
        let mut state = self.state();
        let Some(mut update) = state.current.take() else {
            if !report.skipped {
                state.others.push(report.seconds);
            }
            return;
        };
        if report.skipped {
            return;
        }
        // The backward pass goes from the last layer to the first.
        update.activation_gradients.reverse();
        let UpdateReport { loss, lr, scale: loss_scale, seconds, .. } = *report;
        state.recorded.push(ProfiledUpdate { loss, lr, loss_scale, seconds, ..update });
    }

    /// Takes what was recorded.
    pub fn take(&self) -> Recorded {
        let mut state = self.state();
        let profile = Profile { updates: std::mem::take(&mut state.recorded) };
        Recorded { profile, other_seconds: std::mem::take(&mut state.others), missing: None }
    }

    /// Changes the update that is being recorded.
    fn record(&self, change: impl FnOnce(&mut ProfiledUpdate)) {
        if let Some(update) = &mut self.state().current {
            change(update);
        }
    }
}

impl Watch for Recorder {
    fn begins(&mut self, update: u64) {
        let mut state = self.state();
        let wanted = state.wanted.contains(&update);
        state.current = wanted.then(|| ProfiledUpdate { update, ..ProfiledUpdate::default() });
    }

    fn ended(&mut self, _: Part) -> Result<(), TrainError> {
        Ok(())
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        let is_recording = self.state().current.is_some();
        is_recording.then_some(self as &mut dyn Observer)
    }
}

impl Observer for Recorder {
    fn outputs(&mut self, scale: f64) -> Arc<dyn OutputReceiver> {
        Arc::new(Unscaled { recorder: self.clone(), factor: (1.0 / scale) as f32 })
    }

    fn gradient(&mut self, path: &str, gradient: &[f32], largest: Option<f32>) {
        let found = ExponentHistogram::of_sample(gradient, largest);
        self.record(|update| update.weight_gradients.add(path, &found));
    }

    fn moves(&mut self, _: &str, before: &[f32]) {
        self.state().before.keep(before);
    }

    fn moved(&mut self, path: &str, after: &[f32]) {
        let [weights, updates, ratios] = self.state().before.compared_with(after);
        self.record(|update| {
            update.weights.add(path, &weights);
            update.updates.add(path, &updates);
            update.ratios.add(path, &ratios);
        });
    }
}

/// Receiver of gradients that a loss scale multiplied.
#[derive(Debug)]
struct Unscaled {
    recorder: Recorder,
    factor: f32,
}

impl OutputReceiver for Unscaled {
    fn received(&self, layer: &str, gradient: &[f32]) {
        let found = ExponentHistogram::of_scaled(gradient, self.factor);
        self.recorder.record(|update| update.activation_gradients.add(layer, &found));
    }
}

#[cfg(test)]
mod tests {
    use zoo_results::profile::Quantity;
    use zoo_training::Counters;

    use super::*;

    fn report(skipped: bool) -> UpdateReport {
        UpdateReport {
            counters: Counters::default(),
            loss: 2.0,
            lr: 0.1,
            scale: 4.0,
            grad_norm: 1.0,
            tokens: 1,
            seconds: 0.5,
            skipped,
            phases: Vec::new(),
        }
    }

    /// An update with the outputs `first` and `second`, and one weight.
    fn update(recorder: &mut Recorder, number: u64, skipped: bool) {
        recorder.begins(number);
        if let Some(observer) = recorder.observer() {
            let receiver = observer.outputs(4.0);
            receiver.received("second", &[4.0, 0.0]);
            receiver.received("first", &[2.0]);
            observer.gradient("weight", &[0.5], None);
            if !skipped {
                observer.moves("weight", &[4096.0]);
                observer.moved("weight", &[4095.0]);
            }
        }
        recorder.reported(&report(skipped));
    }

    #[test]
    fn only_the_named_updates_are_recorded_and_gradients_are_unscaled() {
        let mut recorder = Recorder::new([2].into());
        (1..=3).for_each(|number| update(&mut recorder, number, false));
        let Recorded { profile, other_seconds, .. } = recorder.take();
        assert_eq!((profile.updates.len(), other_seconds), (1, vec![0.5, 0.5]));
        let found = &profile.updates[0];
        assert_eq!((found.update, found.loss, found.loss_scale), (2, 2.0, 4.0));
        let layers: Vec<&str> = found.activation_gradients.iter().map(|(layer, _)| layer).collect();
        assert_eq!(layers, ["first", "second"], "in the order of the forward pass");
        let due = [[0.5, 1.0, 0.0].as_slice(), &[0.5], &[4096.0], &[-1.0], &[4096.0]];
        for (quantity, due) in Quantity::ALL.into_iter().zip(due) {
            assert_eq!(profile.all(quantity), ExponentHistogram::of(due), "{quantity:?}");
        }
    }

    #[test]
    fn a_skipped_update_is_recorded_at_its_next_try() {
        let mut recorder = Recorder::new([1].into());
        update(&mut recorder, 1, true);
        update(&mut recorder, 1, false);
        let recorded = recorder.take();
        assert_eq!(recorded.profile.updates.len(), 1);
        assert_eq!(recorded.profile.all(Quantity::WeightGradients).values(), 1);
        assert_eq!(recorded.other_seconds, Vec::<f64>::new());
    }
}
