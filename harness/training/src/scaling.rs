//! Loss scaling: the loss is multiplied by a scale before the backward pass, and the gradients are
//! divided by it afterwards, so that small gradients do not underflow in half precision. An update
//! whose gradients are not finite is skipped.
//!
//! Published defects, and what this module does:
//! - OpenSeq2Seq does not check finiteness with its static scale. Here every update is checked.
//! - OpenSeq2Seq's `Backoff` starts at `scale_max`, so the scale can only fall at first. This is
//!   copied; a recipe may give `scale_init`.
//! - OpenSeq2Seq's `LogMax` counts an overflow as 2^log_max instead of log_max, which keeps the
//!   scale at its minimum for hundreds of updates. This is copied only where the recipe says
//!   `published_overflow_defect`.
//! - OpenSeq2Seq's `LogMax` uses the target exponent 16, whatever `log_max` says. Here `log_max` is
//!   used; published settings have 16.
//! - OpenSeq2Seq's `LogMax` reads the gradients after clipping. Here it reads them before clipping,
//!   like the check for finiteness.
//! - OpenSeq2Seq's `LogMax` becomes NaN permanently when all gradients are 0. Here such an update
//!   does not enter the statistics.

use serde::{Deserialize, Serialize};
use zoo_recipes::LossScalingSpec;

/// Reason why a scaler cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScalingError {
    /// A parameter is outside its range.
    #[error("loss scaling `{kind}`: {reason}\nhint: see `precision.loss_scaling` of the recipe")]
    Invalid {
        kind: &'static str,
        /// Description of the problem.
        reason: &'static str,
    },
    /// The checkpoint belongs to another scaler.
    #[error(
        "the checkpoint's loss scaler is `{found}`, the recipe's is `{expected}`\nhint: resume with the recipe that the run was started with"
    )]
    Other {
        /// Scaler of the recipe.
        expected: &'static str,
        /// Scaler of the checkpoint.
        found: &'static str,
    },
}

/// State of a scaler, as saved in checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScalerState {
    /// State of [`LossScalingSpec::None`], which is empty.
    None,
    /// State of [`LossScalingSpec::Static`], which is empty: the recipe has the scale.
    Static,
    /// State of [`LossScalingSpec::Backoff`].
    Backoff {
        /// Current scale.
        scale: f64,
        /// Number of attempted updates.
        iteration: u64,
        /// Iteration of the last overflow; -1 before the first.
        last_overflow: i64,
    },
    /// State of [`LossScalingSpec::Logmax`].
    Logmax {
        /// Current scale.
        scale: f64,
        /// Fast mean of log2 of the largest gradient, before bias correction.
        fast: f64,
        /// Slow mean of log2 of the largest gradient, before bias correction.
        slow: f64,
        /// Slow mean of its square.
        slow_square: f64,
        /// beta1 to the power of the number of observations.
        fast_left: f64,
        /// beta2 to the power of the number of observations.
        slow_left: f64,
    },
}

impl ScalerState {
    fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Static => "static",
            Self::Backoff { .. } => "backoff",
            Self::Logmax { .. } => "logmax",
        }
    }
}

/// A loss scaler: a specification and a state.
#[derive(Debug, Clone, PartialEq)]
pub struct LossScaler {
    spec: LossScalingSpec,
    state: ScalerState,
}

impl LossScaler {
    /// A scaler in its initial state.
    pub fn new(spec: &LossScalingSpec) -> Result<Self, ScalingError> {
        let state = match *spec {
            LossScalingSpec::None => ScalerState::None,
            LossScalingSpec::Static { scale } => {
                valid(scale > 0.0 && scale.is_finite(), "static", "`scale` must be above 0")?;
                ScalerState::Static
            }
            LossScalingSpec::Backoff { scale_init, scale_min, scale_max, step_factor, step_window } => {
                range("backoff", scale_min, scale_max)?;
                valid(
                    step_factor > 1.0 && step_factor.is_finite(),
                    "backoff",
                    "`step_factor` must be above 1",
                )?;
                valid(step_window > 0, "backoff", "`step_window` must be above 0")?;
                let scale = scale_init.unwrap_or(scale_max);
                valid(
                    (scale_min..=scale_max).contains(&scale),
                    "backoff",
                    "`scale_init` must lie between `scale_min` and `scale_max`",
                )?;
                ScalerState::Backoff { scale, iteration: 0, last_overflow: -1 }
            }
            LossScalingSpec::Logmax { scale_min, scale_max, beta1, beta2, .. } => {
                range("logmax", scale_min, scale_max)?;
                valid(
                    (0.0..1.0).contains(&beta1) && (0.0..1.0).contains(&beta2),
                    "logmax",
                    "`beta1` and `beta2` must lie in [0, 1)",
                )?;
                // The published scaler starts at 1, whatever its bounds are.
                ScalerState::Logmax {
                    scale: 1.0,
                    fast: 0.0,
                    slow: 0.0,
                    slow_square: 0.0,
                    fast_left: 1.0,
                    slow_left: 1.0,
                }
            }
        };
        Ok(Self { spec: spec.clone(), state })
    }

