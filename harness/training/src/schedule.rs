//! Learning-rate schedules.
//!
//! Every schedule except the plateau, which depends on validation, is a function of `s`, the number
//! of updates done so far: the first update uses `lr(0)`. OpenSeq2Seq counts this way (its global
//! step is read before it is incremented), and so does fairseq (the rate of the next update is set
//! from the updates done). Neither counts an update that was skipped for an overflow.

use zoo_recipes::{ScheduleSpec, WarmupStart};

/// Reason why a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// The length of the decay depends on the length of the run, which is unknown.
    #[error(
        "schedule `{0}` has no `decay_updates`, and the run's number of updates is not known\nhint: give `train.max_updates`, or `train.schedule.decay_updates` where the schedule has it"
    )]
    UnknownLength(&'static str),
    /// A setting makes the formula meaningless.
    #[error("schedule `{kind}`: {reason}\nhint: see `train.schedule` of the recipe")]
    Invalid {
        kind: &'static str,
        /// Description of the problem.
        reason: String,
    },
}

/// A schedule with all its lengths known.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    spec: ScheduleSpec,
    decay: f64,
    begin: u64,
    falls: u32,
}

impl Schedule {
    /// Completes the settings of a recipe. `last_update` is the length of the run in updates, if
    /// known: the decay of a recipe without `decay_updates` ends there. As in OpenSeq2Seq, the
    /// polynomial and cosine decays then begin no earlier than the end of the warm-up, and are
    /// shortened by their begin. Neither applies when `decay_updates` is given.
    pub fn new(spec: &ScheduleSpec, last_update: Option<u64>) -> Result<Self, ScheduleError> {
        let open =
            |kind, given: Option<u64>, begin: u64, warmup: u64, shortens: bool| match (given, last_update) {
                (Some(d), _) => Ok((d, begin)),
                (None, Some(last)) if shortens => {
                    let begin = begin.max(warmup);
                    Ok((last.saturating_sub(begin), begin))
                }
                (None, Some(last)) => Ok((last, begin)),
                (None, None) => Err(ScheduleError::UnknownLength(kind)),
            };
        let invalid = |kind, reason: &str| Err(ScheduleError::Invalid { kind, reason: reason.to_string() });
        let (kind, (decay, begin)) = match spec {
            ScheduleSpec::Fixed { .. } => ("fixed", (1, 0)),
            ScheduleSpec::Inv { .. } => ("inv", (1, 0)),
            ScheduleSpec::TransformerPolicy { warmup_updates, width, .. } => {
                if *warmup_updates == 0 || *width == 0 {
                    return invalid("transformer-policy", "`warmup_updates` and `width` must be above 0");
                }
                ("transformer-policy", (1, 0))
            }
            ScheduleSpec::InverseSqrt { warmup_updates, .. } => {
                if *warmup_updates == 0 {
                    return invalid("inverse-sqrt", "`warmup_updates` must be above 0");
                }
                ("inverse-sqrt", (1, 0))
            }
            ScheduleSpec::ExpDecay { decay_updates, begin_decay_at, .. } => {
                ("exp-decay", open("exp-decay", *decay_updates, *begin_decay_at, 0, false)?)
            }
            ScheduleSpec::PolyDecay { decay_updates, begin_decay_at, warmup_updates, .. } => {
                ("poly-decay", open("poly-decay", *decay_updates, *begin_decay_at, *warmup_updates, true)?)
            }
            ScheduleSpec::CosineDecay { decay_updates, begin_decay_at, warmup_updates, .. } => (
                "cosine-decay",
                open("cosine-decay", *decay_updates, *begin_decay_at, *warmup_updates, true)?,
            ),
            ScheduleSpec::InvPolyDecay { decay_updates, power, lr, .. } => {
                if *power <= 0.0 || *lr <= 0.0 {
                    return invalid("inv-poly-decay", "`lr` and `power` must be above 0");
                }
                ("inv-poly-decay", open("inv-poly-decay", *decay_updates, 0, 0, false)?)
            }
            ScheduleSpec::WarmupSteps { hold, steps, .. } => {
                let Some(last) = last_update else {
                    return Err(ScheduleError::UnknownLength("warmup-steps"));
                };
                if *steps == 0 {
                    return invalid("warmup-steps", "`steps` must be above 0");
                }
                let begin = (hold * last as f64) as u64;
                ("warmup-steps", ((last.saturating_sub(begin) / steps).max(1), begin))
            }
            ScheduleSpec::Plateau { .. } => ("plateau", (1, 0)),
            ScheduleSpec::PiecewiseConstant { boundaries, factors, .. } => {
                if boundaries.len() != factors.len() {
                    return invalid("piecewise-constant", "`boundaries` and `factors` must be of one length");
                }
                if boundaries.windows(2).any(|pair| pair[0] >= pair[1]) {
                    return invalid("piecewise-constant", "`boundaries` must rise");
                }
                ("piecewise-constant", (1, 0))
            }
        };
        if decay == 0 {
            return invalid(kind, "the decay is 0 updates long");
        }
        Ok(Self { spec: spec.clone(), decay: decay as f64, begin, falls: 0 })
    }

