//! Time of the parts of an update. The update reports the end of each part to a [`Watch`], and its
//! values to the watch's observer.

use std::time::Instant;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::observe::Observer;

/// A part of an update. `Forward` and `Backward` occur once for each micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From a batch to the scaled loss.
    Forward,
    /// From the scaled loss to FP32 gradients, added to those of the earlier micro-batches.
    Backward,
    /// Unscaling, reduction, penalty, norm, clipping and the optimizer step.
    Update,
}

/// Observer of the parts of an update.
pub trait Watch {
    /// Called by the training loop before an update. `update` is its number from 1. The update after
    /// a skipped one has the same number.
    fn begins(&mut self, _update: u64) {}

    /// Called when `part` has ended and before the next part begins.
    ///
    /// # Errors
    /// If the device fails.
    fn ended(&mut self, part: Part) -> Result<(), TrainError>;

    /// The observer of this update's values, if they are observed.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }
}

/// A watch that does nothing, for training.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn ended(&mut self, _: Part) -> Result<(), TrainError> {
        Ok(())
    }
}

/// Seconds by part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PartSeconds {
    /// Seconds of [`Part::Forward`].
    pub forward: f64,
    /// Seconds of [`Part::Backward`].
    pub backward: f64,
    /// Seconds of [`Part::Update`].
    pub update: f64,
}

impl PartSeconds {
    /// Seconds of all parts.
    pub fn sum(&self) -> f64 {
        self.forward + self.backward + self.update
    }

    /// Mean seconds of one of `updates` updates.
    pub fn of_each(self, updates: u64) -> Self {
        let each = |seconds| seconds / updates as f64;
        Self { forward: each(self.forward), backward: each(self.backward), update: each(self.update) }
    }
}

/// A watch that waits for the device at the end of each part. This prevents a GPU from working
/// while the host prepares the next part: the parts are exact, but their sum may exceed the time of
/// an unwatched update.
#[derive(Debug)]
pub struct Stopwatch {
    device: Device,
    since: Instant,
    seconds: PartSeconds,
}

impl Stopwatch {
    /// Starts the clock. The device should be idle.
    pub fn start(device: &Device) -> Self {
        Self { device: device.clone(), since: Instant::now(), seconds: PartSeconds::default() }
    }

    /// Seconds of all updates since the start.
    pub fn seconds(&self) -> PartSeconds {
        self.seconds
    }
}

impl Watch for Stopwatch {
    fn ended(&mut self, part: Part) -> Result<(), TrainError> {
        idle(&self.device)?;
        let now = Instant::now();
        let sum = match part {
            Part::Forward => &mut self.seconds.forward,
            Part::Backward => &mut self.seconds.backward,
            Part::Update => &mut self.seconds.update,
        };
        *sum += now.duration_since(self.since).as_secs_f64();
        self.since = now;
        Ok(())
    }
}

/// Waits until the device's queue is empty.
///
/// # Errors
/// If the device fails, now or in queued work.
pub fn idle(device: &Device) -> Result<(), TrainError> {
    device.sync().map_err(|error| TrainError::Device(format!("{error:?}")))
}
