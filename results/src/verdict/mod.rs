//! Verdicts: compares a claim with the measurements.
//!
//! [`judge`] is pure: the same claim and evidence always give the same verdict. `zoo ledger
//! recheck` relies on this. The formulae and the error rates are in `docs/verdicts.md`.

mod bound;
mod collapse;
mod conditions;
mod diverges;
mod evidence;
mod first;
mod judgeable;
mod looking;
mod outcome;
mod parity;
mod ratio;
mod rewording;
mod rule;
mod rules;
mod second;
mod spread;
mod trained;
mod trajectory;
mod value;
mod wording;

pub use conditions::{direction_of, precision_word, signature_difference};
pub use evidence::{
    ErrorCount, Evidence, Interval, PointScores, Precision, RunScore, RunStatus, SpeedEvidence, Spent,
    SpentLook, StatedSpread, stated_sigma,
};
pub use judgeable::{judgeable, listed};
pub(crate) use looking::level_spent;
pub use outcome::{EqualSystem, Outcome, SeedsNeeded, SigmaSource, Verdict};
pub use rule::SEED_LIMIT;
pub use rules::{Rules, UnknownRules};
pub use second::STATED_TOO_SMALL;
pub use trained::trained_term;
pub(crate) use wording::number;

use zoo_recipes::{ClaimKind, ClaimSpec};

/// The verdict on one claim, by the rules that the evidence names.
#[must_use]
pub fn judge(claim: &ClaimSpec, evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict::new(claim, evidence);
    let judged = match claim.kind {
        ClaimKind::Value => value::judge,
        ClaimKind::Bound => bound::judge,
        ClaimKind::Parity => parity::judge,
        ClaimKind::Ratio => ratio::judge,
        ClaimKind::Diverges => diverges::judge,
        ClaimKind::Trajectory => trajectory::judge,
        ClaimKind::Relation | ClaimKind::Memory => {
            verdict.not_run("kind not judged yet");
            return verdict;
        }
    };
    if let Some(numbers) = verdict.bad_number(claim, evidence) {
        verdict.not_run(&numbers);
        return verdict;
    }
    judged(claim, evidence, &mut verdict);
    verdict
}

/// The verdict on the same evidence under the present rules, with the present table's row for the
/// spread that the claim names. The recipe's name decides whether that row was measured on the same
/// system.
#[must_use]
pub fn rejudge(recipe: &str, claim: &ClaimSpec, evidence: &Evidence) -> Verdict {
    let spread = StatedSpread::named(claim, recipe);
    judge(claim, &Evidence { rules: Rules::default(), spread, ..evidence.clone() })
}

/// The verdict `NOT RUN` on a claim without measurements.
#[must_use]
pub fn not_run(claim: &ClaimSpec, reason: &str) -> Verdict {
    let mut verdict = Verdict::new(claim, &Evidence::default());
    verdict.not_run(reason);
    verdict
}
