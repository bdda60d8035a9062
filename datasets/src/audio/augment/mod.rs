//! Augmentation of training examples. Every random number is a function of the seed, the epoch and
//! the utterance alone, and does not depend on order or threads.

mod masks;
mod speed;

use zoo_recipes::{AugmentationSpec, NoiseSpec};

use self::masks::Masks;
use self::speed::Speed;
use super::front_end::{Features, FrontEnd, SpecError};
use crate::random::{Purpose, RandomStream};

/// Identifies the random numbers for an utterance in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Seed of the run.
    pub seed: u64,
    /// Epoch, below 2^24; 0 for evaluation.
    pub epoch: u32,
    /// Number of the utterance in its split.
    pub utterance: u32,
}

impl Turn {
    pub(super) fn stream(self, purpose: Purpose) -> RandomStream {
        RandomStream::of_element(self.seed, purpose, self.epoch, self.utterance)
    }
}

/// A front end with the augmentation of its training examples. The steps follow the source's order:
/// scale, speed, noise, dither, features, normalisation, masks.
#[derive(Debug, Clone)]
pub struct Extractor {
    front_end: FrontEnd,
    speed: Speed,
    noise: Option<NoiseSpec>,
    masks: Masks,
}

impl Extractor {
    /// Plans the augmentation before and after a front end.
    ///
    /// # Errors
    /// What is wrong with the spec's values.
    pub fn new(front_end: FrontEnd, spec: &AugmentationSpec) -> Result<Self, SpecError> {
        let width = u32::try_from(front_end.width()).unwrap_or(u32::MAX);
        SpecError::unless_none(spec.problems(width))?;
        let speed = Speed::new(spec.speed.as_ref(), front_end.rate());
        Ok(Self { front_end, speed, noise: spec.noise, masks: Masks::new(spec.masks.unwrap_or_default()) })
    }

    /// The front end.
    pub fn front_end(&self) -> &FrontEnd {
        &self.front_end
    }

    /// Number of training examples per utterance: the utterance itself and its copies at other
    /// speeds.
    pub fn versions(&self) -> usize {
        self.speed.versions()
    }

    /// Number of samples of an utterance's version before any random change. Only a randomly drawn
    /// speed changes it.
    pub fn version_samples(&self, samples: usize, version: usize) -> usize {
        self.speed.version_length(samples, version)
    }

    /// Features of a training example, from samples in [-1, 1), in one of its [`Self::versions`] (0
    /// is the utterance itself). For versions to draw different random numbers, their turns must
    /// have different utterance numbers.
    pub fn training(&self, samples: &[f32], version: usize, turn: Turn) -> Features {
        let waveform = self.waveform(samples, version, turn);
        let mut features = self.front_end.of_scaled(waveform, Some(turn.stream(Purpose::Dither)));
        self.masks.apply(&mut features, turn.stream(Purpose::Masks));
        features
    }

    /// The waveform of a training example, in the front end's scale.
    fn waveform(&self, samples: &[f32], version: usize, turn: Turn) -> Vec<f32> {
        let mut waveform =
            self.speed.change(self.front_end.scaled(samples), version, turn.stream(Purpose::Speed));
        if let Some(NoiseSpec { min_db, max_db }) = self.noise {
            let mut stream = turn.stream(Purpose::Noise);
            let level = min_db + stream.below(max_db.abs_diff(min_db)) as i32;
            stream.add_normal(&mut waveform, 10_f64.powf(f64::from(level) / 20.0));
        }
        waveform
    }
}

#[cfg(test)]
mod tests;
