//! Times the updates of two arms in alternating blocks: baseline, candidate, candidate, baseline.
//!
//! Both arms are in memory together, go on from block to block, and go through the same updates' batches in the same order. A block
//! begins and ends with the device idle. A clock that drifts, or a neighbour that comes and goes, meets both arms alike.

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

/// Seconds of updates with different batches that a warm-up may take: on a slow machine one update's batches have to do.
const WARM_SECONDS: f64 = 4.0;
/// Times that a warm-up, or a block in which an update was skipped, is tried again.
const TRIES: u32 = 20;

/// One arm of a timing: a model that is trained on a few updates' batches, over and over.
pub struct TimedArm<M, B> {
    model: Option<M>,
    device: Device,
    phases: Vec<Phase<M, B>>,
    updates: Vec<(Vec<MicroBatch<B>>, u64)>,
    /// The next of them.
    next: usize,
    compute: Compute,
    seed: u64,
    micro_step: u64,
}

/// What a block of updates took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lap {
    /// Updates, with those that were skipped for overflow.
    pub updates: u64,
    /// Those among them that were skipped: they cost less than others.
    pub skipped: u64,
    /// Tokens, frames or images in their batches, as they were counted by whoever gave them.
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

impl Round {
    /// All four.
    pub fn laps(&self) -> [Lap; 4] {
        [self.baseline_first, self.candidate_first, self.candidate_second, self.baseline_second]
    }
}

/// An arm on a clock, whatever it trains.
pub trait Timed {
    /// Makes so many updates, from where it stands.
    ///
    /// # Errors
    /// The device fails, or a loss's terms are not those that it announced.
    fn lap(&mut self, updates: u64) -> Result<Lap, TrainError>;

    /// A block without a skipped update, if there is one among several tries of the same batches.
    ///
    /// # Errors
    /// As [`lap`](Self::lap).
    fn clean_lap(&mut self, updates: u64) -> Result<Lap, TrainError>;

    /// Seconds of the parts of an update: the mean over its different updates, of which it makes at most so many. The device comes to
    /// rest between parts, so that these updates are no measure of speed.
    ///
    /// # Errors
    /// As [`lap`](Self::lap).
    fn parts(&mut self, most: u64) -> Result<PartSeconds, TrainError>;

    /// Different updates.
    fn updates(&self) -> usize;

    /// Begins with the first update again, and leaves all but the first `kept` out.
    fn rewind(&mut self, kept: usize);
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

    /// A block as [`Timed::clean_lap`] makes it, under a new watch each time.
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

/// Makes one update twice, and gives the second one's seconds.
fn probe(arm: &mut dyn Timed) -> Result<f64, TrainError> {
    arm.rewind(usize::MAX);
    arm.lap(1)?;
    arm.rewind(usize::MAX);
    Ok(arm.lap(1)?.seconds)
}

/// Goes through the first `kept` updates, which alone stay, until kernels are compiled for all of them and the loss scale fits.
/// Gives the seconds of an update; what comes next is the first of them.
fn settle(arm: &mut dyn Timed, kept: usize) -> Result<f64, TrainError> {
    arm.rewind(kept);
    let all = arm.updates() as u64;
    Ok(arm.clean_lap(all)?.seconds / all as f64)
}

/// Gets an arm ready alone; gives the seconds of an update.
///
/// # Errors
/// As [`Timed::lap`].
pub fn warm_up_alone(arm: &mut dyn Timed) -> Result<f64, TrainError> {
    let seconds = probe(arm)?;
    settle(arm, affordable(seconds))
}

/// How many updates with different batches a warm-up can afford.
fn affordable(seconds: f64) -> usize {
    (WARM_SECONDS / seconds).ceil().clamp(1.0, 1e6) as usize
}

/// Gets two arms ready for rounds, with equally many different updates; gives the seconds of an update of each.
///
/// # Errors
/// As [`Timed::lap`].
pub fn warm_up_pair(baseline: &mut dyn Timed, candidate: &mut dyn Timed) -> Result<(f64, f64), TrainError> {
    let slower = probe(baseline)?.max(probe(candidate)?);
    let kept = affordable(slower).min(baseline.updates()).min(candidate.updates());
    Ok((settle(baseline, kept)?, settle(candidate, kept)?))
}

/// One round of four blocks with the same number of updates: both arms go through the same ones.
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
