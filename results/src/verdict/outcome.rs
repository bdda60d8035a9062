//! The verdict: an explanation for people and numbers for programs.

use serde::{Deserialize, Serialize};
use zoo_recipes::{ClaimKind, ClaimSpec, Statement};

use super::evidence::Evidence;

/// Outcome of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Outcome {
    /// The one-sided 95 % bound of the measured shortfall lies inside the margin.
    Reproduced,
    /// The bound lies wholly outside the margin.
    NotReproduced,
    /// The bound lies neither inside nor wholly outside.
    Inconclusive,
    /// The claim's own conditions were not met.
    NotComparable,
    /// There are no measurements to judge.
    NotRun,
    /// No code can judge the claim yet. Only listings show this outcome (see [`super::listed`]);
    /// records have `NOT RUN`.
    NotJudgeable,
}

impl Outcome {
    /// The word for programs, as ledgers and all other files spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "REPRODUCED",
            Self::NotReproduced => "NOT-REPRODUCED",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::NotComparable => "NOT-COMPARABLE",
            Self::NotRun => "NOT-RUN",
            Self::NotJudgeable => "NOT-JUDGEABLE",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Reproduced => "REPRODUCED",
            Self::NotReproduced => "NOT REPRODUCED",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::NotComparable => "NOT COMPARABLE",
            Self::NotRun => "NOT RUN",
            Self::NotJudgeable => "NOT JUDGEABLE",
        })
    }
}

/// Source of the spread between seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SigmaSource {
    /// Printed by the source.
    Published,
    /// Assumed by the recipe.
    Assumed,
    /// A row of the table of spreads, measured on this system.
    Measured,
    /// A row of the table of spreads, measured on another system.
    Carried,
    /// The scores' sample standard deviation, with n - 1.
    Sample,
}

impl SigmaSource {
    /// The phrase used in explanations.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Published => "sigma published",
            Self::Assumed => "sigma assumed",
            Self::Measured => "sigma measured",
            Self::Carried => "sigma carried over",
            Self::Sample => "sigma of the sample",
        }
    }
}

/// Expected result of a system that is exactly as good as the claimed one, given the noise of the
/// published number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EqualSystem {
    /// Lower end of the range that holds its mean 95 times in 100.
    pub low: f64,
    /// Upper end of that range.
    pub high: f64,
    /// Probability that it is judged REPRODUCED at this look taken alone.
    pub reproduced: f64,
}

/// Number of seeds that would settle an INCONCLUSIVE verdict with probability 80 %, if the measured
/// mean does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeedsNeeded {
    /// This total, at a later look of the same plan.
    InPlan(u32),
    /// This number, in a new plan with a single look.
    NewPlan(u32),
    /// No number up to [`super::SEED_LIMIT`].
    None,
}

