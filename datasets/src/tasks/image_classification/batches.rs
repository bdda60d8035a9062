//! Batches of pictures for training.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use zoo_recipes::tasks::image_classification::{
    PictureAugmentationSpec, PictureDataSpec, PictureOrder, PictureRemainder,
};

use super::error::PictureDataError;
use super::prepared::{PictureSplit, PreparedPictures, check_channels};
use super::source::pixels;
use crate::image::{Pixels, RandomCrop, Turn, Variation, VariedCrop};
use crate::random::{Purpose, RandomStream};

/// Batches that wait at most.
const QUEUE: usize = 4;

/// Pictures with their classes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PictureBatch {
    /// Pixels `[pictures, height, width, channels]`, as the model reads them.
    pub pixels: Vec<f32>,
    /// Height, width and channels of a picture.
    pub size: [usize; 3],
    /// Class of each picture.
    pub labels: Vec<u32>,
}

/// A batch of some pictures. `varied` changes each picture, in the turn of its number.
pub(super) fn batch_of(
    split: &PictureSplit,
    pictures: &[usize],
    pixels: &Pixels,
    varied: Option<(&Variation, u64, u32)>,
) -> PictureBatch {
    let size = split.size();
    let mut numbers = Vec::with_capacity(pictures.len() * size.iter().product::<usize>());
    for &picture in pictures {
        let changed = varied.and_then(|(variation, seed, step)| {
            let turn = Turn { seed, step, element: picture as u32 };
            variation.apply(&split.picture(picture), turn).ok()
        });
        let bytes = changed.as_ref().map_or_else(|| split.bytes_of(picture), |changed| changed.bytes());
        // The channels were checked before.
        let appended = pixels.append_bytes(bytes, size[2], &mut numbers);
        debug_assert!(appended.is_ok());
    }
    PictureBatch { pixels: numbers, size, labels: pictures.iter().map(|at| split.labels[*at]).collect() }
}

/// The training batches of a recipe. A batch is a function of the seed, the epoch and its index.
///
/// With `remainder = "continue"` an epoch has as many batches as begin in it: batch k of the run has
/// the pictures k B to (k + 1) B - 1 of the endless sequence of epochs.
#[derive(Debug, Clone)]
pub struct TrainingPictures {
    prepared: Arc<PreparedPictures>,
    split: String,
    pixels: Pixels,
    variation: Option<Variation>,
    batch: usize,
    order: PictureOrder,
    remainder: PictureRemainder,
    seed: u64,
}

impl TrainingPictures {
    /// The batches of a recipe's training split.
    ///
    /// # Errors
    /// There is no batch, or the recipe's numbers do not fit the pictures.
    pub fn new(
        prepared: &Arc<PreparedPictures>,
        data: &PictureDataSpec,
        seed: u64,
    ) -> Result<Self, PictureDataError> {
        let train = prepared.train(data)?;
        let batch = (data.batching.pictures as usize).max(1);
        let (pictures, remainder) = (train.len(), data.batching.remainder);
        if pictures == 0 || (pictures < batch && remainder == PictureRemainder::Drop) {
            return Err(PictureDataError::NoBatch { split: train.name.clone(), pictures, batch });
        }
        let pixels = pixels(&data.pixels)?;
        check_channels(&pixels, train.size()[2])?;
        let variation = data.augmentation.as_ref().map(|spec| variation(spec, train.size())).transpose()?;
        Ok(Self {
            split: train.name.clone(),
            prepared: prepared.clone(),
            pixels,
            variation,
            batch,
            order: data.batching.order,
            remainder,
            seed,
        })
    }

    fn train(&self) -> &PictureSplit {
        &self.prepared.splits[&self.split]
    }

