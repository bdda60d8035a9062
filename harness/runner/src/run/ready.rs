//! Prepared data as the stages see it: trained, evaluated, timed and profiled, whatever its
//! task.

use std::collections::BTreeMap;
use std::path::Path;

use zoo_models::parameters::ParameterValues;
use zoo_recipes::Recipe;
use zoo_results::metrics::Scorer;

use super::conventions::Conventions;
use super::data::{TaskData, typed};
use super::evaluate::{Evaluation, Weights, decode_all, load_model};
use super::folder::{Run, Trained};
use super::profile::{Profiling, profile};
use super::recorder::Recorded;
use super::replay::{Replayed, Replaying, replay};
use super::sweep::{Swept, SweptWeights};
use super::timed_arm::{Making, Measurable, first_updates, of_updates};
use super::train::{Training, train};
use crate::context::Context;
use crate::error::Result;

/// Prepared data of a recipe, whatever its task.
pub trait Ready {
    /// See [`TaskData::fingerprints`].
    fn fingerprints(&self) -> BTreeMap<String, String>;

    /// Trains until the recipe's end, and decodes at the points of its trajectories; a run that
    /// ended before is not touched.
    ///
    /// # Errors
    /// Training cannot go on, or was interrupted.
    fn train(
        &self,
        ctx: &Context,
        training: &Training<'_>,
        recipe: &Recipe,
        run: &mut Run,
    ) -> Result<Trained>;

    /// See [`TaskData::check`].
    ///
    /// # Errors
    /// The data is not that which the run was trained on.
    fn check(&self, recipe: &Recipe, run: &Run) -> Result<()>;

    /// See [`TaskData::keep`].
    ///
    /// # Errors
    /// A file cannot be written.
    fn keep(&self, folder: &Path) -> Result<()>;

    /// Decodes and scores pairs of evaluation set and search, unless `folder` has them already.
    ///
    /// # Errors
    /// The weights do not fit, or an output cannot be written.
    fn evaluate(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        folder: &Path,
        weights: Weights,
        wanted: &[(String, String)],
        conventions: Conventions<'_>,
    ) -> Result<Vec<Evaluation>>;

    /// See [`TaskData::sweep`].
    ///
    /// # Errors
    /// The search has no language model, or the call was interrupted.
    fn sweep(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: Vec<ParameterValues>,
        weights: &SweptWeights,
        scorer: Scorer,
    ) -> Result<Swept>;

    /// The arm on the first batches that training would see.
    ///
    /// # Errors
    /// No batch can be made, or the device cannot be opened.
    fn timed(&self, ctx: &Context, recipe: &Recipe, making: Making<'_>) -> Result<Measurable>;

    /// Trains a scratch copy up to some updates, and records their values.
    ///
    /// # Errors
    /// Training ends before, or was interrupted.
    fn profile(&self, ctx: &Context, recipe: &Recipe, profiling: &Profiling<'_>) -> Result<Recorded>;

    /// Computes an update of a run again, in a scratch copy.
    ///
    /// # Errors
    /// Training ends before the update, or was interrupted.
    fn replay(&self, ctx: &Context, recipe: &Recipe, replaying: &Replaying<'_>) -> Result<Replayed>;
}

impl<T: TaskData> Ready for T {
    fn fingerprints(&self) -> BTreeMap<String, String> {
        TaskData::fingerprints(self)
    }

    fn train(
        &self,
        ctx: &Context,
        training: &Training<'_>,
        recipe: &Recipe,
        run: &mut Run,
    ) -> Result<Trained> {
        train(ctx, training, recipe, self, run)
    }

    fn check(&self, recipe: &Recipe, run: &Run) -> Result<()> {
        TaskData::check(self, typed::<T::Task>(recipe)?, run)
    }

    fn keep(&self, folder: &Path) -> Result<()> {
        TaskData::keep(self, folder)
    }

    fn evaluate(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        folder: &Path,
        weights: Weights,
        wanted: &[(String, String)],
        conventions: Conventions<'_>,
    ) -> Result<Vec<Evaluation>> {
        decode_all(ctx, recipe, self, folder, weights, wanted, conventions)
    }

    fn sweep(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: Vec<ParameterValues>,
        weights: &SweptWeights,
        scorer: Scorer,
    ) -> Result<Swept> {
        let recipe = typed::<T::Task>(recipe)?;
        let model = load_model(recipe, &self.material(recipe)?, model, &ctx.open_device()?)?;
        TaskData::sweep(self, ctx, recipe, wanted, &model, weights, scorer)
    }

    fn timed(&self, ctx: &Context, recipe: &Recipe, making: Making<'_>) -> Result<Measurable> {
        let recipe = typed::<T::Task>(recipe)?;
        let material = self.material(recipe)?;
        let updates = first_updates(recipe, &material, making.seed)?;
        of_updates(ctx, recipe, &material, updates, making)
    }

    fn profile(&self, ctx: &Context, recipe: &Recipe, profiling: &Profiling<'_>) -> Result<Recorded> {
        profile(ctx, recipe, self, profiling)
    }

    fn replay(&self, ctx: &Context, recipe: &Recipe, replaying: &Replaying<'_>) -> Result<Replayed> {
        replay(ctx, recipe, self, replaying)
    }
}