    /// Factor of the loss for the next update.
    pub fn scale(&self) -> f64 {
        match (&self.state, &self.spec) {
            (ScalerState::Backoff { scale, .. } | ScalerState::Logmax { scale, .. }, _) => *scale,
            (_, LossScalingSpec::Static { scale }) => *scale,
            _ => 1.0,
        }
    }

    /// Whether the scale can no longer be reduced after an overflow.
    pub fn is_exhausted(&self) -> bool {
        match self.spec {
            LossScalingSpec::None | LossScalingSpec::Static { .. } => true,
            LossScalingSpec::Backoff { scale_min, .. } | LossScalingSpec::Logmax { scale_min, .. } => {
                self.scale() <= scale_min
            }
        }
    }

    /// Updates the scale after an update. `finite`: whether all its gradients were finite.
    /// `largest`: their largest magnitude after unscaling; only `logmax` uses it.
    pub fn observe(&mut self, finite: bool, largest: f64) {
        match (&self.spec, &mut self.state) {
            (
                LossScalingSpec::Backoff { scale_min, scale_max, step_factor, step_window, .. },
                ScalerState::Backoff { scale, iteration, last_overflow },
            ) => {
                let now = i64::try_from(*iteration).unwrap_or(i64::MAX);
                if !finite {
                    *scale = (*scale / step_factor).clamp(*scale_min, *scale_max);
                    *last_overflow = now;
                } else if (now.saturating_sub(*last_overflow) as u64).is_multiple_of(*step_window) {
                    *scale = (*scale * step_factor).clamp(*scale_min, *scale_max);
                }
                *iteration += 1;
            }
            (
                LossScalingSpec::Logmax {
                    scale_min,
                    scale_max,
                    log_max,
                    beta1,
                    beta2,
                    overflow_std_dev,
                    published_overflow_defect,
                },
                ScalerState::Logmax { scale, fast, slow, slow_square, fast_left, slow_left },
            ) => {
                let exponent = match (finite, published_overflow_defect) {
                    (true, _) if largest <= 0.0 => return,
                    (true, _) => largest.log2(),
                    (false, false) => *log_max,
                    (false, true) => log_max.exp2(),
                };
                *fast = beta1 * *fast + (1.0 - beta1) * exponent;
                *slow = beta2 * *slow + (1.0 - beta2) * exponent;
                *slow_square = beta2 * *slow_square + (1.0 - beta2) * exponent * exponent;
                *fast_left *= beta1;
                *slow_left *= beta2;
                let mean = *fast / (1.0 - *fast_left);
                let slow_mean = *slow / (1.0 - *slow_left);
                let variance = *slow_square / (1.0 - *slow_left) - slow_mean * slow_mean;
                let cutoff = mean + overflow_std_dev * variance.max(0.0).sqrt();
                *scale = (log_max - cutoff).exp2().clamp(*scale_min, *scale_max);
            }
            _ => {}
        }
    }

    /// The state, for a checkpoint.
    pub fn state(&self) -> &ScalerState {
        &self.state
    }

    /// Restores a state from a checkpoint.
    pub fn restore(&mut self, state: ScalerState) -> Result<(), ScalingError> {
        if state.kind() != self.state.kind() {
            return Err(ScalingError::Other { expected: self.state.kind(), found: state.kind() });
        }
        self.state = state;
        Ok(())
    }
}

fn valid(holds: bool, kind: &'static str, reason: &'static str) -> Result<(), ScalingError> {
    if holds { Ok(()) } else { Err(ScalingError::Invalid { kind, reason }) }
}

