//! An update of a run, computed again in a scratch folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use zoo_models::precision::Compute;
use zoo_recipes::{EvaluatedWeights, Recipe, ScheduleSpec};
use zoo_results::exit::Exit;
use zoo_results::replay::{Limits, Reference, TensorComparison, TensorDifferences};
use zoo_training::checkpoint::read_state;
use zoo_training::error::OtherError;
use zoo_training::evaluate;
use zoo_training::progress::{Progress, UpdateReport};
use zoo_training::settings::TrainSettings;
use zoo_training::state::Sums;
use zoo_training::trainer::{Asked, Outcome, Seen, Trainer, Validation};

use super::data::{Batch, Material, Model, TaskData, last_update, phase, typed};
use super::folder::Run;
use super::scratch::{copy_state, scratch};
use super::tensors::TensorObserver;
use super::train::fingerprint;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::progress::Step;

/// An update to compute again.
pub struct Replaying<'a> {
    /// The run, which is not changed.
    pub run: &'a Run,
    /// Number of the update.
    pub update: u64,
    /// The state to begin with; `None` for the start of the run's recipe.
    pub state: Option<&'a Path>,
    /// What to find out.
    pub question: Question,
}

/// What a replay finds out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Question {
    /// The numbers of the updates `first` to `last`, which a line of the log covers.
    Line { first: u64, last: u64 },
    /// The differences of the update's tensors from those in another type.
    Types { other: Compute, reference: Reference, limits: Limits },
}

impl Question {
    /// The last update to compute.
    fn last(self, update: u64) -> u64 {
        match self {
            Self::Line { last, .. } => last,
            Self::Types { .. } => update,
        }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// The update in the run's own type.
    pub update: Computed,
    /// The updates of the line together.
    pub line: Option<Computed>,
    /// The update in the other type, and the differences of the tensors.
    pub other: Option<(Computed, TensorDifferences)>,
}

/// Numbers of one or several updates, as in a line of the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Computed {
    /// Loss over the updates; that of the skipped update if all were skipped.
    pub loss: f64,
    /// Norm of the last update's gradients before clipping.
    pub grad_norm: f64,
    /// Loss scale of the last update.
    pub scale: f64,
    /// Learning rate of the last update.
    pub lr: f64,
    /// Number of tokens, or of another unit of the speed.
    pub tokens: u64,
    /// Number of attempts that were skipped.
    pub skipped: u64,
    /// Number of updates that were made.
    pub updates: u64,
}

/// Sums over updates from a first one on.
#[derive(Debug, Default)]
struct Numbers {
    first: u64,
    sums: Sums,
    computed: Computed,
}

impl Numbers {
    fn new(first: u64, sums: Sums) -> Self {
        Self { first, sums, ..Self::default() }
    }

    fn add(&mut self, report: &UpdateReport) {
        let sums = &mut self.sums;
        sums.updates += u64::from(!report.skipped);
        sums.skipped += u64::from(report.skipped);
        sums.tokens += report.tokens;
        for phase in report.phases.iter().filter(|phase| !phase.skipped) {
            sums.add(&phase.terms);
        }
        let loss = if sums.updates > 0 { sums.loss() } else { report.loss };
        let UpdateReport { grad_norm, scale, lr, .. } = *report;
        let Sums { updates, skipped, tokens, .. } = *sums;
        self.computed = Computed { loss, grad_norm, scale, lr, tokens, skipped, updates };
    }
}

/// Counts the updates, and stops training at one of them.
struct Steps<'a> {
    ctx: &'a Context,
    stop: &'a AtomicBool,
    /// The update after which training stops; with `each`, after each attempt.
    until: u64,
    each: bool,
    numbers: Vec<Numbers>,
}

impl Progress for Steps<'_> {
    fn on_update(&mut self, report: &UpdateReport) {
        let made = report.counters.update;
        // The update after a skipped one has the same number.
        let number = made + u64::from(report.skipped);
        self.numbers.iter_mut().filter(|of| number >= of.first).for_each(|of| of.add(report));
        if self.each || made >= self.until || self.ctx.stopped() {
            self.stop.store(true, Ordering::Relaxed);
        }
        let loss = Some(report.loss);
        self.ctx.progress.step(&Step { done: made, total: Some(self.until), loss, speed: None });
    }
}

