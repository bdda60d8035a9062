//! The speed of one arm relative to another, within one run.

use crate::ledger::Record;
use crate::statistics::{mean, normal_quantile, t_quantile};
use crate::verdict::Outcome;

/// Minimum length in seconds of a training run whose time is used.
const LONG_ENOUGH: f64 = 60.0;

/// Logarithms of the ratios of a record; above 0 the arm is faster than its baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Name of the arm.
    pub arm: String,
    /// The arm whose speed is 1.0.
    pub baseline: String,
    /// One logarithm per seed, or a single one from a timing.
    pub logs: Vec<f64>,
    /// Standard error of a ratio timed in alternating blocks.
    pub timed_error: Option<f64>,
    /// Whether half precision was emulated; its speed is then meaningless.
    pub emulated: bool,
}

impl Ratio {
    /// Geometric mean of the ratios.
    #[must_use]
    pub fn value(&self) -> f64 {
        mean(&self.logs).exp()
    }
}

/// Number of updates of a run, from the note in its record.
fn updates(record: &Record, place: &str) -> Option<f64> {
    let prefix = format!("{place}: ");
    let note = record.notes.iter().find_map(|note| note.strip_prefix(&prefix))?;
    note.split_once(" updates")?.0.parse().ok().filter(|updates| *updates > 0.0)
}

/// The ratios of a record: from timings in alternating blocks, else from the training runs' seconds
/// per update, seed by seed.
#[must_use]
pub fn ratios(record: &Record) -> Vec<Ratio> {
    // No CPU multiplies fp16 with FP32 sums. Results computed under that name on a CPU are correct,
    // but their speed is meaningless.
    let emulated = |arm: &str| {
        let found = record.precision.get(arm).map_or("", String::as_str);
        found.contains("emulated") || found == "fp16" && record.device.as_deref() == Some("cpu")
    };
    let mut found: Vec<Ratio> = Vec::new();
    for judgement in &record.judgements {
        let evidence = &judgement.evidence;
        let (Some(speed), Some(arm)) = (&evidence.speed, &evidence.arm) else { continue };
        let baseline = evidence.baseline.clone().unwrap_or_else(|| "fp32".to_owned());
        // Smaller tiers are timed only briefly, to check that timing works.
        if evidence.tier.as_deref().is_some_and(|tier| tier != "full") {
            continue;
        }
        if found.iter().any(|known| known.arm == *arm && known.baseline == baseline) || speed.ratio <= 0.0 {
            continue;
        }
        let width = (speed.interval.high / speed.interval.low).ln() / 2.0;
        found.push(Ratio {
            arm: arm.clone(),
            baseline,
            logs: vec![speed.ratio.ln()],
            timed_error: Some(width / normal_quantile(0.5 + speed.interval.level / 2.0)),
            emulated: emulated(arm),
        });
    }
    if !found.is_empty() {
        return found;
    }
    let seconds = |arm: &str, seed: u64| {
        let place = format!("{arm} seed {seed}");
        let seconds = record.durations.get(&format!("train {place}")).filter(|s| **s >= LONG_ENOUGH)?;
        Some(seconds / updates(record, &place)?)
    };
    for arm in record.precision.keys().filter(|arm| *arm != "fp32") {
        let log = |seed: &u64| Some((seconds("fp32", *seed)? / seconds(arm, *seed)?).ln());
        let logs: Vec<f64> = record.seeds.iter().filter_map(log).collect();
        if !logs.is_empty() {
            let (arm, baseline) = (arm.clone(), "fp32".to_owned());
            found.push(Ratio { emulated: emulated(&arm), arm, baseline, logs, timed_error: None });
        }
    }
    found
}

/// Compares the new ratio with the recorded one; returns (outcome, standing, explanation). A ratio
/// that fell by more than `tolerance` (a share) is an alarm if the fall's one-sided bound at
/// `alpha` confirms it. Single timings have no measurable spread, so a fall by more than twice the
/// tolerance is undecided.
pub(super) fn compare(
    ours: &Ratio,
    recorded: &Ratio,
    tolerance: f64,
    alpha: f64,
) -> (Outcome, &'static str, String) {
    if ours.emulated || recorded.emulated {
        let why = "half precision was emulated: its speed is not judged".to_owned();
        return (Outcome::NotComparable, "emulated", why);
    }
    let fall = mean(&recorded.logs) - mean(&ours.logs);
    let allowed = -(1.0 - tolerance).ln();
    let (n, m) = (ours.logs.len(), recorded.logs.len());
    let squares = |logs: &[f64]| logs.iter().map(|log| (log - mean(logs)).powi(2)).sum::<f64>();
    let (limit, how, is_known) = match (ours.timed_error, recorded.timed_error) {
        (Some(a), Some(b)) => {
            (allowed.max(normal_quantile(1.0 - alpha) * a.hypot(b)), "timed in blocks, a fall", true)
        }
        _ if n + m > 2 => {
            let freedom = (n + m - 2) as f64;
            let spread = ((squares(&ours.logs) + squares(&recorded.logs)) / freedom).sqrt();
            let half = t_quantile(1.0 - alpha, freedom) * spread * (1.0 / n as f64 + 1.0 / m as f64).sqrt();
            (allowed.max(half), "over the seeds, a fall", true)
        }
        _ => (2.0 * allowed, "single timings show no spread: a fall", false),
    };
    let change = 100.0 * ((-fall).exp() - 1.0);
    let explanation = format!(
        "{} runs at {:.2} times the speed of {}, {change:+.0} % against the recorded {:.2}; {how} by more than {:.0} % {}",
        ours.arm,
        ours.value(),
        ours.baseline,
        recorded.value(),
        100.0 * (1.0 - (-limit).exp()),
        if is_known { "raises an alarm" } else { "is undecided" }
    );
    match (fall > limit, is_known) {
        (true, true) => (Outcome::NotReproduced, "SLOWER", explanation),
        (true, false) => (Outcome::Inconclusive, "perhaps slower", explanation),
        (false, _) => (Outcome::Reproduced, "as before", explanation),
    }
}