fn range(kind: &'static str, min: f64, max: f64) -> Result<(), ScalingError> {
    valid(min > 0.0 && min <= max && max.is_finite(), kind, "0 < `scale_min` <= `scale_max` must hold")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(scale_init: Option<f64>, min: f64, max: f64, window: u64) -> LossScaler {
        let spec = LossScalingSpec::Backoff {
            scale_init,
            scale_min: min,
            scale_max: max,
            step_factor: 2.0,
            step_window: window,
        };
        LossScaler::new(&spec).unwrap()
    }

    fn trace(scaler: &mut LossScaler, finite: &[bool]) -> Vec<f64> {
        finite
            .iter()
            .map(|&finite| {
                scaler.observe(finite, 1.0);
                scaler.scale()
            })
            .collect()
    }

    #[test]
    fn backoff_halves_on_overflow_and_doubles_after_a_clean_window() {
        let mut scaler = backoff(Some(8.0), 1.0, 16.0, 3);
        // Iterations start at 0, and the last overflow is -1 at first, so the third clean update
        // raises the scale.
        let found =
            trace(&mut scaler, &[true, true, true, true, false, true, true, true, true, true, true, true]);
        assert_eq!(found, [8.0, 8.0, 16.0, 16.0, 8.0, 8.0, 8.0, 16.0, 16.0, 16.0, 16.0, 16.0]);
        let found = trace(&mut scaler, &[false; 6]);
        assert_eq!(found, [8.0, 4.0, 2.0, 1.0, 1.0, 1.0]);
        assert!(scaler.is_exhausted());
    }

    #[test]
    fn published_settings_grow_when_their_sources_say() {
        // NVIDIA's GNMT: 8192, doubled after 128 clean updates.
        let mut gnmt = backoff(Some(8192.0), 1.0, 65536.0, 128);
        let scales = trace(&mut gnmt, &[true; 256]);
        assert_eq!((scales[126], scales[127], scales[254], scales[255]), (8192.0, 16384.0, 16384.0, 32768.0));
        // OpenSeq2Seq: starts at the maximum; the first growth is due at the 2000th clean update
        // and is clipped.
        let mut openseq2seq = backoff(None, 1.0, 16384.0, 2000);
        assert_eq!(openseq2seq.scale(), 16384.0);
        assert_eq!(trace(&mut openseq2seq, &[false])[0], 8192.0);
        let scales = trace(&mut openseq2seq, &[true; 2000]);
        assert_eq!((scales[1998], scales[1999]), (8192.0, 16384.0));
    }

    fn logmax(defect: bool) -> LossScaler {
        LossScaler::new(&LossScalingSpec::Logmax {
            scale_min: 1.0,
            scale_max: 16384.0,
            log_max: 16.0,
            beta1: 0.99,
            beta2: 0.999,
            overflow_std_dev: 3.09,
            published_overflow_defect: defect,
        })
        .unwrap()
    }

    #[test]
    fn logmax_puts_a_steady_largest_gradient_at_the_target_exponent() {
        let mut scaler = logmax(false);
        assert_eq!(scaler.scale(), 1.0);
        for _ in 0..10 {
            scaler.observe(true, 64.0);
        }
        // Without a spread: 2^(16 - 6).
        assert!((scaler.scale() - 1024.0).abs() < 1e-2, "{}", scaler.scale());
    }

    #[test]
    fn logmax_takes_its_margin_from_the_spread() {
        let mut scaler = logmax(false);
        scaler.observe(true, 4.0);
        scaler.observe(true, 16.0);
        // By hand: fast = (0.99*0.01*2 + 0.01*4)/(1 - 0.99^2) = 3.0050251..., slow mean =
        // (0.999*2 + 4)/(1.999) = 3.00050025, mean square = (0.999*4 + 16)/1.999 = 10.00300150,
        // sigma = sqrt(10.0030015 - 9.00300175) = 0.99999987.
        let expected = (16.0f64 - (3.005_025_125_6 + 3.09 * 0.999_999_874_9)).exp2();
        assert!((scaler.scale() / expected - 1.0).abs() < 1e-6, "{} {expected}", scaler.scale());
    }

    #[test]
    fn logmax_answers_an_overflow_mildly_unless_the_published_defect_is_asked_for() {
        let (mut mended, mut published) = (logmax(false), logmax(true));
        for scaler in [&mut mended, &mut published] {
            for _ in 0..50 {
                scaler.observe(true, 4.0);
            }
            scaler.observe(false, f64::INFINITY);
        }
        assert!(mended.scale() > 16.0, "{}", mended.scale());
        assert_eq!(published.scale(), 1.0);
        for scaler in [&mut mended, &mut published] {
            for _ in 0..300 {
                scaler.observe(true, 4.0);
            }
        }
        assert!(mended.scale() > 100.0);
        assert_eq!(published.scale(), 1.0);
    }

    #[test]
    fn logmax_survives_gradients_that_are_all_zero() {
        let mut scaler = logmax(false);
        scaler.observe(true, 4.0);
        let before = scaler.clone();
        scaler.observe(true, 0.0);
        assert_eq!(scaler, before);
    }

    #[test]
    fn a_state_goes_through_json_and_fits_its_own_kind_only() {
        let mut scaler = logmax(false);
        scaler.observe(true, 0.37);
        let json = serde_json::to_string(scaler.state()).unwrap();
        let mut other = logmax(false);
        other.restore(serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(other, scaler);
        let mut wrong = backoff(None, 1.0, 2.0, 1);
        assert_eq!(
            wrong.restore(scaler.state().clone()),
            Err(ScalingError::Other { expected: "backoff", found: "logmax" })
        );
    }
}