/// Computes an update again, as the run did. Nothing is validated, unless the learning rate falls
/// with the validation loss.
///
/// # Errors
/// Training ends before the update, the data changed, or the call was interrupted.
pub fn replay<T: TaskData>(
    ctx: &Context,
    recipe: &Recipe,
    task: &T,
    replaying: &Replaying<'_>,
) -> Result<Replayed> {
    let Replaying { run, update, state, question } = *replaying;
    let typed = typed::<T::Task>(recipe)?;
    let material = task.material(typed)?;
    let mut source = material.source(typed, run.card.seed)?;
    let batches = source.epoch_len(0).map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
    let last = last_update(&recipe.train, batches);
    let compute = Compute::of(&recipe.precision);
    let fingerprint = fingerprint(task, recipe, &run.card.key, &task.fingerprints())?;
    check_data(run, &fingerprint)?;
    let scratch = scratch(ctx)?;
    // The run may be training, so the replay trains the copy.
    if let Some(state) = state {
        copy_state(state, scratch.path())?;
    }
    let falls = matches!(recipe.train.schedule, ScheduleSpec::Plateau { .. });
    let trainer = |folder: &Path| -> Result<Trainer<Model<T>, Batch<T>>> {
        let settings =
            TrainSettings::new(&recipe.train, compute, run.card.seed, fingerprint.clone(), folder.to_owned());
        // Weights that only an evaluation would read are not kept.
        let evaluate = match settings.evaluate {
            best @ EvaluatedWeights::Best { .. } if falls => best,
            _ => EvaluatedWeights::Last,
        };
        let ema = settings.ema.filter(|_| falls);
        let settings =
            TrainSettings { patience: None, checkpoint_every: u64::MAX, evaluate, ema, ..settings };
        let device = ctx.open_device()?.autodiff();
        let model = material.model(typed, run.card.seed, &device);
        let phase = phase(recipe, material.aim(typed), last)?;
        let mut trainer = Trainer::new(settings, model, vec![phase])?;
        trainer.resume()?.iter().for_each(|warning| ctx.progress.note(warning));
        Ok(trainer)
    };
    let objective = material.aim(typed).objective;
    let mut validate = |model: &Model<T>, asked: Asked| -> std::result::Result<Seen, OtherError> {
        if asked == Asked::LossAndScore {
            return Err("the learning rate falls with a validation score, which a replay does not compute\n\
                        hint: replay an update of the epoch of a state that is left"
                .into());
        }
        let batches = task.evaluation(typed, "valid").map_err(|failure| failure.to_string())?;
        Ok(evaluate(objective.as_ref(), model, batches, compute)?.into())
    };
    let (stop, until) = (AtomicBool::new(false), question.last(update));
    let mut go_on = |trainer: &mut Trainer<Model<T>, Batch<T>>, steps: &mut Steps<'_>| -> Result<()> {
        stop.store(false, Ordering::Relaxed);
        let validation: Option<&mut Validation<'_, Model<T>>> =
            if falls { Some(&mut validate) } else { None };
        let before = trainer.state().counters.batch;
        let outcome = trainer.run(source.as_mut(), validation, steps, None, &stop);
        let made = trainer.state().counters.update;
        let is_there = made >= steps.until || steps.each && trainer.state().counters.batch > before;
        match outcome {
            // The validation behind the last update decides nothing any more.
            Err(_) if is_there && steps.until == until && !ctx.stopped() => Ok(()),
            outcome => match outcome? {
                _ if ctx.stopped() => Err(Failure::new(Exit::Interrupted, "interrupted")
                    .hint("run the same command again to start over")),
                Outcome::Diverged { .. } | Outcome::Finished(_) if !is_there => Err(Failure::new(
                    Exit::Data,
                    format!("training ended after update {made}, before update {}", steps.until),
                )
                .hint("it does not repeat the run: compare an earlier update")),
                _ => Ok(()),
            },
        }
    };

    ctx.progress.stage(&format!("compute {} up to update {until}", recipe.recipe.name));
    let mut first = trainer(scratch.path())?;
    let begun = first.state().counters.update;
    let own = || Numbers::new(update, Sums::default());
    let mut steps = Steps { ctx, stop: &stop, until: update, each: false, numbers: Vec::new() };
    let replayed = match question {
        Question::Line { first: from, .. } => {
            // The state has the sums of the line's updates before it, and of attempts at its first one.
            let sums = if begun.saturating_add(1) >= from {
                first.state().since_log.clone()
            } else {
                Sums::default()
            };
            steps.numbers = vec![Numbers::new(from, sums), own()];
            go_on(&mut first, &mut steps)?;
            let of_update = steps.numbers.swap_remove(1).computed;
            if update < until {
                steps.until = until;
                go_on(&mut first, &mut steps)?;
            }
            let line = steps.numbers.swap_remove(0).computed;
            Replayed { update: of_update, line: Some(line), other: None }
        }
        Question::Types { other, reference, limits } => {
            if begun + 1 < update {
                steps.until = update - 1;
                go_on(&mut first, &mut steps)?;
            }
            let tensors = TensorObserver::new(TensorComparison::new(reference, limits));
            first.watched_by(Box::new(tensors.clone()));
            let aside = scratch.path().join("aside");
            (steps.until, steps.each, steps.numbers) = (update, true, vec![own()]);
            // A run that diverged never made its last update.
            while first.state().counters.update < update && first.state().ending.is_none() {
                // The second computation begins where the last attempt of the first one does.
                let before = first.folder().states()?.into_iter().next();
                set_aside(before, &aside)?;
                go_on(&mut first, &mut steps)?;
            }
            let of_update = std::mem::replace(&mut steps.numbers, vec![own()]).swap_remove(0).computed;
            tensors.begin_second();
            let mut second = trainer(&aside)?;
            second.compute_in(other);
            second.watched_by(Box::new(tensors.clone()));
            go_on(&mut second, &mut steps)?;
            let of_other = steps.numbers.swap_remove(0).computed;
            let differences = tensors.differences();
            Replayed { update: of_update, line: None, other: Some((of_other, differences)) }
        }
    };
    ctx.progress.end_stage();
    Ok(replayed)
}

/// Checks that the data is that of the run, by a state of the run.
fn check_data(run: &Run, fingerprint: &str) -> Result<()> {
    let states = run.checkpoints().states()?;
    match states.iter().find_map(|path| read_state(path).ok().flatten()) {
        Some(state) if state.identity.fingerprint != fingerprint => {
            let message =
                format!("{} was trained with other data, or with other settings", run.folder.display());
            Err(Failure::new(Exit::Data, message).hint("put the data back that the run was trained on"))
        }
        _ => Ok(()),
    }
}

/// Makes a state, or none, the only content of a folder.
fn set_aside(state: Option<PathBuf>, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| Failure::io("remove", folder, &error))?;
    }
    fs::create_dir_all(folder).map_err(|error| Failure::io("make", folder, &error))?;
    state.map_or(Ok(()), |state| copy_state(&state, folder))
}
