//! Bootstrap intervals and the paired bootstrap, with the draws and computation of sacreBLEU 2.6.0.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zoo_recipes::spec::Direction;

use super::numpy_random::NumpyRandom;
use super::segments::SegmentStatistics;
use crate::metrics::contract::{Arithmetic, Entry, Resampling, ResamplingError, ScoreError};

/// A two-sided percentile interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Confidence level: 0.95.
    pub confidence: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Mean over the resamples.
    pub mean: f64,
    /// Half the width: the number that sacreBLEU prints after `±`.
    pub half_width: f64,
    /// Resampling parameters of the draw.
    pub resampling: Resampling,
}

impl std::fmt::Display for Interval {
    /// `μ = 57.32 ± 0.79`, in sacreBLEU's format.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "μ = {:.2} ± {:.2}", self.mean, self.half_width)
    }
}

impl Interval {
    /// Interval of the scores: sorts them and cuts off 1/40 at each end.
    fn of(scores: &mut [f64], resampling: Resampling) -> Self {
        scores.sort_by(f64::total_cmp);
        let tail = scores.len() / 40;
        let (lower, upper) = (scores[tail], scores[scores.len() - tail - 1]);
        let (mean, half_width) = (mean(scores), 0.5 * (upper - lower));
        Interval { confidence: 0.95, lower, upper, mean, half_width, resampling }
    }
}

/// A system compared with a baseline on the same segments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedBootstrap {
    /// Score of the baseline.
    pub baseline: f64,
    /// Score of the system.
    pub system: f64,
    /// Two-sided p-value of "no difference".
    pub p_value: f64,
    /// Interval of the baseline's score.
    pub baseline_interval: Interval,
    /// Interval of the system's score.
    pub system_interval: Interval,
}

/// How much better a system is than its baseline, over resampled test sets.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedGain {
    /// The metric. Gains are in its unit and are positive if the system is better, for either
    /// direction of the metric.
    pub metric: &'static Entry,
    /// Gain on the original test set; the mean over pairs.
    pub observed: f64,
    /// Mean over the resamples.
    pub mean: f64,
    /// Standard deviation over the resamples: the uncertainty due to the test set.
    pub standard_deviation: f64,
    /// Resampling parameters of the draw.
    pub resampling: Resampling,
    sorted: Vec<f64>,
}

impl PairedGain {
    /// One-sided lower bound: with the given confidence the gain is at least this. A percentile,
    /// rounded outwards.
    pub fn lower_bound(&self, confidence: f64) -> Result<f64, ScoreError> {
        Ok(self.sorted[self.tail(confidence)?])
    }

    /// One-sided upper bound: with the given confidence the gain is at most this.
    pub fn upper_bound(&self, confidence: f64) -> Result<f64, ScoreError> {
        Ok(self.sorted[self.sorted.len() - 1 - self.tail(confidence)?])
    }

    /// Number of resamples beyond the bound. With B resamples, the k-th smallest has k / (B + 1)
    /// below it.
    fn tail(&self, confidence: f64) -> Result<usize, ResamplingError> {
        if !(0.5..1.0).contains(&confidence) {
            return Err(ResamplingError::Confidence(confidence));
        }
        // The slack keeps 0.05 x 1000 from becoming 49.999.
        let rank = ((1.0 - confidence) * (self.sorted.len() + 1) as f64 + 1e-9).floor() as usize;
        let least = (1.0 / (1.0 - confidence)).ceil() as usize;
        rank.checked_sub(1).ok_or(ResamplingError::TooFewSamples { samples: self.sorted.len(), least })
    }
}

/// A 95 % interval of the score. For sacreBLEU's metrics it equals sacreBLEU's to the printed
/// digits.
pub fn interval(statistics: &SegmentStatistics, resampling: Resampling) -> Result<Interval, ScoreError> {
    let precision = statistics.signature().convention.metric().precision();
    let mut scores = resampled(&[statistics], resampling, precision, |values| values[0])?;
    Ok(Interval::of(&mut scores, resampling))
}

