//! Training of one arm with one seed, from scratch or from the last checkpoint.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use zoo_models::precision::Compute;
use zoo_recipes::{EvaluatedWeights, Recipe};
use zoo_results::exit::Exit;
use zoo_results::metrics::{ScoreOptions, Scorer, score};
use zoo_results::verdict::Verdict;
use zoo_training::error::OtherError;
use zoo_training::evaluate;
use zoo_training::progress::{EpochReport, LogFile, Progress, UpdateReport};
use zoo_training::settings::TrainSettings;
use zoo_training::state::{Counters, Ending, RunState};
use zoo_training::trainer::{Asked, Outcome, Score, Seen, Trainer, Validation};

use super::conventions::{Conventions, name_of};
use super::data::{Decoded, LeftOut, Material, Model, TaskData, last_update, phase, typed};
use super::evaluate::Weights;
use super::folder::{Run, Trained, VOCABULARY};
use super::initial::InitialWeights;
use super::log::{commits, logged_losses};
use super::trajectory;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::files::write_json;
use crate::progress::Step;

/// How a run is trained, besides its recipe.
pub struct Training<'a> {
    /// Weights to start from instead of fresh ones.
    pub initial: Option<&'a InitialWeights>,
    /// Whether to stop a run that leaves the published course.
    pub stop_early: bool,
    /// What the task says of the recipe's evaluation sets.
    pub conventions: Conventions<'a>,
    /// The verdict on a run by itself, if it has left the published course.
    pub off_course: &'a dyn Fn(&Run, &Trained) -> Result<Option<Verdict>>,
    /// Called when the log may have grown.
    pub logged: &'a dyn Fn(),
}

