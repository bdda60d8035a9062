//! Times the updates of two arms in alternating blocks: baseline, candidate, candidate, baseline.
//!
//! Both arms stay in memory, continue from block to block, and process the batches of the same
//! updates in the same order. The device is idle at the start and end of a block. A drifting clock,
//! or another process on the machine, affects both arms alike.

use std::time::Instant;

use burn::module::Module;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use zoo_models::precision::Compute;

use crate::batches::Fetched;
use crate::error::TrainError;
use crate::parts::{PartSeconds, Stopwatch, Unwatched, Watch, idle};
use crate::reduce::Local;
use crate::update::{MicroBatch, Phase, Surroundings, run_phase};

/// Maximum seconds of a warm-up over updates with different batches. On a slow machine the batches
/// of one update must suffice.
const WARM_SECONDS: f64 = 4.0;
/// Maximum number of repetitions of a warm-up, or of a block in which an update was skipped.
const TRIES: u32 = 20;

/// One arm of a timing: a model that is trained repeatedly on the batches of a few updates.
pub struct TimedArm<M, B> {
    model: Option<M>,
    device: Device,
    phases: Vec<Phase<M, B>>,
    updates: Vec<(Vec<MicroBatch<B>>, u64)>,
    /// Index of the next update.
    next: usize,
    compute: Compute,
    seed: u64,
    micro_step: u64,
}

/// Measurement of a block of updates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lap {
    /// Number of updates, including those skipped for overflow.
    pub updates: u64,
    /// Number of skipped updates, which take less time than others.
    pub skipped: u64,
    /// Tokens, frames or images of their batches, as counted by the source.
    pub tokens: u64,
    pub seconds: f64,
}

/// Four blocks in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// First block of the baseline.
    pub baseline_first: Lap,
    /// First block of the candidate.
    pub candidate_first: Lap,
    /// Second block of the candidate.
    pub candidate_second: Lap,
    /// Second block of the baseline.
    pub baseline_second: Lap,
}

impl Round {
    /// All four blocks.
    pub fn laps(&self) -> [Lap; 4] {
        [self.baseline_first, self.candidate_first, self.candidate_second, self.baseline_second]
    }
}

/// An arm that can be timed, whatever it trains.
pub trait Timed {
    /// Runs `updates` updates from the current position.
    ///
    /// # Errors
    /// If the device fails, or the terms of a loss do not match its counts.
    fn lap(&mut self, updates: u64) -> Result<Lap, TrainError>;

    /// Runs a block without a skipped update, with several tries of the same batches.
    ///
    /// # Errors
    /// As [`lap`](Self::lap).
    fn clean_lap(&mut self, updates: u64) -> Result<Lap, TrainError>;

    /// Mean seconds of the parts of an update over its different updates, at most `most`. The
    /// device is idle between parts, so these updates do not measure speed.
    ///
    /// # Errors
    /// As [`lap`](Self::lap).
    fn parts(&mut self, most: u64) -> Result<PartSeconds, TrainError>;

    /// Number of different updates.
    fn updates(&self) -> usize;

    /// Returns to the first update, and drops all but the first `kept` updates.
    fn rewind(&mut self, kept: usize);
}

impl<M: Module, B> TimedArm<M, B> {
    /// An arm at its start. Each element of `updates` holds the batches of one update. The model is
    /// on a device with autodiff.
    ///
    /// # Errors
    /// If there are no batches, or the model has no parameters.
    pub fn new(
        model: M,
        phases: Vec<Phase<M, B>>,
        updates: Vec<Vec<Fetched<B>>>,
        compute: Compute,
        seed: u64,
    ) -> Result<Self, TrainError> {
        let settings = |what: &str| TrainError::Settings(what.to_string());
        let device = model.devices().into_iter().next().ok_or_else(|| settings("the model is empty"))?;
        let model = phases.iter().try_fold(model, |model, phase| phase.begun(model))?;
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
        Ok(Self { model: Some(model), device, phases, updates, next: 0, compute, seed, micro_step: 0 })
    }

