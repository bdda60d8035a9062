//! Training loop: epochs of batches, updates, validation, checkpoints, and exact resumption.
//!
//! `batches_per_update` batches form an update. The remaining batches of an epoch form a smaller
//! one, as in fairseq; an update never spans two epochs. The run validates after each epoch, and at
//! its end if that is within an epoch. Validations decide patience and the best weights, as in
//! fairseq.

mod validation;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::module::Module;
use zoo_models::parameters::{self, ParameterError, ParameterValues};
use zoo_models::precision::Compute;
use zoo_recipes::{Clock, EvaluatedWeights, Moment};

use crate::average::Average;
use crate::batches::{BatchSource, Share};
use crate::checkpoint::{Checkpoint, PhaseMoments};
use crate::error::{OtherError, TrainError};
use crate::folder::CheckpointFolder;
use crate::groups::check_names;
use crate::optimizer::OptimizerState;
use crate::parts::{Unwatched, Watch};
use crate::progress::{LogFile, Progress, UpdateReport, end_line, train_line};
use crate::reduce::{Local, Reducer};
use crate::settings::TrainSettings;
use crate::state::{Counters, Ending, Identity, PhaseState, RunState};
use crate::update::{MicroBatch, Phase, Surroundings, run_phase};

pub use validation::{Asked, Score, Seen, Validation};

/// How a call of [`Trainer::run`] ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The run has ended.
    Finished(Ending),
    /// A moment of [`Trainer::pause_at`] was reached, and the state is saved. Another call
    /// continues the run.
    Paused,
    /// The caller requested a stop; a state to resume from was saved.
    Interrupted {
        /// File of the state.
        checkpoint: PathBuf,
    },
    /// Loss or gradients stayed non-finite. The state was saved; a second call returns the same
    /// outcome.
    Diverged {
        /// The phase that diverged.
        phase: String,
        /// Updates completed before.
        update: u64,
    },
}

/// A run.
pub struct Trainer<M, B> {
    settings: TrainSettings,
    phases: Vec<Phase<M, B>>,
    reducer: Box<dyn Reducer>,
    folder: CheckpointFolder,
    state: RunState,
    model: Option<M>,
    /// Exponential mean of the weights, where the run evaluates it.
    average: Option<Average>,
    /// Batches processed when the newest state was saved.
    saved_at: Option<u64>,
    /// Moments at which to return to the caller.
    pauses: BTreeSet<Moment>,
    watch: Box<dyn Watch>,
}

const MODEL: &str = "the model is away only during an update";

impl<M: Module, B> Trainer<M, B> {
    /// A run at its start, with one worker. The model is on a device with autodiff.
    pub fn new(settings: TrainSettings, model: M, phases: Vec<Phase<M, B>>) -> Result<Self, TrainError> {
        Self::distributed(settings, model, phases, Box::new(Local))
    }

    /// A run at its start, as one of several workers.
    pub fn distributed(
        settings: TrainSettings,
        model: M,
        phases: Vec<Phase<M, B>>,
        reducer: Box<dyn Reducer>,
    ) -> Result<Self, TrainError> {
        settings.check(reducer.world())?;
        if phases.is_empty() || phases.iter().any(|phase| phase.name.is_empty() || phase.name.contains('/')) {
            return Err(TrainError::Settings("an update needs phases, with names without `/`".to_string()));
        }
        let names = phases.iter().flat_map(|phase| &phase.groups).map(|group| &group.parameters);
        check_names("train.groups", names, &parameters::shapes(&model))?;
        let identity = Identity {
            fingerprint: settings.fingerprint.clone(),
            seed: settings.seed,
            batches_per_update: settings.batches_per_update,
            compute: settings.compute.name().to_string(),
            world: reducer.world(),
        };
        let state = RunState::new(identity, phases.iter().map(phase_state).collect());
        let folder = CheckpointFolder::new(&settings.folder);
        let model = phases.iter().try_fold(model, |model, phase| phase.begun(model))?;
        let (model, average) = match settings.ema {
            Some(keep) => {
                let (model, average) = Average::new(model, keep, &settings.ema_of)?;
                (model, Some(average))
            }
            None => (model, None),
        };
        Ok(Self {
            settings,
            phases,
            reducer,
            folder,
            state,
            model: Some(model),
            average,
            saved_at: None,
            pauses: BTreeSet::new(),
            watch: Box::new(Unwatched),
        })
    }

