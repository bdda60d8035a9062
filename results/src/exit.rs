//! Exit codes of `zoo`. The table in `docs/verdicts.md` is generated from this enum, and a test
//! compares the two.

use crate::verdict::{Outcome, Verdict};

/// All exit codes of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded. For a judged run: every comparable claim is REPRODUCED.
    Ok = 0,
    /// An error of the program or the machine that no other code covers.
    Internal = 1,
    /// The command line is not valid.
    Usage = 2,
    /// A recipe does not parse or contradicts itself.
    Recipe = 3,
    /// Data are missing, damaged, or differ from the recipe.
    Data = 4,
    /// The plan exceeds what zoo spends without consent, or a file without a digest would be
    /// downloaded over plain http.
    PlanRefused = 5,
    /// Stopped before completion; run the same command again to resume.
    Interrupted = 6,
    /// A ledger, bundle, hypotheses or checkpoint does not match its digest.
    Damaged = 7,
    /// The device does not exist, or support for it is not built in.
    Device = 8,
    /// `align`, `verify` or `replay` found a difference.
    Mismatch = 9,
    /// At least one claim is NOT REPRODUCED, or `regress` found a result worse than the recorded
    /// one.
    NotReproduced = 10,
    /// No claim is NOT REPRODUCED, and at least one is INCONCLUSIVE.
    Inconclusive = 11,
    /// Claims were judged, but none was comparable.
    NothingComparable = 12,
}

impl Exit {
    /// Every code, in order.
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::Internal,
        Self::Usage,
        Self::Recipe,
        Self::Data,
        Self::PlanRefused,
        Self::Interrupted,
        Self::Damaged,
        Self::Device,
        Self::Mismatch,
        Self::NotReproduced,
        Self::Inconclusive,
        Self::NothingComparable,
    ];

    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Name of the code for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Recipe => "recipe",
            Self::Data => "data",
            Self::PlanRefused => "plan-refused",
            Self::Interrupted => "interrupted",
            Self::Damaged => "damaged",
            Self::Device => "device",
            Self::Mismatch => "mismatch",
            Self::NotReproduced => "not-reproduced",
            Self::Inconclusive => "inconclusive",
            Self::NothingComparable => "nothing-comparable",
        }
    }

    /// What the code means, for the documentation and `--help`.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "success; after judging: every comparable claim is REPRODUCED",
            Self::Internal => "internal error of the program or the machine",
            Self::Usage => "usage error: invalid command line",
            Self::Recipe => "a recipe does not parse or contradicts itself",
            Self::Data => "data are missing, damaged, or differ from the recipe",
            Self::PlanRefused => {
                "the plan needs over an hour or a gigabyte, or unverified http data: pass `--yes`"
            }
            Self::Interrupted => "interrupted; the same command resumes the run",
            Self::Damaged => "ledger, bundle, hypotheses or checkpoint do not match their digests",
            Self::Device => "the device is not available or not built in",
            Self::Mismatch => "`align`, `verify` or `replay` found a difference",
            Self::NotReproduced => "at least one claim is NOT REPRODUCED, or worse than what was recorded",
            Self::Inconclusive => "no claim is NOT REPRODUCED, at least one is INCONCLUSIVE",
            Self::NothingComparable => "claims were judged and none was comparable",
        }
    }

    /// The code of a judged run: NOT REPRODUCED if any claim is, else INCONCLUSIVE if any is, else
    /// success; a separate code if no claim was comparable.
    #[must_use]
    pub fn of_outcomes(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut worst = Self::NothingComparable;
        for outcome in outcomes {
            match outcome {
                Outcome::NotReproduced => return Self::NotReproduced,
                Outcome::Inconclusive => worst = Self::Inconclusive,
                Outcome::Reproduced if worst == Self::NothingComparable => worst = Self::Ok,
                Outcome::Reproduced | Outcome::NotComparable | Outcome::NotRun | Outcome::NotJudgeable => {}
            }
        }
        worst
    }

    /// [`Exit::of_outcomes`] for verdicts.
    #[must_use]
    pub fn of_verdicts<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        Self::of_outcomes(verdicts.into_iter().map(|verdict| verdict.outcome))
    }

    /// The table for the documentation.
    #[must_use]
    pub fn markdown_table() -> String {
        let mut text = String::from("| code | meaning |\n|---:|---|\n");
        for exit in Self::ALL {
            text.push_str(&format!("| {} | {} |\n", exit.code(), exit.meaning()));
        }
        text
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Inconclusive, NotComparable, NotJudgeable, NotReproduced, NotRun, Reproduced};

    #[test]
    fn codes_are_distinct_and_in_order() {
        for (i, exit) in Exit::ALL.iter().enumerate() {
            assert_eq!(exit.code() as usize, i);
        }
    }

    #[test]
    fn the_worst_verdict_decides() {
        assert_eq!(Exit::of_outcomes([Reproduced, NotReproduced, Inconclusive]), Exit::NotReproduced);
        assert_eq!(Exit::of_outcomes([Inconclusive, Reproduced, NotRun]), Exit::Inconclusive);
        assert_eq!(Exit::of_outcomes([Reproduced, Inconclusive]), Exit::Inconclusive);
        assert_eq!(Exit::of_outcomes([NotComparable, Reproduced]), Exit::Ok);
        assert_eq!(Exit::of_outcomes([NotComparable, NotRun, NotJudgeable]), Exit::NothingComparable);
        assert_eq!(Exit::of_outcomes([NotJudgeable, Reproduced]), Exit::Ok);
        assert_eq!(Exit::of_outcomes([]), Exit::NothingComparable);
    }
}
