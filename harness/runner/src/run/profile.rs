//! Training in a scratch folder, from the recipe's start or from a run's newest state, to profile
//! some updates.

use std::collections::BTreeSet;

use zoo_datasets::temporary::TemporaryFolder;
use zoo_models::precision::Compute;
use zoo_recipes::{EvaluatedWeights, Recipe};
use zoo_results::exit::Exit;
use zoo_training::progress::{Progress, UpdateReport};
use zoo_training::settings::TrainSettings;
use zoo_training::trainer::{Outcome, Trainer};

use super::data::{Material, TaskData, last_update, phase, typed};
use super::folder::Run;
use super::initial::InitialWeights;
use super::recorder::{Missing, Recorded, Recorder};
use super::scratch::{copy_state, scratch};
use super::train::fingerprint;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::progress::Step;

/// The updates that are profiled from a recipe's start if none are named, as far as the recipe has
/// them.
pub const USUAL: [u64; 3] = [1, 10, 100];

/// A training to profile.
pub struct Profiling<'a> {
    /// Seed of weights and batches.
    pub seed: u64,
    /// Weights to start from instead of fresh ones.
    pub initial: Option<&'a InitialWeights>,
    /// The run to go on from; `None` for the recipe's start. The run is not changed.
    pub run: Option<&'a Run>,
    /// Numbers of the updates to profile; empty for the usual ones.
    pub updates: &'a [u64],
}

impl Profiling<'_> {
    /// The updates to profile. `begun` is the number of updates of the state to go on from, `last`
    /// that of the recipe's last update.
    fn wanted(&self, begun: u64, last: Option<u64>) -> Result<BTreeSet<u64>> {
        let next = begun.saturating_add(1);
        if self.updates.is_empty() {
            return Ok(match self.run {
                Some(_) => [next].into(),
                None => USUAL.into_iter().filter(|update| last.is_none_or(|last| *update <= last)).collect(),
            });
        }
        if let Some(past) = self.updates.iter().find(|update| **update <= begun) {
            let message = format!("the run is past update {past}: its newest state is of update {begun}");
            return Err(Failure::usage(message).hint(format!("--update {next}, or a later one")));
        }
        if let (None, Some(last)) = (self.run, last)
            && let Some(late) = self.updates.iter().find(|update| **update > last)
        {
            return Err(Failure::usage(format!("there is no update {late}: training ends after {last}"))
                .hint(format!("--update {last}, or an earlier one")));
        }
        Ok(self.updates.iter().copied().collect())
    }
}