    /// Loads the newest intact checkpoint of the folder, if there is one. Returns warnings for the
    /// user: skipped damaged checkpoints, or a different number of workers.
    pub fn resume(&mut self) -> Result<Vec<String>, TrainError> {
        let Some(latest) = self.folder.latest()? else { return Ok(Vec::new()) };
        let (mut warnings, state) = (latest.warnings, latest.state);
        let (found, mine) = (&state.identity, &self.state.identity);
        for (what, found, expected) in [
            ("recipe, arm or data", &found.fingerprint, &mine.fingerprint),
            ("seed", &found.seed.to_string(), &mine.seed.to_string()),
            (
                "batches per update",
                &found.batches_per_update.to_string(),
                &mine.batches_per_update.to_string(),
            ),
            ("compute type", &found.compute, &mine.compute),
        ] {
            if found != expected {
                let (found, expected) = (found.clone(), expected.clone());
                return Err(TrainError::OtherRun { path: latest.path, what, found, expected });
            }
        }
        if found.world != mine.world {
            warnings.push(format!(
                "the run goes on with {} worker(s) after {}: equal within rounding, not bit for bit",
                mine.world, found.world
            ));
        }
        let names =
            |phases: &[PhaseState]| phases.iter().map(|p| p.name.clone()).collect::<Vec<_>>().join(", ");
        if names(&state.phases) != names(&self.state.phases) {
            let (found, expected) = (names(&state.phases), names(&self.state.phases));
            return Err(TrainError::OtherRun { path: latest.path, what: "phases", found, expected });
        }
        let model = self.model.take().expect(MODEL);
        let other = |what, error: ParameterError| TrainError::OtherRun {
            path: latest.path.clone(),
            what,
            found: error.to_string(),
            expected: "the model's".to_string(),
        };
        if let Some(average) = &mut self.average {
            let saved = latest.checkpoint.average;
            average.import(model.clone(), saved).map_err(|error| other("mean of the weights:", error))?;
        }
        let model =
            parameters::import(model, latest.checkpoint.weights).map_err(|error| other("weights:", error))?;
        self.model = Some(model);
        let mut moments = latest.checkpoint.moments;
        for (phase, saved) in self.phases.iter_mut().zip(&state.phases) {
            let of =
                moments.iter().position(|of| of.phase == phase.name).map(|i| moments.swap_remove(i).moments);
            let state = OptimizerState { steps: saved.optimizer_steps, moments: of.unwrap_or_default() };
            phase.optimizer.import(state)?;
            phase.scaler.restore(saved.scaler.clone())?;
            phase.schedule.restore(saved.falls);
            phase.updates = saved.updates;
            phase.hopeless = saved.hopeless;
        }
        self.folder.set_aside(&latest.damaged)?;
        self.saved_at = Some(state.counters.batch);
        let identity = std::mem::replace(&mut self.state, state).identity;
        self.state.identity = identity;
        Ok(warnings)
    }

    /// State of the run, without its arrays.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The current model.
    pub fn model(&self) -> &M {
        self.model.as_ref().expect(MODEL)
    }

    /// Checkpoints of this run.
    pub fn folder(&self) -> &CheckpointFolder {
        &self.folder
    }

    /// Sets moments before the run's end at which [`Trainer::run`] returns, so that the caller can
    /// inspect the model.
    pub fn pause_at(&mut self, moments: impl IntoIterator<Item = Moment>) {
        self.pauses = moments.into_iter().collect();
    }

    /// Sets the watch of all further updates.
    pub fn watched_by(&mut self, watch: Box<dyn Watch>) {
        self.watch = watch;
    }

    /// Sets the type of products of all further updates, to compute an update of the run in another
    /// type. States that are saved keep the type of the settings, so they are not of the run.
    pub fn compute_in(&mut self, compute: Compute) {
        self.settings.compute = compute;
    }

