//! Random windows, for timing without the data.

use zoo_models::random::Key;
use zoo_models::tasks::language_modelling::WindowBatch;
use zoo_recipes::tasks::language_modelling::TrainingWindowsSpec;
use zoo_training::batches::Fetched;

use super::Recipe;
use crate::run::timed_arm::Update;

/// The recipe with batches of another shape, rows and steps.
pub fn of_shape(recipe: &Recipe, [sentences, tokens]: [u32; 2]) -> Recipe {
    let mut recipe = recipe.clone();
    match &mut recipe.data.batching {
        TrainingWindowsSpec::Contiguous { rows, steps, .. }
        | TrainingWindowsSpec::Random { rows, steps, .. }
        | TrainingWindowsSpec::Chunks { rows, steps, .. }
        | TrainingWindowsSpec::Sentences { rows, steps } => {
            (*rows, *steps) = (sentences, tokens);
        }
    }
    recipe
}

/// An endless iterator of updates of full batches. Units are uniform.
pub fn full_batches(recipe: &Recipe) -> impl Iterator<Item = Update<WindowBatch>> {
    let (units, batching) = (recipe.data.vocabulary.size, recipe.data.batching);
    let of_update = recipe.train.batches_per_update;
    let batch = move |update: u64, at: u32| {
        let [rows, steps] = batching.shape();
        let key = Key::new(update, u64::from(at), 0);
        let targets: Vec<u32> = (0..rows * steps).map(|i| key.bits(i) % units).collect();
        let inputs = (0..rows * steps).map(|i| key.bits(i ^ 1) % units).collect();
        let begins = !batching.carries() || update == 0;
        Fetched {
            tokens: targets.len() as u64,
            batch: WindowBatch { inputs, targets, rows: rows as usize, begins },
        }
    };
    (0..).map(move |update| (0..of_update).map(|at| batch(update, at)).collect())
}
