//! Random pictures, for timing without the data.

use zoo_models::random::Key;
use zoo_models::tasks::image_classification::PictureBatch;
use zoo_training::batches::Fetched;

use super::{Recipe, size};
use crate::run::timed_arm::Update;

/// An endless iterator of updates of full batches. Pixels are uniform in [0, 1).
pub fn full_batches(recipe: &Recipe, pictures: u32) -> impl Iterator<Item = Update<PictureBatch>> {
    let (size, classes) = (size(recipe), recipe.data.classes);
    let of_update = recipe.train.batches_per_update;
    (0..).map(move |update| (0..of_update).map(|at| batch(size, classes, pictures, update, at)).collect())
}

fn batch(size: [usize; 3], classes: u32, pictures: u32, update: u64, at: u32) -> Fetched<PictureBatch> {
    let key = Key::new(update, u64::from(at), 0);
    let numbers = pictures * size.iter().product::<usize>() as u32;
    let pixels = (0..numbers).map(|i| (key.bits(i) >> 8) as f32 / (1 << 24) as f32).collect();
    let labels = (0..pictures).map(|i| key.bits(numbers + i) % classes).collect();
    Fetched { batch: PictureBatch { pixels, size, labels }, tokens: u64::from(pictures) }
}