    /// The moments of [`Trainer::pause_at`] that the run is at.
    pub fn reached(&self) -> Vec<Moment> {
        let counters = self.state.counters;
        let is_now = |moment: &&Moment| match moment.clock {
            Clock::Updates => moment.at == counters.update,
            Clock::Epochs => moment.at == counters.epoch && counters.batch_in_epoch == 0,
        };
        self.pauses.iter().filter(is_now).copied().collect()
    }

    /// The current weights to validate and evaluate, on the host.
    pub fn weights_now(&self) -> Vec<ParameterValues> {
        match &self.average {
            Some(average) => average.export(self.model()),
            None => parameters::export(self.model()),
        }
    }

    /// Trains until the run ends, `stop` is set or a pause is reached. Another call continues the
    /// run.
    pub fn run<S: BatchSource<B> + ?Sized>(
        &mut self,
        source: &mut S,
        mut validation: Option<&mut Validation<'_, M>>,
        progress: &mut dyn Progress,
        mut log: Option<&mut LogFile>,
        stop: &AtomicBool,
    ) -> Result<Outcome, TrainError> {
        let mut clock = Stopwatch::start();
        loop {
            if let Some(ending) = self.ending() {
                return self.end(ending, &mut validation, progress, log, &mut clock);
            }
            let (epoch, from) = (self.state.counters.epoch, self.state.counters.batch_in_epoch);
            let missing = |batch: u64| move |source: OtherError| TrainError::Batch { epoch, batch, source };
            let len = source.epoch_len(epoch).map_err(missing(from))?;
            if len == 0 {
                return Err(TrainError::Settings(format!("epoch {epoch} (counted from 0) has no batches")));
            }
            if from < len {
                let share = Share {
                    rank: u64::from(self.reducer.rank()),
                    world: u64::from(self.reducer.world()),
                    group: u64::from(self.settings.batches_per_update),
                };
                let mut batches = source.batches(epoch, from, share).map_err(missing(from))?;
                while self.state.counters.batch_in_epoch < len && self.ending().is_none() {
                    let first = self.state.counters.batch_in_epoch;
                    let group = share.group.min(len - first);
                    let mut micro = Vec::new();
                    let mut tokens = 0;
                    for index in (first..first + group).filter(|index| share.has(*index)) {
                        let next = batches
                            .next()
                            .unwrap_or_else(|| Err("there are fewer batches than announced".into()));
                        let fetched = next.map_err(missing(index))?;
                        tokens += fetched.tokens;
                        micro.push(MicroBatch { position: index - first, batch: fetched.batch });
                    }
                    let report = self.update(micro, group, tokens, &mut clock)?;
                    progress.on_update(&report);
                    self.log_update(&report, log.as_deref_mut())?;
                    let counters = self.state.counters;
                    if let EvaluatedWeights::MeanOfLast { checkpoints, every_updates } =
                        self.settings.evaluate
                        && !report.skipped
                        && counters.update.is_multiple_of(every_updates)
                    {
                        self.keep_weights(checkpoints)?;
                    }
                    let at_end = counters.batch_in_epoch == len;
                    if stop.load(Ordering::Relaxed) && !at_end && self.ending().is_none() {
                        return self.interrupt(progress, &mut clock);
                    }
                    let due =
                        !report.skipped && counters.update.is_multiple_of(self.settings.checkpoint_every);
                    let pause = !report.skipped && !self.reached().is_empty();
                    // The ends of epochs and of the run have a separate checkpoint, after
                    // validation.
                    if (due || pause) && !at_end && self.ending().is_none() {
                        self.save(progress, &mut clock)?;
                        if pause {
                            return Ok(Outcome::Paused);
                        }
                    }
                }
            }
            if self.state.counters.batch_in_epoch >= len {
                self.end_epoch(&mut validation, progress, log.as_deref_mut(), &mut clock)?;
                if stop.load(Ordering::Relaxed) && self.ending().is_none() {
                    return self.interrupt(progress, &mut clock);
                }
                if !self.reached().is_empty() && self.ending().is_none() {
                    return Ok(Outcome::Paused);
                }
            }
        }
    }

