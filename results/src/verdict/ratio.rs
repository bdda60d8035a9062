//! `ratio`: a speed-up.

use zoo_recipes::{ClaimSpec, RatioProtocol};

use super::conditions::{met, names_accelerators, same_hardware};
use super::evidence::{Evidence, Precision, SpeedEvidence};
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::rule::{decide, sides};
use super::rules::Rules;
use super::wording::number;
use crate::statistics::ALPHA;

/// Why a speed in emulated half precision is not judged.
const EMULATED: &str = "half precision was emulated: its speed is not judged";

pub(super) fn judge(claim: &ClaimSpec, evidence: &Evidence, verdict: &mut Verdict) {
    let Some(published) = claim.value else { return verdict.not_run("the claim has no value") };
    let Some(speed) = &evidence.speed else { return verdict.not_run("the speed of both arms was not timed") };
    let margin = claim.margin.unwrap_or(0.0);
    (verdict.measured, verdict.target, verdict.margin) = (Some(speed.ratio), Some(published), Some(margin));
    if let Err(reason) = conditions(claim, evidence, speed) {
        verdict.not_comparable(&reason);
        verdict.explanation = format!("{} (measured {})", verdict.explanation, words(speed.ratio));
        return;
    }
    if claim.margin.is_none() {
        verdict.notes.push("the claim states no margin: taken as 0".to_owned());
    }
    let (down, up) = sides(&speed.interval, speed.ratio, ALPHA);
    let shortfall = published - speed.ratio;
    verdict.alpha = Some(ALPHA);
    verdict.shortfall = Some(shortfall);
    (verdict.shortfall_low, verdict.shortfall_high) = (Some(shortfall - up), Some(shortfall + down));
    verdict.outcome = decide(shortfall - up, shortfall + down, margin);
    let limits = format!("{} to {}", number(speed.ratio - down), number(speed.ratio + up));
    let place = match verdict.outcome {
        Outcome::Reproduced => "its lower one-sided 95 % bound is no less than",
        Outcome::NotReproduced => "even its upper one-sided 95 % bound is less than",
        _ => "its one-sided 95 % bounds lie on both sides of",
    };
    let more = if verdict.outcome == Outcome::Inconclusive {
        verdict.seeds_needed = Some(SeedsNeeded::None);
        " More timing rounds, not seeds, would narrow it."
    } else {
        ""
    };
    verdict.explanation = format!(
        "measured {} ({limits}); {place} the published {}x less the margin {}.{more}",
        words(speed.ratio),
        number(published),
        number(margin)
    );
}

/// The ratio in words: "1.48x", or a slow-down if it is below 1.
fn words(ratio: f64) -> String {
    if ratio < 1.0 {
        format!("a slow-down, {}x", number(ratio))
    } else {
        format!("a speed-up of {}x", number(ratio))
    }
}

fn conditions(claim: &ClaimSpec, evidence: &Evidence, speed: &SpeedEvidence) -> Result<(), String> {
    met(claim, evidence)?;
    if claim.metric == "time-to-train" {
        return Err("the claim is on the time of whole runs; what was timed are updates".to_owned());
    }
    if evidence.precision == Some(Precision::Bf16Emulated) {
        return Err(EMULATED.to_owned());
    }
    let baseline = claim.baseline.as_deref().unwrap_or("fp32");
    if let Some(ours) = evidence.baseline.as_deref().filter(|ours| *ours != baseline) {
        return Err(format!("the claim's baseline is {baseline}, ours is {ours}"));
    }
    match evidence.baseline_precision {
        None => return Err(format!("the baseline was not proved to be {baseline}")),
        Some(proved) if matches!(baseline, "fp32" | "tf32") && proved.name() != baseline => {
            return Err(format!(
                "the baseline {baseline} was proved to compute its products in {}",
                proved.name()
            ));
        }
        Some(_) => {}
    }
    match (&claim.hardware, &evidence.hardware) {
        (None, _) => return Err("the source names no hardware".to_owned()),
        (Some(theirs), Some(ours)) if same_hardware(theirs, ours) => {}
        (Some(theirs), ours) => {
            let ours = ours.as_deref().unwrap_or("not known");
            return Err(format!("the claim is on {theirs}; ours is {ours}"));
        }
    }
    // A CPU rounds to FP16 in software: the probe finds FP16, but the time is not that of FP16
    // hardware.
    let on_processor = evidence.hardware.as_deref().is_some_and(|name| !names_accelerators(name));
    if evidence.rules == Rules::Second && evidence.precision == Some(Precision::Fp16) && on_processor {
        return Err(EMULATED.to_owned());
    }
    if claim.protocol.is_some_and(|protocol| protocol != speed.protocol) {
        return Err("the claim's batches and ours follow different protocols".to_owned());
    }
    if speed.protocol == RatioProtocol::EqualBatch && speed.batch != speed.baseline_batch {
        return Err(format!("the batches differ: {} against {}", speed.batch, speed.baseline_batch));
    }
    Ok(())
}