/// The verdict on one claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Outcome.
    pub outcome: Outcome,
    /// One or two sentences with the numbers.
    pub explanation: String,
    /// Kind of the claim.
    pub kind: ClaimKind,
    /// Metric of the claim.
    pub metric: String,
    /// Evaluation set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval: Option<String>,
    /// Arm that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Where the claim was printed.
    pub source: String,
    /// The sibling configuration for which the source printed the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Why this project checks the claim, if no one published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// The published number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The mean that the published number stands for. It differs from `published` if that is the
    /// best of n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Largest shortfall that still counts as reproduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// `trajectory`: the point that decides and that the numbers describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Mean score, mean difference, or ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Number of seeds behind `measured`.
    pub seeds: u32,
    /// How much worse the measured value is than the target; negative if it is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<f64>,
    /// Lower one-sided bound of the shortfall, at this look's level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall_low: Option<f64>,
    /// Upper one-sided bound of the shortfall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall_high: Option<f64>,
    /// Spread between seeds that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Source of that spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma_source: Option<SigmaSource>,
    /// The row of the table of spreads that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// Planned looks, in seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<u32>,
    /// One-sided level of this look's bound; all looks together use 5 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Expected result of an equal system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_system: Option<EqualSystem>,
    /// Number of seeds that would settle the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds_needed: Option<SeedsNeeded>,
    /// Words (or characters, cases) of a test set that would probably settle the verdict if the
    /// error rate does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units_needed: Option<u64>,
    /// Whether the scores came from outside this program.
    #[serde(default)]
    pub external: bool,
    /// Further notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Verdict {
    /// A verdict without an outcome, with the fields that the claim itself determines.
    pub(super) fn new(claim: &ClaimSpec, evidence: &Evidence) -> Self {
        let mut notes = Vec::new();
        if let Some(sibling) = &claim.extends {
            notes.push(format!("printed by its source for {sibling}, carried over to this configuration"));
        }
        if claim.own.is_some() {
            notes.push("a check of this project: nobody published it for this system".to_owned());
        }
        Self {
            outcome: Outcome::NotRun,
            explanation: String::new(),
            kind: claim.kind,
            metric: claim.metric.clone(),
            eval: claim.eval.clone(),
            arm: claim.arm.clone().or_else(|| evidence.arm.clone()),
            source: claim.source.clone(),
            extends: claim.extends.clone(),
            own: claim.own.clone(),
            published: claim.value,
            target: None,
            margin: claim.margin,
            at: None,
            measured: None,
            seeds: 0,
            shortfall: None,
            shortfall_low: None,
            shortfall_high: None,
            sigma: None,
            sigma_source: None,
            spread: None,
            looks: Vec::new(),
            alpha: None,
            equal_system: None,
            seeds_needed: None,
            units_needed: None,
            external: evidence.external,
            notes,
        }
    }

    /// Who makes the claim.
    #[must_use]
    pub fn statement(&self) -> Statement {
        match (&self.own, &self.extends) {
            (Some(_), _) => Statement::Own,
            (None, Some(_)) => Statement::Extended,
            (None, None) => Statement::Published,
        }
    }

    pub(super) fn not_run(&mut self, reason: &str) {
        self.outcome = Outcome::NotRun;
        self.explanation = reason.to_owned();
    }

    pub(super) fn not_comparable(&mut self, reason: &str) {
        self.outcome = Outcome::NotComparable;
        self.explanation = match self.measured {
            Some(value) => format!("measured {}; {reason}", super::wording::number(value)),
            None => reason.to_owned(),
        };
    }

    /// The first number of the claim or the evidence that prevents a verdict.
    pub(super) fn bad_number(&self, claim: &ClaimSpec, evidence: &Evidence) -> Option<String> {
        let claimed = [
            ("value", claim.value, false),
            ("sigma", claim.sigma, true),
            ("assumed_sigma", claim.assumed_sigma, true),
            ("margin", claim.margin, true),
            ("margin_of_error", claim.margin_of_error, true),
        ];
        for (key, value, no_less_than_zero) in claimed {
            if value.is_some_and(|v| !v.is_finite() || (no_less_than_zero && v < 0.0)) {
                return Some(format!("the claim's {key} is {}", value.unwrap_or(f64::NAN)));
            }
        }
        for point in &claim.points {
            if !point.value.is_finite() || point.sigma.is_some_and(|s| !s.is_finite() || s < 0.0) {
                return Some(format!("a number of the claim's point at {} is not usable", point.at));
            }
        }
        for run in evidence.scores() {
            if run.score.is_some_and(|s| !s.is_finite()) {
                return Some("a score is not finite: give the run as diverged".to_owned());
            }
            for interval in [run.interval, run.difference].into_iter().flatten() {
                if !interval.is_usable() {
                    return Some(
                        "an interval is upside down, not finite, or its level is not between 0 and 1"
                            .to_owned(),
                    );
                }
            }
            if run.counts.is_some_and(|c| c.total == 0 || !c.scale.is_finite() || c.scale <= 0.0) {
                return Some("error counts without words, or without a scale".to_owned());
            }
        }
        let row = evidence.spread.as_ref().is_some_and(|row| !row.sd.is_finite() || row.sd <= 0.0);
        if row || evidence.spent.as_ref().is_some_and(|spent| !(0.0..=1.0).contains(&spent.alpha)) {
            return Some("the stated spread or the spent level is not a usable number".to_owned());
        }
        let speed = evidence.speed?;
        let usable = speed.ratio.is_finite() && speed.ratio > 0.0 && speed.interval.is_usable();
        (!usable).then(|| "the speed-up is not a positive number with an interval".to_owned())
    }
}

impl super::evidence::Interval {
    fn is_usable(&self) -> bool {
        self.low.is_finite()
            && self.high.is_finite()
            && self.low <= self.high
            && self.level > 0.0
            && self.level < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_the_one_that_is_recorded() {
        use Outcome::{Inconclusive, NotComparable, NotJudgeable, NotReproduced, NotRun, Reproduced};
        for outcome in [Reproduced, NotReproduced, Inconclusive, NotComparable, NotRun, NotJudgeable] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.word());
            assert_eq!(outcome.word().replace('-', " "), outcome.to_string());
        }
    }
}