    /// How often the plateau schedule has reduced the rate.
    pub fn falls(&self) -> u32 {
        self.falls
    }

    /// Restores the number of reductions.
    pub fn restore(&mut self, falls: u32) {
        self.falls = falls;
    }

    /// Updates a plateau schedule after a validation. `since_best` is the number of validations
    /// since the best one (0: this is the best).
    pub fn validated(&mut self, since_best: u32) {
        if let ScheduleSpec::Plateau { patience, keeps_falling, .. } = self.spec {
            let stuck = since_best > 0 && since_best.is_multiple_of(patience.saturating_add(1));
            self.falls += u32::from(stuck || keeps_falling && self.falls > 0);
        }
    }

    /// Whether the rate has fallen below the minimum.
    pub fn is_over(&self) -> bool {
        matches!(self.spec, ScheduleSpec::Plateau { min_lr, .. } if self.lr(0) < min_lr)
    }

    /// Learning rate of the next update after `update` updates.
    pub fn lr(&self, update: u64) -> f64 {
        let s = update as f64;
        match &self.spec {
            ScheduleSpec::Fixed { lr } => *lr,
            ScheduleSpec::TransformerPolicy { lr, warmup_updates, width, max_lr, coefficient } => {
                let w = *warmup_updates as f64;
                let rate = coefficient
                    * lr
                    * f64::from(*width).powf(-0.5)
                    * ((s + 1.0) * w.powf(-1.5)).min((s + 1.0).powf(-0.5));
                max_lr.map_or(rate, |cap| rate.min(cap))
            }
            ScheduleSpec::InverseSqrt { lr, warmup_updates, warmup_init_lr } => {
                let w = *warmup_updates as f64;
                if update < *warmup_updates {
                    warmup_init_lr + s * (lr - warmup_init_lr) / w
                } else {
                    lr * w.sqrt() / s.sqrt()
                }
            }
            ScheduleSpec::ExpDecay { lr, decay_rate, staircase, min_lr, warmup_updates, .. } => {
                let rate = match update.checked_sub(self.begin) {
                    _ if update + 1 < *warmup_updates => lr * (s + 2.0) / (*warmup_updates as f64 + 1.0),
                    None => *lr,
                    Some(since) => {
                        let exponent = since as f64 / self.decay;
                        lr * decay_rate.powf(if *staircase { exponent.floor() } else { exponent })
                    }
                };
                rate.max(*min_lr)
            }
            ScheduleSpec::PolyDecay { lr, power, min_lr, warmup_updates, .. } => {
                let rate = warm(*lr, s, *warmup_updates, WarmupStart::Zero);
                match update.checked_sub(self.begin) {
                    None => rate,
                    Some(since) => {
                        let left = 1.0 - (since as f64).min(self.decay) / self.decay;
                        (rate - min_lr) * left.powf(*power) + min_lr
                    }
                }
            }
            ScheduleSpec::CosineDecay { lr, min_lr_ratio, warmup_updates, warmup_start, .. } => {
                let rate = warm(*lr, s, *warmup_updates, *warmup_start);
                match update.checked_sub(self.begin) {
                    None => rate,
                    Some(since) => {
                        let share = (since as f64).min(self.decay) / self.decay;
                        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
                        rate * ((1.0 - min_lr_ratio) * cosine + min_lr_ratio)
                    }
                }
            }
            ScheduleSpec::InvPolyDecay { lr, min_lr, power, .. } => {
                // The source keeps the floor away from 0, where the formula has no value.
                let floor = min_lr.max(1e-8);
                let slope = ((lr / floor).powf(1.0 / power) - 1.0) / self.decay;
                lr / (1.0 + slope * s).powf(*power)
            }
            ScheduleSpec::WarmupSteps { lr, warmup_updates, steps, decay_rate, .. } => {
                let w = *warmup_updates as f64;
                match update.checked_sub(self.begin) {
                    _ if *warmup_updates > 0 && update <= *warmup_updates => lr * 0.01f64.powf((w - s) / w),
                    None => *lr,
                    Some(since) => {
                        let done = (since as f64 / self.decay).floor() + 1.0;
                        lr * decay_rate.powf(done.min(*steps as f64))
                    }
                }
            }
            ScheduleSpec::Plateau { lr, factor, .. } => lr * factor.powi(self.falls as i32),
            ScheduleSpec::Inv { lr, gamma, power } => lr * (1.0 + gamma * update as f64).powf(-power),
            ScheduleSpec::PiecewiseConstant { lr, boundaries, factors } => {
                // TensorFlow's intervals are closed on the right: the boundary itself still has the
                // old factor.
                match boundaries.iter().rposition(|&boundary| update > boundary) {
                    None => *lr,
                    Some(last) => lr * factors[last],
                }
            }
        }
    }
}