    /// Reason why the run is at its end; `None` if it is not. It depends on the state alone, so
    /// that a resumed run ends at the same point.
    fn ending(&self) -> Option<Ending> {
        let (state, settings) = (&self.state, &self.settings);
        let reached = |limit: Option<u64>, at: u64| limit.is_some_and(|limit| at >= limit);
        let diverged = |phase: &&Phase<M, B>| phase.hopeless >= settings.diverged_after;
        if let Some(phase) = self.phases.iter().find(diverged) {
            Some(Ending::Diverged { phase: phase.name.clone() })
        } else if reached(settings.max_updates, state.counters.update) {
            Some(Ending::MaxUpdates)
        } else if reached(settings.max_epochs, state.counters.epoch) {
            Some(Ending::MaxEpochs)
        } else if settings.patience.is_some_and(|patience| state.since_best >= patience) {
            Some(Ending::Patience)
        } else if self.phases.iter().any(|phase| phase.schedule.is_over()) {
            Some(Ending::Rate)
        } else {
            None
        }
    }

    fn update(
        &mut self,
        micro: Vec<MicroBatch<B>>,
        group: u64,
        tokens: u64,
        clock: &mut Stopwatch,
    ) -> Result<UpdateReport, TrainError> {
        let around = Surroundings {
            compute: self.settings.compute,
            seed: self.settings.seed,
            micro_step: self.state.counters.micro_step,
            group,
        };
        let mut tokens = [tokens as f64];
        if self.reducer.world() > 1 {
            self.reducer.sum_values(&mut tokens)?;
        }
        let tokens = tokens[0] as u64;
        let (count, reducer) = (self.phases.len() as u64, self.reducer.as_mut());
        let (mut model, watch) = (self.model.take().expect(MODEL), self.watch.as_mut());
        watch.begins(self.state.counters.update + 1);
        let mut reports = Vec::with_capacity(self.phases.len());
        for (index, phase) in (0..).zip(&mut self.phases) {
            let (moved, report) = run_phase(phase, (index, count), model, &micro, around, reducer, watch)?;
            model = moved;
            reports.push(report);
        }
        let skipped = reports.iter().all(|report| report.skipped);
        self.model = Some(match &mut self.average {
            Some(average) if !skipped => average.follow(model),
            _ => model,
        });
        let counters = &mut self.state.counters;
        counters.batch += group;
        counters.batch_in_epoch += group;
        counters.micro_step += group * count;
        counters.update += u64::from(!skipped);
        counters.skipped += u64::from(skipped);
        let seconds = clock.lap();
        self.state.seconds += seconds;
        let one_phase = reports.len() == 1;
        for sums in [&mut self.state.since_log, &mut self.state.this_epoch] {
            sums.updates += u64::from(!skipped);
            sums.skipped += u64::from(skipped);
            sums.tokens += tokens;
            sums.seconds += seconds;
            for report in reports.iter().filter(|report| !report.skipped) {
                let mut terms = report.terms.clone();
                if !one_phase {
                    terms.iter_mut().for_each(|term| term.name = format!("{}/{}", report.phase, term.name));
                }
                sums.add(&terms);
            }
        }
        let first = &reports[0];
        Ok(UpdateReport {
            counters: self.state.counters,
            loss: first.loss(),
            lr: first.lr,
            scale: first.scale,
            grad_norm: first.grad_norm,
            tokens,
            seconds,
            skipped,
            phases: reports,
        })
    }

    fn log_update(&mut self, report: &UpdateReport, log: Option<&mut LogFile>) -> Result<(), TrainError> {
        if report.skipped || !report.counters.update.is_multiple_of(self.settings.log_every) {
            return Ok(());
        }
        let since = std::mem::take(&mut self.state.since_log);
        match log {
            Some(log) => log.write(&train_line(report, &since)).map_err(TrainError::Log),
            None => Ok(()),
        }
    }

    fn end_epoch(
        &mut self,
        validation: &mut Option<&mut Validation<'_, M>>,
        progress: &mut dyn Progress,
        log: Option<&mut LogFile>,
        clock: &mut Stopwatch,
    ) -> Result<(), TrainError> {
        self.state.counters.epoch += 1;
        self.state.counters.batch_in_epoch = 0;
        let epoch = std::mem::take(&mut self.state.this_epoch);
        self.validate(validation, Some(epoch), progress, log)?;
        if let EvaluatedWeights::MeanOfEpochs { epochs } = self.settings.evaluate {
            self.keep_weights(epochs)?;
        }
        self.save(progress, clock)?;
        Ok(())
    }

