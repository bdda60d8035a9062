//! Augmentation of training pictures. Every random number is a function of the seed, the step and
//! the element alone, and does not depend on order or threads.

use super::crop::{RandomCrop, RandomResizedCrop};
use super::error::ShapeError;
use super::picture::Picture;
use crate::random::{Purpose, RandomStream};

/// Identifies the random numbers for one picture at one step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Seed of the run.
    pub seed: u64,
    /// The step at which the picture is augmented, below 2^24: usually the epoch.
    pub step: u32,
    /// The picture's number in its data set.
    pub element: u32,
}

impl Turn {
    /// The random numbers of this turn for one purpose.
    pub fn stream(self, purpose: Purpose) -> RandomStream {
        RandomStream::of_element(self.seed, purpose, self.step, self.element)
    }
}

/// How a training picture is cropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VariedCrop {
    /// The whole picture.
    Whole,
    /// A window of fixed size.
    Random(RandomCrop),
    /// A window of random area and ratio, resized.
    Resized(RandomResizedCrop),
}

/// A crop, then a horizontal flip: the order of torchvision's reference pipelines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation {
    crop: VariedCrop,
    flip: f64,
}

impl Variation {
    /// A variation that flips with probability `flip`.
    ///
    /// # Errors
    /// [`ShapeError::Number`] if `flip` is not a probability.
    pub fn new(crop: VariedCrop, flip: f64) -> Result<Self, ShapeError> {
        if (0.0..=1.0).contains(&flip) {
            Ok(Self { crop, flip })
        } else {
            let expected = "not a probability from 0 to 1";
            Err(ShapeError::Number { name: "the probability of a flip", value: flip, expected })
        }
    }

    /// Augments the picture with the random numbers of `turn`.
    ///
    /// # Errors
    /// [`ShapeError::Crop`] or [`ShapeError::Size`], if the crop does not fit the picture.
    pub fn apply(&self, picture: &Picture, turn: Turn) -> Result<Picture, ShapeError> {
        let mut stream = turn.stream(Purpose::Crop);
        let cropped = match &self.crop {
            VariedCrop::Whole => picture.clone(),
            VariedCrop::Random(crop) => {
                picture.crop(crop.window(picture.height(), picture.width(), &mut stream)?)
            }
            VariedCrop::Resized(crop) => crop.apply(picture, &mut stream)?,
        };
        let flipped = turn.stream(Purpose::Flip).unit() < self.flip;
        Ok(if flipped { cropped.flipped() } else { cropped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Filter;
    use rayon::prelude::*;

    fn picture() -> Picture {
        Picture::new(16, 20, 1, (0..320).map(|n| (n % 251) as u8).collect()).unwrap()
    }

    #[test]
    fn a_turn_sees_the_same_picture_on_any_number_of_threads_and_in_any_order() {
        let crop = RandomResizedCrop::new(8, 8, (0.08, 1.0), (0.75, 4.0 / 3.0), Filter::Bilinear).unwrap();
        let variation = Variation::new(VariedCrop::Resized(crop), 0.5).unwrap();
        let picture = picture();
        let seen = |element| variation.apply(&picture, Turn { seed: 5, step: 3, element }).unwrap();
        let in_turn: Vec<Picture> = (0..200).map(seen).collect();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let backwards: Vec<Picture> = pool.install(|| (0..200).into_par_iter().rev().map(seen).collect());
            assert!(in_turn.iter().eq(backwards.iter().rev()), "{threads} threads");
        }
    }

    #[test]
    fn seed_step_and_element_each_change_the_draws() {
        let variation =
            Variation::new(VariedCrop::Random(RandomCrop::new(16, 20, 40).unwrap()), 0.0).unwrap();
        let seen = |seed, step, element| variation.apply(&picture(), Turn { seed, step, element }).unwrap();
        let base = seen(1, 1, 1);
        assert_eq!(seen(1, 1, 1), base);
        for other in [seen(2, 1, 1), seen(1, 2, 1), seen(1, 1, 2)] {
            assert_ne!(other, base);
        }
    }

    #[test]
    fn half_of_the_pictures_are_flipped() {
        let variation = Variation::new(VariedCrop::Whole, 0.5).unwrap();
        let (picture, flipped) = (picture(), picture().flipped());
        let count = (0..2000)
            .filter(|&element| {
                let seen = variation.apply(&picture, Turn { seed: 1, step: 0, element }).unwrap();
                assert!(seen == picture || seen == flipped);
                seen == flipped
            })
            .count();
        // The standard deviation is 22.
        assert!(count.abs_diff(1000) < 120, "{count}");
        assert!(Variation::new(VariedCrop::Whole, 1.5).is_err());
        assert!(Variation::new(VariedCrop::Whole, f64::NAN).is_err());
    }
}