/// Trains to the end of the recipe, and decodes at the points of its trajectory claims. Returns the
/// result of training. A run that has ended is not changed.
pub fn train<T: TaskData>(
    ctx: &Context,
    training: &Training<'_>,
    recipe: &Recipe,
    task: &T,
    run: &mut Run,
) -> Result<Trained> {
    let kept = run.folder.join(VOCABULARY);
    if run.is_trained(training.stop_early)? {
        // Earlier versions kept less.
        if !run.has_vocabulary() && task.check(typed::<T::Task>(recipe)?, run).is_ok() {
            task.keep(&kept)?;
        }
        return run.trained();
    }
    run.create(recipe)?;
    task.keep(&kept)?;
    let seed = run.card.seed;
    let device = ctx.open_device()?.autodiff();
    let compute = Compute::of(&recipe.precision);
    let typed = typed::<T::Task>(recipe)?;
    let material = task.material(typed)?;
    let model = material.model(typed, seed, &device);
    let (model, taken) = match training.initial {
        Some(initial) => initial.put_into(model, recipe.train.transfer.as_ref())?,
        None => (model, None),
    };
    if let Some(taken) = &taken {
        let origin =
            run.card.transfer.as_ref().map_or_else(|| "weights of a file".into(), ToString::to_string);
        ctx.progress.note(&format!("{origin}: {taken}"));
    }
    let mut source = material.source(typed, seed)?;
    let batches = source.epoch_len(0).map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
    let last_update = last_update(&recipe.train, batches);
    let phase = phase(recipe, material.aim(typed), last_update)?;
    let valid = recipe.data().has_eval_set("valid");
    let data = task.fingerprints();
    let fingerprint = fingerprint(task, recipe, &run.card.key, &data)?;
    let folder = run.checkpoints().path().to_path_buf();
    let settings = TrainSettings::new(&recipe.train, compute, seed, fingerprint, folder);
    let mut trainer = Trainer::new(settings, model, vec![phase])?;
    trainer.pause_at(trajectory::wanted(recipe, &run.card.arm).into_keys());
    for warning in trainer.resume()? {
        ctx.progress.note(&warning);
    }
    let begun = trainer.state().counters;
    let log_path = run.folder.join("log.jsonl");
    let mut log = LogFile::open(&log_path, begun.batch).map_err(|e| Failure::io("open", &log_path, &e))?;
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let padding = source.padding();
    let mut session = serde_json::json!({
        "event": "session", "batch": begun.batch, "time": seconds_since_1970(), "environment": environment, "padding": padding,
        "unit": T::Material::UNIT, "parameters": material.cost(typed).parameters, "splits": task.counts(),
    });
    if let Some(taken) = &taken {
        session["transfer"] = taken.to_string().into();
    }
    log.write(&session).map_err(|e| Failure::io("write", &log_path, &e))?;
    let stage = format!("train {} {}, seed {seed}", run.card.recipe, run.card.arm);
    ctx.progress.stage(&stage);
    if begun.update > 0 {
        ctx.progress.note(&format!("resuming after update {}", begun.update));
    }

    ctx.progress.detail(&format!("{:.1} % of the padded batches is padding", 100.0 * padding));
    let objective = material.aim(typed).objective;
    let mut validate = |model: &Model<T>, asked: Asked| -> std::result::Result<Seen, OtherError> {
        let batches = task.evaluation(typed, "valid").map_err(|failure| failure.to_string())?;
        let terms = evaluate(objective.as_ref(), model, batches, compute)?;
        let score = match (&recipe.train.checkpoint.evaluate, asked) {
            (EvaluatedWeights::Best { decode: Some(decode), .. }, Asked::LossAndScore) => {
                ctx.progress.end_stage();
                let scored = valid_score(ctx, recipe, task, decode, model, training.conventions);
                ctx.progress.stage(&stage);
                Some(scored.map_err(|failure| failure.to_string())?)
            }
            _ => None,
        };
        Ok(Seen { terms, score })
    };
    let left_out = source.left_out();
    let watched = left_out.clone();
    let mut watcher = Watcher {
        ctx,
        total: last_update,
        unit: T::Material::UNIT,
        left_out: watched,
        told: 0,
        logged: training.logged,
    };
    let stop: &AtomicBool = &ctx.stop;
    let summary = |state: &RunState, ending: Ending| {
        let losses = logged_losses(&log_path);
        Trained {
            ending,
            updates: state.counters.update,
            skipped: state.counters.skipped,
            epochs: state.counters.epoch,
            seconds: state.seconds,
            first_loss: losses.first().copied(),
            last_loss: losses.last().copied(),
            best_valid_loss: state.best.as_ref().and_then(|best| best.loss),
            commits: commits(&log_path),
            data: data.clone(),
            last_state: None,
        }
    };
    let mut course = || -> Result<Option<Ending>> {
        let mut ended = None;
        loop {
            let reached = trainer.reached();
            if let Some(&at) = reached.last() {
                ctx.progress.end_stage();
                let weights = || {
                    let update = Some(trainer.state().counters.update);
                    Weights { values: trainer.weights_now(), files: Vec::new(), update }
                };
                trajectory::decode_points(ctx, recipe, task, run, &reached, weights, training.conventions)?;
                let so_far = summary(trainer.state(), Ending::OffCourse { at });
                if let (None, Some(verdict)) = (&ended, (training.off_course)(run, &so_far)?) {
                    let hint =
                        if training.stop_early { "the run ends here" } else { "--stop-early would end it" };
                    ctx.progress.note(&format!(
                        "too far from the published trajectory: {} ({hint})",
                        verdict.explanation
                    ));
                    if training.stop_early {
                        return Ok(Some(so_far.ending));
                    }
                }
                ctx.progress.stage(&stage);
            }
            if ended.is_some() {
                return Ok(ended);
            }
            let validation: Option<&mut Validation<'_, Model<T>>> =
                if valid { Some(&mut validate) } else { None };
            match trainer.run(source.as_mut(), validation, &mut watcher, Some(&mut log), stop)? {
                Outcome::Paused => {}
                // The last update may be a point of a trajectory too.
                Outcome::Finished(ending) => ended = Some(ending),
                Outcome::Diverged { phase, .. } => return Ok(Some(Ending::Diverged { phase })),
                Outcome::Interrupted { .. } => return Ok(None),
            }
        }
    };
    let ending = course();
    let left_out = std::mem::take(&mut *left_out.lock().unwrap_or_else(PoisonError::into_inner));
    if !left_out.is_empty() {
        let line = serde_json::json!({ "event": "left-out", "batch": trainer.state().counters.batch, "examples": left_out });
        log.write(&line).map_err(|e| Failure::io("write", &log_path, &e))?;
    }
    ctx.progress.end_stage();
    let Some(ending) = ending? else {
        return Err(Failure::new(Exit::Interrupted, "interrupted; all progress is saved")
            .hint("run the same command again to resume"));
    };
    let last_state = run.checkpoints().note_newest()?;
    let trained = Trained { last_state, ..summary(trainer.state(), ending) };
    write_json(&run.trained_file(), &trained)?;
    Ok(trained)
}

