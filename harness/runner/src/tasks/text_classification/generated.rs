//! Random texts, for timing without the data.

use zoo_models::random::Key;
use zoo_models::tasks::text_classification::TextBatch;
use zoo_training::batches::Fetched;

use super::{Recipe, rows};
use crate::run::timed_arm::Update;
use crate::task::shape::Shape;

/// An endless iterator of updates of full batches. Numbers of words are uniform.
pub fn full_batches(recipe: &Recipe, shape: Shape) -> impl Iterator<Item = Update<TextBatch>> {
    let (rows, classes) = (rows(recipe).0 as u32, recipe.data.classes);
    let of_update = recipe.train.batches_per_update;
    let batch = move |update: u64, at: u32| {
        let Shape { sentences: texts, tokens: positions } = shape;
        let key = Key::new(update, u64::from(at), 0);
        let ids = (0..texts * positions).map(|i| key.bits(i) % rows).collect();
        let labels = (0..texts).map(|i| key.bits(texts * positions + i) % classes).collect();
        Fetched { batch: TextBatch { ids, labels, fold: 0 }, tokens: u64::from(texts) }
    };
    (0..).map(move |update| (0..of_update).map(|at| batch(update, at)).collect())
}
