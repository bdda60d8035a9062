//! What an update spends its seconds on: a watch that is told where each part of it ends.

use std::time::Instant;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// A part of an update. The first two come once for each micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From a batch to the scaled loss.
    Forward,
    /// From there to FP32 gradients, added to those of the batches before.
    Backward,
    /// Unscaling, reduction, penalty, norm, clipping and the optimizer.
    Update,
}

/// Is told when a part has ended.
pub trait Watch {
    /// `part` has ended, and the next begins.
    ///
    /// # Errors
    /// The device fails.
    fn ended(&mut self, part: Part) -> Result<(), TrainError>;
}

/// Nobody wants to know: what training uses. Costs nothing.
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
    /// See [`Part::Forward`].
    pub forward: f64,
    /// See [`Part::Backward`].
    pub backward: f64,
    /// See [`Part::Update`].
    pub update: f64,
}

impl PartSeconds {
    /// Of all parts.
    pub fn sum(&self) -> f64 {
        self.forward + self.backward + self.update
    }

    /// Of one of several updates.
    pub fn of_each(self, updates: u64) -> Self {
        let each = |seconds| seconds / updates as f64;
        Self { forward: each(self.forward), backward: each(self.backward), update: each(self.update) }
    }
}

/// Waits for the device at the end of each part, which takes from a GPU that it goes on while the host prepares: the parts are
/// exact, and their sum may be longer than an update that nobody watches.
#[derive(Debug)]
pub struct Stopwatch {
    device: Device,
    since: Instant,
    seconds: PartSeconds,
}

impl Stopwatch {
    /// Starts now; the device should be idle.
    pub fn start(device: &Device) -> Self {
        Self { device: device.clone(), since: Instant::now(), seconds: PartSeconds::default() }
    }

    /// Of all updates since the start.
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

/// Waits until the device has nothing left to do.
///
/// # Errors
/// The device fails, now or in what was left to do.
pub fn idle(device: &Device) -> Result<(), TrainError> {
    device.sync().map_err(|error| TrainError::Device(format!("{error:?}")))
}