/// sacreBLEU's paired bootstrap test. The p-value is the share of resamples whose absolute
/// difference exceeds its own mean by more than the real difference, with one added to numerator
/// and denominator. Systems that are equal on every resample therefore get the smallest possible
/// p-value, so check the difference first.
pub fn paired_bootstrap(
    baseline: &SegmentStatistics,
    system: &SegmentStatistics,
    resampling: Resampling,
) -> Result<PairedBootstrap, ScoreError> {
    baseline.pairs_with(system)?;
    let precision = baseline.signature().convention.metric().precision();
    let both = resampled(&[baseline, system], resampling, precision, |values| (values[0], values[1]))?;
    let (mut theirs, mut ours): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let differences: Vec<f64> = theirs.iter().zip(&ours).map(|(b, s)| (s - b).abs()).collect();
    let (real, centre) = ((baseline.value() - system.value()).abs(), mean(&differences));
    let beyond = differences.iter().filter(|d| **d - centre > real).count();
    Ok(PairedBootstrap {
        baseline: baseline.value(),
        system: system.value(),
        p_value: (beyond + 1) as f64 / (differences.len() + 1) as f64,
        baseline_interval: Interval::of(&mut theirs, resampling),
        system_interval: Interval::of(&mut ours, resampling),
    })
}

/// The gain of systems over their baselines (e.g. mixed precision over FP32, one pair per seed).
/// Every resample draws the same segments for all systems and takes the mean gain over the pairs.
/// The result contains the uncertainty of the test set; the caller accounts for that of the seeds.
pub fn paired_gain(
    pairs: &[(&SegmentStatistics, &SegmentStatistics)],
    resampling: Resampling,
) -> Result<PairedGain, ScoreError> {
    let (first, _) = pairs.first().ok_or(ResamplingError::NoPairs)?;
    for (baseline, system) in pairs {
        first.pairs_with(baseline)?;
        first.pairs_with(system)?;
    }
    let metric = first.signature().convention.entry();
    let sign = if metric.direction == Direction::Higher { 1.0 } else { -1.0 };
    let all: Vec<&SegmentStatistics> = pairs.iter().flat_map(|(b, s)| [*b, *s]).collect();
    let gain =
        |values: &[f64]| sign * values.chunks_exact(2).map(|v| v[1] - v[0]).sum::<f64>() / pairs.len() as f64;
    let values: Vec<f64> = all.iter().map(|s| s.value()).collect();
    let mut sorted = resampled(&all, resampling, Arithmetic::Double, gain)?;
    sorted.sort_by(f64::total_cmp);
    let mean = mean(&sorted);
    let squares: f64 = sorted.iter().map(|g| (g - mean).powi(2)).sum();
    let standard_deviation = (squares / (sorted.len() - 1) as f64).sqrt();
    Ok(PairedGain { metric, observed: gain(&values), mean, standard_deviation, resampling, sorted })
}

/// Applies `combine` to the scores of all systems on each resample, in the order of the draws. The
/// draws are serial and the scoring is parallel over resamples, so the result does not depend on
/// the number of threads.
fn resampled<T: Send>(
    systems: &[&SegmentStatistics],
    resampling: Resampling,
    arithmetic: Arithmetic,
    combine: impl Fn(&[f64]) -> T + Sync,
) -> Result<Vec<T>, ResamplingError> {
    let (samples, segments) = (resampling.samples, systems[0].len());
    if samples < 40 {
        return Err(ResamplingError::TooFewSamples { samples, least: 40 });
    }
    if segments < 2 {
        return Err(ResamplingError::TooFewSegments { segments });
    }
    let Some(n) = u32::try_from(segments).ok().filter(|_| samples <= 100_000) else {
        return Err(ResamplingError::TooMany { samples, segments });
    };
    let mut random = NumpyRandom::new(resampling.seed);
    let mut results = Vec::with_capacity(samples);
    let chunk = (1 << 20) / segments + 1;
    let mut indices: Vec<u32> = Vec::new();
    while results.len() < samples {
        let rows = chunk.min(samples - results.len());
        indices.clear();
        indices.extend((0..rows * segments).map(|_| random.below(n)));
        results.par_extend(indices.par_chunks_exact(segments).map_init(Vec::new, |sums, drawn| {
            let values: Vec<f64> =
                systems.iter().map(|s| s.resampled_value(drawn, sums, arithmetic)).collect();
            combine(&values)
        }));
    }
    Ok(results)
}

/// Mean by compensated summation.
fn mean(values: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for &x in values {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    (sum + lost) / values.len() as f64
}
