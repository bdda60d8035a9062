//! Resampling: its parameters, and why there is no interval.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why there is no interval.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ResamplingError {
    /// Too few resamples for the tails of the interval.
    #[error("{samples} resamples are too few\nhint: an interval at this confidence needs at least {least}")]
    TooFewSamples {
        /// Requested number of resamples.
        samples: usize,
        /// Smallest sufficient number.
        least: usize,
    },
    /// Too many resamples to index or store.
    #[error(
        "{samples} resamples of {segments} segments are too many\nhint: 1,000 is usual, 100,000 is the limit"
    )]
    TooMany {
        /// Requested number of resamples.
        samples: usize,
        /// Number of segments.
        segments: usize,
    },
    /// A single segment always resamples to itself.
    #[error(
        "{segments} segment(s) cannot be resampled\nhint: an interval needs at least 2; score without an interval"
    )]
    TooFewSegments {
        /// Number of segments given.
        segments: usize,
    },
    /// The statistics are not of the same segments.
    #[error(
        "the two systems are not on the same segments ({left} and {right} of them, or other references)\nhint: a paired test needs the same references in the same order"
    )]
    NotPaired {
        /// Number of segments of the first system.
        left: usize,
        /// Number of segments of the second system.
        right: usize,
    },
    /// A confidence outside the valid range.
    #[error("confidence {0} is not between 0.5 and 1\nhint: 0.95 is usual")]
    Confidence(f64),
    /// There are no pairs to compare.
    #[error("there is no pair of systems to compare\nhint: give at least one (baseline, system) pair")]
    NoPairs,
}

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resampling {
    /// Number of resamples.
    pub samples: usize,
    /// Seed of NumPy's `default_rng`.
    pub seed: u64,
}

impl Default for Resampling {
    /// sacreBLEU's defaults: 1,000 resamples, seed 12345.
    fn default() -> Self {
        Resampling { samples: 1000, seed: 12345 }
    }
}