    fn watched(&mut self, updates: u64, watch: &mut impl Watch) -> Result<Lap, TrainError> {
        let mut lap = Lap { updates, skipped: 0, tokens: 0, seconds: 0.0 };
        idle(&self.device)?;
        let start = Instant::now();
        for _ in 0..updates {
            let (micro, tokens) = &self.updates[self.next];
            self.next = (self.next + 1) % self.updates.len();
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
                let (moved, report) =
                    run_phase(phase, (index, count), model, micro, around, &mut Local, watch)?;
                self.model = Some(moved);
                all_skipped &= report.skipped;
            }
            self.micro_step += group * count;
            lap.tokens += tokens;
            lap.skipped += u64::from(all_skipped);
        }
        idle(&self.device)?;
        lap.seconds = start.elapsed().as_secs_f64();
        Ok(lap)
    }

    /// Runs a block like [`Timed::clean_lap`], with a new watch for each try.
    fn clean<W: Watch>(
        &mut self,
        updates: u64,
        watch: impl Fn(&Device) -> W,
    ) -> Result<(Lap, W), TrainError> {
        let first = self.next;
        let mut tries = 1;
        loop {
            let mut watching = watch(&self.device);
            let lap = self.watched(updates, &mut watching)?;
            if lap.skipped == 0 || tries == TRIES {
                return Ok((lap, watching));
            }
            self.next = first;
            tries += 1;
        }
    }
}

impl<M: Module, B> Timed for TimedArm<M, B> {
    fn lap(&mut self, updates: u64) -> Result<Lap, TrainError> {
        self.watched(updates, &mut Unwatched)
    }

    fn clean_lap(&mut self, updates: u64) -> Result<Lap, TrainError> {
        Ok(self.clean(updates, |_| Unwatched)?.0)
    }

    fn parts(&mut self, most: u64) -> Result<PartSeconds, TrainError> {
        let updates = most.clamp(1, self.updates.len() as u64);
        let (_, stopwatch) = self.clean(updates, Stopwatch::start)?;
        Ok(stopwatch.seconds().of_each(updates))
    }

    fn updates(&self) -> usize {
        self.updates.len()
    }

    fn rewind(&mut self, kept: usize) {
        self.updates.truncate(kept.max(1));
        self.next = 0;
    }
}

/// Runs one update twice and returns the seconds of the second run.
fn probe(arm: &mut dyn Timed) -> Result<f64, TrainError> {
    arm.rewind(usize::MAX);
    arm.lap(1)?;
    arm.rewind(usize::MAX);
    Ok(arm.lap(1)?.seconds)
}

/// Keeps the first `kept` updates, and runs them until their kernels are compiled and the loss
/// scale fits. Returns the seconds of an update. The next update is the first.
fn settle(arm: &mut dyn Timed, kept: usize) -> Result<f64, TrainError> {
    arm.rewind(kept);
    let all = arm.updates() as u64;
    Ok(arm.clean_lap(all)?.seconds / all as f64)
}

/// Warms up one arm and returns the seconds of an update.
///
/// # Errors
/// As [`Timed::lap`].
pub fn warm_up_alone(arm: &mut dyn Timed) -> Result<f64, TrainError> {
    let seconds = probe(arm)?;
    settle(arm, affordable(seconds))
}

/// Number of updates with different batches that fit in a warm-up.
fn affordable(seconds: f64) -> usize {
    (WARM_SECONDS / seconds).ceil().clamp(1.0, 1e6) as usize
}

/// Warms up two arms for rounds, with equally many different updates. Returns the seconds of an
/// update of each.
///
/// # Errors
/// As [`Timed::lap`].
pub fn warm_up_pair(baseline: &mut dyn Timed, candidate: &mut dyn Timed) -> Result<(f64, f64), TrainError> {
    let slower = probe(baseline)?.max(probe(candidate)?);
    let kept = affordable(slower).min(baseline.updates()).min(candidate.updates());
    Ok((settle(baseline, kept)?, settle(candidate, kept)?))
}

/// One round of four blocks with the same number of updates. Both arms process the same batches.
///
/// # Errors
/// As [`Timed::lap`].
pub fn round(baseline: &mut dyn Timed, candidate: &mut dyn Timed, updates: u64) -> Result<Round, TrainError> {
    Ok(Round {
        baseline_first: baseline.clean_lap(updates)?,
        candidate_first: candidate.clean_lap(updates)?,
        candidate_second: candidate.clean_lap(updates)?,
        baseline_second: baseline.clean_lap(updates)?,
    })
}
