//! Speed perturbation.

use std::sync::Arc;

use zoo_recipes::{KaiserBest, SpeedSpec};

use crate::audio::resample::{KaiserResampler, SincResampler};
use crate::random::RandomStream;

/// Kind of speed perturbation.
#[derive(Debug, Clone)]
pub(super) enum Speed {
    Same,
    Uniform { ratio: f64, filter: KaiserBest, rate: u32 },
    Choice(Arc<[KaiserResampler]>),
    Copies(Arc<[SincResampler]>),
}

impl Speed {
    pub(super) fn new(spec: Option<&SpeedSpec>, rate: u32) -> Self {
        match spec {
            None => Self::Same,
            Some(SpeedSpec::Uniform { ratio, filter }) => {
                Self::Uniform { ratio: *ratio, filter: *filter, rate }
            }
            Some(SpeedSpec::Choice { factors, filter }) => Self::Choice(
                factors
                    .iter()
                    .map(|factor| KaiserResampler::new(*filter, rate, times(rate, *factor)))
                    .collect(),
            ),
            // lhotse rounds, while OpenSeq2Seq truncates.
            Some(SpeedSpec::Copies { factors }) => Self::Copies(
                factors
                    .iter()
                    .map(|factor| {
                        SincResampler::new((f64::from(rate) * factor).round_ties_even() as u32, rate)
                    })
                    .collect(),
            ),
        }
    }

    /// Number of versions: the example and its copies.
    pub(super) fn versions(&self) -> usize {
        match self {
            Self::Copies(resamplers) => 1 + resamplers.len(),
            _ => 1,
        }
    }

    /// Number of samples of a version, for an utterance of `samples` samples.
    pub(super) fn version_length(&self, samples: usize, version: usize) -> usize {
        self.copy(version).map_or(samples, |resampler| resampler.length(samples))
    }

    /// The resampler of a version; `None` if the version is not a copy.
    fn copy(&self, version: usize) -> Option<&SincResampler> {
        match self {
            Self::Copies(resamplers) => resamplers.get(version.checked_sub(1)?),
            _ => None,
        }
    }

    pub(super) fn change(&self, samples: Vec<f32>, version: usize, mut stream: RandomStream) -> Vec<f32> {
        match self {
            Self::Same => samples,
            Self::Uniform { ratio, filter, rate } => {
                let factor = 1.0 + (2.0 * stream.unit() - 1.0) * ratio;
                KaiserResampler::new(*filter, *rate, times(*rate, factor)).resample(&samples)
            }
            Self::Choice(resamplers) => {
                resamplers[stream.below(resamplers.len() as u32) as usize].resample(&samples)
            }
            Self::Copies(_) => match self.copy(version) {
                Some(resampler) => resampler.resample(&samples),
                None => samples,
            },
        }
    }
}

/// OpenSeq2Seq's new rate, truncated to a whole number.
fn times(rate: u32, factor: f64) -> u32 {
    (f64::from(rate) * factor) as u32
}
