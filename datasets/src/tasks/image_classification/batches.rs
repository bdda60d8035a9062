//! Batches of pictures for training.

use std::sync::Arc;

use zoo_recipes::tasks::image_classification::{
    PictureAugmentationSpec, PictureDataSpec, PictureOrder, PictureRemainder, PixelSpec,
};

use super::error::PictureDataError;
use super::prepared::PreparedPictures;
use super::source::pixels;
use super::split::{PictureSplit, check_channels};
use crate::batches::Ahead;
use crate::image::{Pixels, RandomCrop, Turn, Variation, VariedCrop};
use crate::random::{Purpose, RandomStream};

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
) -> Result<PictureBatch, PictureDataError> {
    let size = split.size();
    let mut numbers = Vec::with_capacity(pictures.len() * size.iter().product::<usize>());
    for &picture in pictures {
        let apply = |(variation, seed, step): (&Variation, u64, u32)| {
            variation.apply(&split.picture(picture), Turn { seed, step, element: picture as u32 })
        };
        let changed = varied.map(apply).transpose()?;
        let bytes = changed.as_ref().map_or_else(|| split.bytes_of(picture), |changed| changed.bytes());
        pixels.append_bytes(bytes, size[2], &mut numbers)?;
    }
    let labels = pictures.iter().map(|at| split.labels[*at]).collect();
    Ok(PictureBatch { pixels: numbers, size, labels })
}

impl PictureSplit {
    /// The pictures in their order, `together` in a batch; the last batch may have fewer.
    ///
    /// # Errors
    /// The numbers of `spec` do not fit the channels.
    pub fn batches(
        &self,
        spec: &PixelSpec,
        together: usize,
    ) -> Result<impl Iterator<Item = Result<PictureBatch, PictureDataError>> + '_, PictureDataError> {
        let pixels = pixels(spec)?;
        check_channels(&pixels, self.size[2])?;
        let starts = (0..self.len()).step_by(together.max(1));
        Ok(starts.map(move |start| {
            let pictures: Vec<usize> = (start..self.len().min(start + together)).collect();
            batch_of(self, &pictures, &pixels, None)
        }))
    }
}

/// The training batches of a recipe. A batch is a function of the seed, the epoch and its index.
///
/// With `remainder = "continue"` an epoch has as many batches as begin in it: batch k of the run
/// has the pictures k B to (k + 1) B - 1 of the endless sequence of epochs.
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
        // Of fewer pictures than a batch has, some epochs would have no batch.
        if pictures == 0 || (pictures < batch && remainder != PictureRemainder::Short) {
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

    /// Pictures of a batch in `epoch`, and those in the next. `order` is the order of `epoch`.
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
        let missing = match self.remainder {
            PictureRemainder::Continue => self.batch - here.len(),
            _ => 0,
        };
        let of_next = if missing == 0 { Vec::new() } else { self.order(epoch + 1)[..missing].to_vec() };
        (here, of_next)
    }

    /// One batch of an epoch.
    ///
    /// # Errors
    /// The augmentation does not fit a picture.
    pub fn batch(&self, epoch: u64, index: usize) -> Result<PictureBatch, PictureDataError> {
        self.of_order(epoch, index, &self.order(epoch))
    }

    fn of_order(&self, epoch: u64, index: usize, order: &[usize]) -> Result<PictureBatch, PictureDataError> {
        let (here, of_next) = self.pictures(epoch, index, order);
        let made = |pictures: &[usize], epoch: u64| {
            let varied = self.variation.as_ref().map(|variation| (variation, self.seed, epoch as u32));
            batch_of(self.train(), pictures, &self.pixels, varied)
        };
        let mut batch = made(&here, epoch)?;
        if !of_next.is_empty() {
            let rest = made(&of_next, epoch + 1)?;
            batch.pixels.extend(rest.pixels);
            batch.labels.extend(rest.labels);
        }
        Ok(batch)
    }

    /// The batches of an epoch from index `from` on of which `wanted` says yes, made on a thread of
    /// their own.
    pub fn ahead(
        self: &Arc<Self>,
        epoch: u64,
        from: u64,
        wanted: impl Fn(u64) -> bool + Send + 'static,
    ) -> Ahead<PictureBatch, PictureDataError> {
        let (pictures, order) = (self.clone(), self.order(epoch));
        let indices = (from..self.per_epoch(epoch) as u64).filter(move |index| wanted(*index));
        Ahead::new("pictures", indices.map(move |index| pictures.of_order(epoch, index as usize, &order)))
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