/// Trains up to the last update to profile. Nothing is validated, so a learning rate that falls with
/// the validation loss does not fall.
///
/// # Errors
/// Training ends before the first update to profile, or was interrupted before it.
pub fn profile<T: TaskData>(
    ctx: &Context,
    recipe: &Recipe,
    task: &T,
    profiling: &Profiling<'_>,
) -> Result<Recorded> {
    let typed = typed::<T::Task>(recipe)?;
    let material = task.material(typed)?;
    let mut source = material.source(typed, profiling.seed)?;
    let batches = source.epoch_len(0).map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
    let last = last_update(&recipe.train, batches);
    let scratch = scratch(ctx)?;
    // The run may be training: what is profiled is the copy.
    let begun = profiling.run.map_or(Ok(0), |run| copy_newest_state(ctx, run, &scratch))?;
    let wanted = profiling.wanted(begun, last)?;
    let most = wanted.last().copied().unwrap_or(begun);
    let key = profiling.run.map_or("profile", |run| run.card.key.as_str());
    let settings = TrainSettings::new(
        &recipe.train,
        Compute::of(&recipe.precision),
        profiling.seed,
        fingerprint(task, recipe, key, &task.fingerprints())?,
        scratch.path().to_owned(),
    );
    let settings = TrainSettings {
        max_updates: Some(most),
        // A run that has ended goes on.
        max_epochs: settings.max_epochs.filter(|_| profiling.run.is_none()),
        patience: None,
        checkpoint_every: u64::MAX,
        evaluate: EvaluatedWeights::Last,
        ema: None,
        ..settings
    };
    let device = ctx.open_device()?.autodiff();
    let model = material.model(typed, profiling.seed, &device);
    let model = match profiling.initial {
        Some(initial) => initial.put_into(model, recipe.train.transfer.as_ref())?.0,
        None => model,
    };
    let phase = phase(recipe, material.aim(typed), last)?;
    let mut trainer = Trainer::new(settings, model, vec![phase])?;
    if profiling.run.is_some() {
        trainer.resume()?.iter().for_each(|warning| ctx.progress.note(warning));
    }
    let recorder = Recorder::new(wanted.clone());
    trainer.watched_by(Box::new(recorder.clone()));
    let mut watcher = Watcher { ctx, recorder: recorder.clone(), most };
    ctx.progress.stage(&format!("train {} up to update {most}", recipe.recipe.name));
    let outcome = trainer.run(source.as_mut(), None, &mut watcher, None, &ctx.stop);
    ctx.progress.end_stage();
    let made = trainer.state().counters.update;
    let recorded = recorder.take();
    let ended = |how: &str| {
        Failure::new(Exit::Data, format!("{how} after update {made}, before update {most}")).hint(
            match profiling.run {
                Some(_) => "the run cannot go on; profile its recipe",
                None => "--update N names an earlier update",
            },
        )
    };
    let is_made = |number: &u64| recorded.profile.updates.iter().any(|made| made.update == *number);
    let updates: Vec<u64> = wanted.iter().copied().filter(|number| !is_made(number)).collect();
    let failure = match outcome? {
        Outcome::Diverged { .. } => Some(ended("training diverged")),
        Outcome::Interrupted { .. } => Some(
            Failure::new(Exit::Interrupted, format!("interrupted after update {made}, before update {most}"))
                .hint("run the same command again to start over"),
        ),
        Outcome::Finished(_) | Outcome::Paused if made < most => Some(ended("training ended")),
        Outcome::Finished(_) | Outcome::Paused => {
            (!updates.is_empty()).then(|| ended("not all of the updates were recorded: training ended"))
        }
    };
    match failure {
        Some(failure) if updates.len() == wanted.len() => Err(failure),
        Some(failure) => Ok(Recorded { missing: Some(Missing { updates, failure }), ..recorded }),
        None => Ok(recorded),
    }
}

/// Copies the newest intact state of a run into the scratch folder. Returns its number of updates.
fn copy_newest_state(ctx: &Context, run: &Run, scratch: &TemporaryFolder) -> Result<u64> {
    let newest = run.checkpoints().latest()?.ok_or_else(|| {
        Failure::new(Exit::Data, format!("{} has no state to go on from", run.folder.display()))
            .hint("profile its recipe instead")
    })?;
    newest.warnings.iter().for_each(|warning| ctx.progress.note(warning));
    copy_state(&newest.path, scratch.path())?;
    Ok(newest.state.counters.update)
}

/// Reports the updates on the console and to the recorder.
struct Watcher<'a> {
    ctx: &'a Context,
    recorder: Recorder,
    most: u64,
}

impl Progress for Watcher<'_> {
    fn on_update(&mut self, report: &UpdateReport) {
        self.recorder.reported(report);
        let (done, loss) = (report.counters.update, Some(report.loss));
        self.ctx.progress.step(&Step { done, total: Some(self.most), loss, speed: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(updates: &[u64], last: Option<u64>) -> std::result::Result<Vec<u64>, String> {
        let profiling = Profiling { seed: 1, initial: None, run: None, updates };
        let found = profiling.wanted(0, last).map_err(|failure| failure.to_string())?;
        Ok(found.into_iter().collect())
    }

    #[test]
    fn the_usual_updates_are_those_that_the_recipe_has() {
        assert_eq!(wanted(&[], None), Ok(vec![1, 10, 100]));
        assert_eq!(wanted(&[], Some(99)), Ok(vec![1, 10]));
        assert_eq!(wanted(&[20, 3, 20], Some(20)), Ok(vec![3, 20]));
        let error = wanted(&[3, 21], Some(20)).unwrap_err();
        assert!(error.contains("no update 21: training ends after 20"), "{error}");
    }
}
