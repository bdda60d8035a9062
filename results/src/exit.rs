//! Exit codes of `zoo`. The table in `docs/verdicts.md` is made from this enum and a test compares them.

use crate::verdict::{Outcome, Verdict};

/// Every code with which the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// The command did what it was asked; of a judged run: every comparable claim is REPRODUCED.
    Ok = 0,
    /// A fault of the program, or of the machine, that none of the others names.
    Internal = 1,
    /// The command line was not understood.
    Usage = 2,
    /// A recipe does not parse or contradicts itself.
    Recipe = 3,
    /// Data missing, damaged, or not what the recipe says.
    Data = 4,
    /// The plan needs more than zoo spends without consent, or a file without a digest comes over plain http.
    PlanRefused = 5,
    /// Stopped before its end; run the same command again to resume.
    Interrupted = 6,
    /// Ledger, bundle, hypotheses or checkpoint do not match their digests.
    Damaged = 7,
    /// The device is not there, or not built in.
    Device = 8,
    /// `align` or `verify` found a difference.
    Mismatch = 9,
    /// At least one claim is NOT REPRODUCED, or `regress` found something worse than what was recorded.
    NotReproduced = 10,
    /// None of that, and at least one claim is INCONCLUSIVE.
    Inconclusive = 11,
    /// Claims were judged and not one was comparable.
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

    /// What it means, for the documentation and for `--help`.
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
            Self::Mismatch => "`align` or `verify` found a difference",
            Self::NotReproduced => "at least one claim is NOT REPRODUCED, or worse than what was recorded",
            Self::Inconclusive => "no claim is NOT REPRODUCED, at least one is INCONCLUSIVE",
            Self::NothingComparable => "claims were judged and none was comparable",
        }
    }

    /// The code of a judged run: any NOT REPRODUCED, else any INCONCLUSIVE, else REPRODUCED; its own where nothing was comparable.
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

    /// [`Exit::of_outcomes`] of verdicts.
    #[must_use]
    pub fn of_verdicts<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        Self::of_outcomes(verdicts.into_iter().map(|verdict| verdict.outcome))
    }

    /// The table of the documentation.
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
