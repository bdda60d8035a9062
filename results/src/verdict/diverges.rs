//! `diverges`: the source reports that training fails.

use zoo_recipes::ClaimSpec;

use super::conditions::met;
use super::evidence::{Evidence, RunScore, RunStatus};
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::wording::{number, seeds};

pub(super) fn judge(claim: &ClaimSpec, evidence: &Evidence, verdict: &mut Verdict) {
    // A diverged run has no hypotheses, so the evaluation set, search and signature are not
    // required.
    let training = ClaimSpec { eval: None, decode: None, signature: None, ..claim.clone() };
    let ends: Vec<(Option<u64>, bool, String)> =
        evidence.runs.iter().filter_map(|run| Some((run.seed, end(run)?.0, end(run)?.1))).collect();
    if ends.is_empty() {
        return verdict.not_run("no run of which the loss is known");
    }
    verdict.seeds = ends.len() as u32;
    match met(&training, evidence) {
        Ok(notes) => verdict.notes.extend(notes),
        Err(reason) => return verdict.not_comparable(&reason),
    }
    let diverged = ends.iter().filter(|(_, diverged, _)| *diverged).count();
    verdict.outcome = match diverged {
        n if n == ends.len() => Outcome::Reproduced,
        0 => Outcome::NotReproduced,
        _ => {
            verdict.seeds_needed = Some(SeedsNeeded::None);
            Outcome::Inconclusive
        }
    };
    let each: Vec<String> = ends
        .iter()
        .map(|(seed, _, words)| seed.map_or_else(|| words.clone(), |seed| format!("seed {seed}: {words}")))
        .collect();
    verdict.explanation =
        format!("{diverged} of {} diverged ({}).", seeds(ends.len() as u32), each.join("; "));
}

/// Whether the run diverged (a loss that is not finite, or a last loss above the first), and the
/// words for it. `None` if the loss is not known.
fn end(run: &RunScore) -> Option<(bool, String)> {
    match (run.status, run.first_loss, run.last_loss) {
        (RunStatus::Missing, ..) => None,
        (RunStatus::Diverged, ..) => Some((true, "non-finite".to_owned())),
        (RunStatus::Scored, _, Some(last)) if !last.is_finite() => Some((true, "non-finite loss".to_owned())),
        (RunStatus::Scored, Some(first), Some(last)) => {
            Some((last > first, format!("loss {} to {}", number(first), number(last))))
        }
        (RunStatus::Scored, ..) => None,
    }
}