    /// Number of batches of an epoch, counted from 0.
    pub fn per_epoch(&self, epoch: u64) -> usize {
        let pictures = self.train().len() as u64;
        let batch = self.batch as u64;
        let batches = match self.remainder {
            PictureRemainder::Short => pictures.div_ceil(batch),
            PictureRemainder::Drop => pictures / batch,
            PictureRemainder::Continue => self.first_of(epoch + 1) - self.first_of(epoch),
        };
        batches as usize
    }

    /// The first batch of the run that begins in an epoch, of batches that go on.
    fn first_of(&self, epoch: u64) -> u64 {
        (epoch * self.train().len() as u64).div_ceil(self.batch as u64)
    }

    /// The order of the pictures in an epoch.
    fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.train().len()).collect();
        if self.order == PictureOrder::Shuffled {
            RandomStream::new(self.seed, Purpose::EpochOrder, epoch).shuffle(&mut order);
        }
        order
    }

    /// Pictures of a batch, each with its epoch. `order` is the order of `epoch`.
    fn pictures(&self, epoch: u64, index: usize, order: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let count = order.len();
        let start = match self.remainder {
            PictureRemainder::Continue => {
                let batch = self.first_of(epoch) + index as u64;
                (batch * self.batch as u64 - epoch * count as u64) as usize
            }
            _ => index * self.batch,
        };
        let end = start + self.batch;
        let here = order[start.min(count)..end.min(count)].to_vec();
        let mut of_next = Vec::new();
        if self.remainder == PictureRemainder::Continue {
            let mut next = epoch + 1;
            while here.len() + of_next.len() < self.batch {
                let missing = self.batch - here.len() - of_next.len();
                of_next.extend(self.order(next).into_iter().take(missing));
                next += 1;
            }
        }
        (here, of_next)
    }

    /// One batch of an epoch.
    pub fn batch(&self, epoch: u64, index: usize) -> PictureBatch {
        self.of_order(epoch, index, &self.order(epoch))
    }

    fn of_order(&self, epoch: u64, index: usize, order: &[usize]) -> PictureBatch {
        let (here, of_next) = self.pictures(epoch, index, order);
        let made = |pictures: &[usize], epoch: u64| {
            let varied = self.variation.as_ref().map(|variation| (variation, self.seed, epoch as u32));
            batch_of(self.train(), pictures, &self.pixels, varied)
        };
        let mut batch = made(&here, epoch);
        if !of_next.is_empty() {
            let rest = made(&of_next, epoch + 1);
            batch.pixels.extend(rest.pixels);
            batch.labels.extend(rest.labels);
        }
        batch
    }

    /// The batches of an epoch from index `from` on of which `wanted` says yes, made on a thread of
    /// their own, at most four ahead.
    pub fn ahead(
        self: &Arc<Self>,
        epoch: u64,
        from: u64,
        wanted: impl Fn(u64) -> bool + Send + 'static,
    ) -> std::io::Result<Ahead> {
        let (sender, receiver) = sync_channel(QUEUE);
        let pictures = self.clone();
        let make = move || {
            let order = pictures.order(epoch);
            let count = pictures.per_epoch(epoch) as u64;
            for index in (from..count).filter(|index| wanted(*index)) {
                // The receiver is gone: nobody wants more.
                if sender.send(pictures.of_order(epoch, index as usize, &order)).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("pictures".into()).spawn(make)?;
        Ok(Ahead { receiver })
    }
}

fn variation(
    spec: &PictureAugmentationSpec,
    [height, width, _]: [usize; 3],
) -> Result<Variation, PictureDataError> {
    let crop = match spec.padding {
        0 => VariedCrop::Whole,
        padding => VariedCrop::Random(RandomCrop::new(height, width, padding as usize)?),
    };
    Ok(Variation::new(crop, spec.flip)?)
}

/// Batches that a thread makes ahead. Dropping it ends the thread.
#[derive(Debug)]
pub struct Ahead {
    receiver: Receiver<PictureBatch>,
}

impl Iterator for Ahead {
    type Item = PictureBatch;

    fn next(&mut self) -> Option<PictureBatch> {
        self.receiver.recv().ok()
    }
}
