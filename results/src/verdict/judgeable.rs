//! Which claims this program can judge, decided from the claim alone.

use zoo_recipes::{ClaimKind, ClaimSpec};

use super::outcome::{Outcome, Verdict};
use crate::metrics::{Entry, Path};

/// Checks that there is a way from a training run to a verdict on the claim.
///
/// # Errors
/// The reason why the claim cannot be judged.
pub fn judgeable(claim: &ClaimSpec) -> Result<(), String> {
    match claim.kind {
        ClaimKind::Relation => return Err("no code compares two recipes yet".to_owned()),
        ClaimKind::Memory => {
            return Err("no code compares the memory or the batches of two arms yet".to_owned());
        }
        // Training shows whether the loss stays finite, for any metric.
        ClaimKind::Diverges => return Ok(()),
        ClaimKind::Value
        | ClaimKind::Bound
        | ClaimKind::Parity
        | ClaimKind::Ratio
        | ClaimKind::Trajectory => {}
    }
    let metric = &claim.metric;
    let Some(known) = Entry::find(metric) else { return Err(format!("there is no metric `{metric}`")) };
    match (known.path, claim.kind) {
        (Path::Unjudged(why), _) => Err(why.to_owned()),
        (Path::Timed { .. }, ClaimKind::Ratio) => Ok(()),
        (Path::Timed { .. }, _) => {
            Err(format!("a speed is judged as a ratio of two arms, not as {metric} by itself"))
        }
        (_, ClaimKind::Ratio) => Err(format!("a ratio of {metric} is not computed")),
        (Path::Trained, _) if claim.signature.is_none() => {
            Err("without a signature nothing says which term is averaged over which updates".to_owned())
        }
        (Path::Trained, ClaimKind::Bound | ClaimKind::Parity) => {
            Err(format!("{metric} has no interval, which a bound and a parity need"))
        }
        _ if claim.signature.is_none() => {
            Err("without a signature nothing says how outputs are scored".to_owned())
        }
        _ => Ok(()),
    }
}

/// The verdict for listings: where no code can judge the claim, `NOT RUN` becomes `NOT JUDGEABLE`,
/// with the reason.
///
/// Records keep the result of [`super::judge`]. A verdict on external scores is unchanged.
#[must_use]
pub fn listed(claim: &ClaimSpec, verdict: &Verdict) -> Verdict {
    let mut verdict = verdict.clone();
    if verdict.outcome == Outcome::NotRun
        && let Err(reason) = judgeable(claim)
    {
        verdict.outcome = Outcome::NotJudgeable;
        verdict.explanation = reason;
    }
    verdict
}