/// Linear from 0, or from one step above 0, to `lr`.
fn warm(lr: f64, s: f64, warmup: u64, start: WarmupStart) -> f64 {
    let w = warmup as f64;
    match start {
        _ if s >= w => lr,
        WarmupStart::Zero => lr * s / w,
        WarmupStart::Step => lr * (s + 1.0) / (w + 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1e-3), "{found} is not {expected}");
    }

    #[test]
    fn transformer_policy_rises_to_its_warm_up_and_falls_as_the_inverse_root() {
        let spec = ScheduleSpec::TransformerPolicy {
            lr: 2.0,
            warmup_updates: 8000,
            width: 512,
            max_lr: None,
            coefficient: 1.0,
        };
        let schedule = Schedule::new(&spec, None).unwrap();
        // By hand: 2 / sqrt(512) / 8000^1.5 = 0.08838834764831845 / 715541.7527999327.
        near(schedule.lr(0), 1.235264712030092e-7);
        near(schedule.lr(7999), 0.08838834764831845 / 8000f64.sqrt());
        near(schedule.lr(31_999), 0.08838834764831845 / 32_000f64.sqrt());
        assert!(schedule.lr(7998) < schedule.lr(7999) && schedule.lr(8000) < schedule.lr(7999));
    }

    #[test]
    fn transformer_policy_is_capped() {
        let spec = ScheduleSpec::TransformerPolicy {
            lr: 9.0,
            warmup_updates: 4000,
            width: 512,
            max_lr: Some(1e-3),
            coefficient: 1.0,
        };
        let schedule = Schedule::new(&spec, None).unwrap();
        // 9 / sqrt(512) / sqrt(4000) = 6.3e-3 uncapped.
        near(schedule.lr(3999), 1e-3);
        near(schedule.lr(0), 9.0 / 512f64.sqrt() / 4000f64.powf(1.5));
    }

    #[test]
    fn inverse_sqrt_starts_at_the_initial_rate_and_peaks_at_the_warm_up() {
        let spec = ScheduleSpec::InverseSqrt { lr: 0.005, warmup_updates: 2000, warmup_init_lr: 1e-7 };
        let schedule = Schedule::new(&spec, None).unwrap();
        near(schedule.lr(0), 1e-7);
        near(schedule.lr(1000), 1e-7 + 0.5 * (0.005 - 1e-7));
        near(schedule.lr(2000), 0.005);
        near(schedule.lr(8000), 0.0025);
    }

    #[test]
    fn exponential_decay_holds_then_steps_and_stops_at_its_floor() {
        let spec = ScheduleSpec::ExpDecay {
            lr: 8e-4,
            decay_updates: Some(17_000),
            decay_rate: 0.5,
            staircase: true,
            begin_decay_at: 170_000,
            min_lr: 5e-7,
            warmup_updates: 0,
        };
        let schedule = Schedule::new(&spec, None).unwrap();
        near(schedule.lr(0), 8e-4);
        near(schedule.lr(186_999), 8e-4);
        near(schedule.lr(187_000), 4e-4);
        near(schedule.lr(170_000 + 17_000 * 20), 5e-7);
    }

    #[test]
    fn exponential_decay_without_a_length_ends_with_the_run_and_is_not_shortened() {
        let spec = ScheduleSpec::ExpDecay {
            lr: 1.0,
            decay_updates: None,
            decay_rate: 0.25,
            staircase: false,
            begin_decay_at: 10,
            min_lr: 0.0,
            warmup_updates: 0,
        };
        assert_eq!(Schedule::new(&spec, None), Err(ScheduleError::UnknownLength("exp-decay")));
        let schedule = Schedule::new(&spec, Some(100)).unwrap();
        near(schedule.lr(60), 0.5);
        near(schedule.lr(110), 0.25);
    }

    #[test]
    fn polynomial_decay_with_an_open_length_begins_after_the_warm_up_and_ends_with_the_run() {
        let spec = |decay_updates| ScheduleSpec::PolyDecay {
            lr: 1.0,
            decay_updates,
            power: 2.0,
            begin_decay_at: 0,
            min_lr: 0.1,
            warmup_updates: 10,
        };
        let open = Schedule::new(&spec(None), Some(110)).unwrap();
        near(open.lr(0), 0.0);
        near(open.lr(5), 0.5);
        near(open.lr(10), 1.0);
        near(open.lr(60), 0.9 * 0.25 + 0.1);
        near(open.lr(110), 0.1);
        near(open.lr(1000), 0.1);
        // With `decay_updates` nothing is moved: the decay overlaps the warm-up from the first
        // update on.
        let given = Schedule::new(&spec(Some(100)), Some(110)).unwrap();
        near(given.lr(5), (0.5 - 0.1) * 0.95f64.powi(2) + 0.1);
        near(given.lr(50), 0.9 * 0.25 + 0.1);
    }

    #[test]
    fn cosine_decay_has_a_floor_relative_to_its_rate() {
        let spec = |warmup_start| ScheduleSpec::CosineDecay {
            lr: 2.0,
            decay_updates: Some(100),
            begin_decay_at: 10,
            min_lr_ratio: 0.1,
            warmup_updates: 10,
            warmup_start,
        };
        let schedule = Schedule::new(&spec(WarmupStart::Zero), None).unwrap();
        near(schedule.lr(0), 0.0);
        near(schedule.lr(5), 1.0);
        near(schedule.lr(10), 2.0);
        near(schedule.lr(60), 2.0 * (0.9 * 0.5 + 0.1));
        near(schedule.lr(110), 0.2);
        let above = Schedule::new(&spec(WarmupStart::Step), None).unwrap();
        near(above.lr(0), 2.0 / 11.0);
        near(above.lr(9), 20.0 / 11.0);
        near(above.lr(10), 2.0);
        near(above.lr(60), schedule.lr(60));
    }

    #[test]
    fn inverse_polynomial_decay_meets_both_ends() {
        let spec = ScheduleSpec::InvPolyDecay { lr: 1.0, decay_updates: None, min_lr: 0.01, power: 2.0 };
        let schedule = Schedule::new(&spec, Some(900)).unwrap();
        near(schedule.lr(0), 1.0);
        // (1/0.01)^(1/2) = 10, slope 9/900 = 0.01.
        near(schedule.lr(100), 0.25);
        near(schedule.lr(900), 0.01);
    }

    #[test]
    fn warm_up_and_steps_are_shares_of_the_run() {
        let spec = ScheduleSpec::WarmupSteps {
            lr: 2e-3,
            warmup_updates: 200,
            hold: 0.666,
            steps: 4,
            decay_rate: 0.5,
        };
        assert_eq!(Schedule::new(&spec, None), Err(ScheduleError::UnknownLength("warmup-steps")));
        let schedule = Schedule::new(&spec, Some(1000)).unwrap();
        near(schedule.lr(0), 2e-5);
        near(schedule.lr(100), 2e-4);
        near(schedule.lr(200), 2e-3);
        near(schedule.lr(665), 2e-3);
        // 334 updates are left: one step every 83.
        near(schedule.lr(666), 1e-3);
        near(schedule.lr(666 + 82), 1e-3);
        near(schedule.lr(666 + 83), 5e-4);
        near(schedule.lr(666 + 249), 1.25e-4);
        near(schedule.lr(999), 1.25e-4);
    }

    #[test]
    fn a_plateau_falls_when_validation_is_stuck_and_ends_below_its_least() {
        let plateau = |patience, keeps_falling| {
            let spec = ScheduleSpec::Plateau { lr: 1.0, factor: 0.5, patience, keeps_falling, min_lr: 0.2 };
            Schedule::new(&spec, None).unwrap()
        };
        let rates = |mut schedule: Schedule, seen: &[u32]| -> Vec<(f64, bool)> {
            let rate = |&since_best: &u32| {
                schedule.validated(since_best);
                (schedule.lr(7), schedule.is_over())
            };
            seen.iter().map(rate).collect()
        };
        assert_eq!(rates(plateau(0, false), &[0, 1, 0]), [(1.0, false), (0.5, false), (0.5, false)]);
        assert_eq!(rates(plateau(0, false), &[1, 2, 3]), [(0.5, false), (0.25, false), (0.125, true)]);
        assert_eq!(
            rates(plateau(1, false), &[1, 2, 3, 4]),
            [(1.0, false), (0.5, false), (0.5, false), (0.25, false)]
        );
        assert_eq!(
            rates(plateau(0, true), &[0, 1, 0, 0]),
            [(1.0, false), (0.5, false), (0.25, false), (0.125, true)]
        );
        let mut resumed = plateau(0, false);
        resumed.restore(2);
        assert_eq!((resumed.lr(0), resumed.falls()), (0.25, 2));
    }

    #[test]
    fn piecewise_constant_keeps_the_old_factor_on_the_boundary() {
        let spec =
            ScheduleSpec::PiecewiseConstant { lr: 0.1, boundaries: vec![30, 60], factors: vec![0.1, 0.01] };
        let schedule = Schedule::new(&spec, None).unwrap();
        near(schedule.lr(30), 0.1);
        near(schedule.lr(31), 0.01);
        near(schedule.lr(60), 0.01);
        near(schedule.lr(61), 0.001);
    }

    #[test]
    fn impossible_schedules_are_refused() {
        let rising =
            ScheduleSpec::PiecewiseConstant { lr: 0.1, boundaries: vec![60, 30], factors: vec![0.1, 0.01] };
        assert!(matches!(Schedule::new(&rising, None), Err(ScheduleError::Invalid { .. })));
        let none = ScheduleSpec::InverseSqrt { lr: 1.0, warmup_updates: 0, warmup_init_lr: 0.0 };
        assert!(matches!(Schedule::new(&none, None), Err(ScheduleError::Invalid { .. })));
        let short = ScheduleSpec::PolyDecay {
            lr: 1.0,
            decay_updates: None,
            power: 1.0,
            begin_decay_at: 0,
            min_lr: 0.0,
            warmup_updates: 10,
        };
        assert!(matches!(Schedule::new(&short, Some(10)), Err(ScheduleError::Invalid { .. })));
    }
}