/// Fingerprint of a run's states: its key, and the data that it is trained and validated on.
/// `data` are the task's fingerprints.
pub fn fingerprint<T: TaskData>(
    task: &T,
    recipe: &Recipe,
    key: &str,
    data: &BTreeMap<String, String>,
) -> Result<String> {
    let valid = match recipe.data().has_eval_set("valid") {
        true => task.evaluation_splits(typed::<T::Task>(recipe)?, "valid")?,
        false => Vec::new(),
    };
    let seen = |splits: &[String]| match splits.is_empty() {
        true => "-".to_string(),
        false => splits.iter().map(|split| data[split].as_str()).collect::<Vec<_>>().join(" "),
    };
    Ok(format!("{key} train {} valid {}", seen(&task.training_splits()?), seen(&valid)))
}

/// Score of a model on the set `valid` with a search. Ctrl-C takes effect after it, as for the
/// validation loss.
fn valid_score<T: TaskData>(
    ctx: &Context,
    recipe: &Recipe,
    task: &T,
    decode: &str,
    model: &Model<T>,
    conventions: Conventions<'_>,
) -> Result<Score> {
    let convention = (conventions.signatures)("valid", decode).swap_remove(0);
    let scorer = Scorer::from_signature(&convention)?.on(&name_of(recipe, "valid"))?;
    ctx.progress.stage(&format!("decode valid, {decode}"));
    let Decoded { hypotheses, references, .. } =
        task.decode(&ctx.undisturbed(), typed::<T::Task>(recipe)?, ("valid", decode), model)?;
    ctx.progress.end_stage();
    let scored = score(&hypotheses, &[references], &ScoreOptions { scorer, resampling: None })?;
    Ok(Score { value: scored.value, direction: scored.direction })
}

/// The time now, in seconds since 1970. A clock before 1970 gives 0.
fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Reports training progress on the console.
struct Watcher<'a> {
    ctx: &'a Context,
    total: Option<u64>,
    /// Unit of the speed.
    unit: &'static str,
    left_out: LeftOut,
    /// Number of left-out examples that were already reported.
    told: usize,
    /// [`Training::logged`].
    logged: &'a dyn Fn(),
}

impl Progress for Watcher<'_> {
    fn on_update(&mut self, report: &UpdateReport) {
        self.ctx.progress.step(&Step {
            done: report.counters.update,
            total: self.total,
            loss: Some(report.loss),
            speed: Some((report.tokens as f64 / report.seconds.max(1e-9), self.unit)),
        });
        (self.logged)();
    }

    fn on_epoch(&mut self, report: &EpochReport) {
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, why)) = left_out.iter().next().filter(|_| left_out.len() > self.told) {
            let all = left_out.len();
            self.ctx.progress.note(&format!("{all} examples were skipped so far, e.g. {name}: {why}"));
            self.told = all;
        }
        let number = |x: Option<f64>| x.map_or_else(|| "-".to_string(), |x| format!("{x:.4}"));
        self.ctx.progress.note(&format!(
            "epoch {}: update {}, train loss {}, valid loss {}{}{}",
            report.counters.epoch,
            report.counters.update,
            number(report.train_loss),
            number(report.valid_loss),
            report.valid_score.map_or_else(String::new, |score| format!(", valid score {score:.2}")),
            if report.best { " (best)" } else { "" }
        ));
        (self.logged)();
    }

    fn on_checkpoint(&mut self, path: &Path, _: Counters) {
        self.ctx.progress.detail(&format!("saved {}", path.display()));
    }
}
