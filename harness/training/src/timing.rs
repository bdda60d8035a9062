//! Times the updates of two arms in alternating blocks: baseline, candidate, candidate, baseline.
//!
//! Both arms are in memory together and go on from block to block. Every block of an arm computes the same batches, and begins and
//! ends with the device idle. A clock that drifts, or a neighbour that comes and goes, meets both arms alike.

use burn::module::Module;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use zoo_models::precision::Compute;

use crate::batches::Fetched;
use crate::error::TrainError;
use crate::reduce::Local;
use crate::update::{MicroBatch, Phase, Surroundings, run_phase};

/// One arm of a timing: a model that is trained on a few updates' batches, over and over.
pub struct TimedArm<M, B> {
    model: Option<M>,
    device: Device,
    phases: Vec<Phase<M, B>>,
    updates: Vec<(Vec<MicroBatch<B>>, u64)>,
    compute: Compute,
    seed: u64,
    micro_step: u64,
}

/// What a block of updates took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lap {
    /// Updates, with those that were skipped for overflow.
    pub updates: u64,
    /// Those among them that were skipped.
    pub skipped: u64,
    /// Tokens, frames or images in their batches.
    pub tokens: u64,
    /// Seconds.
    pub seconds: f64,
}

/// Four blocks in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Baseline.
    pub baseline_first: Lap,
    /// Candidate.
    pub candidate_first: Lap,
    /// Candidate again.
    pub candidate_second: Lap,
    /// Baseline again.
    pub baseline_second: Lap,
}

impl<M: Module, B> TimedArm<M, B> {
    /// An arm at its start. `updates` has the batches of one update each; the model is on a device with autodiff.
    ///
    /// # Errors
    /// No batches, or a model without parameters.
    pub fn new(
        model: M,
        phases: Vec<Phase<M, B>>,
        updates: Vec<Vec<Fetched<B>>>,
        compute: Compute,
        seed: u64,
    ) -> Result<Self, TrainError> {
        let settings = |what: &str| TrainError::Settings(what.to_string());
        let device = model.devices().into_iter().next().ok_or_else(|| settings("the model is empty"))?;
        if updates.is_empty() || updates.iter().any(Vec::is_empty) {
            return Err(settings("there are no batches to time"));
        }
        let placed = |update: Vec<Fetched<B>>| {
            let tokens = update.iter().map(|fetched| fetched.tokens).sum();
            let micro =
                (0..).zip(update).map(|(position, fetched)| MicroBatch { position, batch: fetched.batch });
            (micro.collect(), tokens)
        };
        let updates = updates.into_iter().map(placed).collect();
        Ok(Self { model: Some(model), device, phases, updates, compute, seed, micro_step: 0 })
    }

    /// Makes so many updates, from the first update's batches on.
    ///
    /// # Errors
    /// The device fails, or a loss's terms are not those that it announced.
    pub fn lap(&mut self, updates: u64) -> Result<Lap, TrainError> {
        let mut lap = Lap { updates, skipped: 0, tokens: 0, seconds: 0.0 };
        self.idle()?;
        let start = Instant::now();
        for (micro, tokens) in self.updates.iter().cycle().take(updates as usize) {
            let (group, count) = (micro.len() as u64, self.phases.len() as u64);
            let mut all_skipped = true;
            for (index, phase) in (0..).zip(&mut self.phases) {
                let around = Surroundings {
                    compute: self.compute,
                    seed: self.seed,
                    micro_step: self.micro_step,
                    group,
                };
                let model = self.model.take().expect("the model is away only during an update");
                let (moved, report) = run_phase(phase, (index, count), model, micro, around, &mut Local)?;
                self.model = Some(moved);
                all_skipped &= report.skipped;
            }
            self.micro_step += group * count;
            lap.tokens += tokens;
            lap.skipped += u64::from(all_skipped);
        }
        self.idle()?;
        lap.seconds = start.elapsed().as_secs_f64();
        Ok(lap)
    }

    /// Updates until kernels are compiled and the loss scale has settled; gives the last one.
    ///
    /// # Errors
    /// As [`lap`](Self::lap).
    pub fn warm_up(&mut self) -> Result<Lap, TrainError> {
        const LEAST: u32 = 3;
        const MOST: u32 = 40;
        let mut made = 0;
        loop {
            let lap = self.lap(1)?;
            made += 1;
            if made >= MOST || (made >= LEAST && lap.skipped == 0) {
                return Ok(lap);
            }
        }
    }

    fn idle(&self) -> Result<(), TrainError> {
        self.device.sync().map_err(|error| TrainError::Device(format!("{error:?}")))
    }
}

/// One round of four blocks with the same number of updates.
///
/// # Errors
/// As [`TimedArm::lap`].
pub fn round<M: Module, B>(
    baseline: &mut TimedArm<M, B>,
    candidate: &mut TimedArm<M, B>,
    updates: u64,
) -> Result<Round, TrainError> {
    Ok(Round {
        baseline_first: baseline.lap(updates)?,
        candidate_first: candidate.lap(updates)?,
        candidate_second: candidate.lap(updates)?,
        baseline_second: baseline.lap(updates)?,
    })
}