    /// Saves the weights for a mean over the last `most` saved weights.
    fn keep_weights(&mut self, most: u32) -> Result<(), TrainError> {
        let Counters { epoch, update, .. } = self.state.counters;
        let kept = self.folder.save_weights(self.weights_now(), epoch, update)?;
        // An epoch in which every update was skipped has the same weights and file name as the one
        // before.
        self.state.kept_weights.retain(|old| old.file != kept.file);
        self.state.kept_weights.push(kept);
        let excess = self.state.kept_weights.len().saturating_sub(most as usize);
        self.state.kept_weights.drain(..excess);
        Ok(())
    }

    fn end(
        &mut self,
        ending: Ending,
        validation: &mut Option<&mut Validation<'_, M>>,
        progress: &mut dyn Progress,
        mut log: Option<&mut LogFile>,
        clock: &mut Stopwatch,
    ) -> Result<Outcome, TrainError> {
        if self.state.ending.is_none() {
            let validated = self.state.last_validation.as_ref().map(|validated| validated.update);
            let diverged = matches!(ending, Ending::Diverged { .. });
            if !diverged && validated != Some(self.state.counters.update) {
                self.validate(validation, None, progress, log.as_deref_mut())?;
            }
            // Validation can only have changed the patience count, which no longer matters.
            self.state.ending = Some(ending.clone());
            self.saved_at = None;
            self.save(progress, clock)?;
            if let Some(log) = log {
                log.write(&end_line(&self.state, &ending)).map_err(TrainError::Log)?;
            }
        }
        let update = self.state.counters.update;
        Ok(match self.state.ending.clone().unwrap_or(ending) {
            Ending::Diverged { phase } => Outcome::Diverged { phase, update },
            ending => Outcome::Finished(ending),
        })
    }

    fn interrupt(
        &mut self,
        progress: &mut dyn Progress,
        clock: &mut Stopwatch,
    ) -> Result<Outcome, TrainError> {
        let checkpoint = self.save(progress, clock)?;
        Ok(Outcome::Interrupted { checkpoint })
    }

    /// Saves the state, unless it was saved at the current batch.
    fn save(&mut self, progress: &mut dyn Progress, clock: &mut Stopwatch) -> Result<PathBuf, TrainError> {
        let batch = self.state.counters.batch;
        if self.saved_at == Some(batch)
            && let Some(newest) = self.folder.states()?.into_iter().next()
        {
            return Ok(newest);
        }
        self.state.phases = self.phases.iter().map(phase_state).collect();
        self.state.seconds += clock.lap();
        let export = |phase: &Phase<M, B>| PhaseMoments {
            phase: phase.name.clone(),
            moments: phase.optimizer.export().moments,
        };
        let checkpoint = Checkpoint {
            state: Some(self.state.clone()),
            weights: parameters::export(self.model()),
            average: self.average.as_ref().map_or_else(Vec::new, |average| average.export(self.model())),
            moments: self.phases.iter().map(export).collect(),
        };
        let path = self.folder.save(&checkpoint)?;
        self.saved_at = Some(batch);
        progress.on_checkpoint(&path, self.state.counters);
        self.state.seconds += clock.lap();
        Ok(path)
    }
}

fn phase_state<M, B>(phase: &Phase<M, B>) -> PhaseState {
    PhaseState {
        name: phase.name.clone(),
        updates: phase.updates,
        hopeless: phase.hopeless,
        optimizer_steps: phase.optimizer.steps(),
        scaler: phase.scaler.state().clone(),
        falls: phase.schedule.falls(),
    }
}

/// Time between two moments, so that validation and checkpoints do not count as time of an update.
struct Stopwatch(Instant);

impl Stopwatch {
    fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the last call.
    fn lap(&mut self) -> f64 {
        let seconds = self.0.elapsed().as_secs_f64();
        self.0 = Instant::now();
        seconds
    }
}
