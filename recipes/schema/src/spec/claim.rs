//! The `[[claim]]` blocks: published numbers, numbers published for a sibling configuration, and
//! this project's own checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DIRECT;

/// One claim. `validate` checks which keys its kind needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSpec {
    /// What is claimed: the kind of the claim.
    pub kind: ClaimKind,
    /// Marks a check of this project that no one published for this system.
    /// The value is a sentence with the reason for the check. Own claims are counted separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// Name of the metric: `bleu`, `wer`, `loss`, `updates-per-second`, …
    pub metric: String,
    /// Metric convention, e.g. `nrefs:1|case:lc|eff:no|tok:none|smooth:none`.
    /// Scores with different signatures are never compared.
    #[serde(default)]
    pub signature: Option<String>,
    /// Name of an evaluation set.
    #[serde(default)]
    pub eval: Option<String>,
    /// Name of a search.
    #[serde(default)]
    pub decode: Option<String>,
    /// Arm that is compared with the claim. `any` if the source does not name an arm.
    #[serde(default)]
    pub arm: Option<String>,
    /// The published number. Absent for `parity`, `relation` and `diverges`.
    #[serde(default)]
    pub value: Option<f64>,
    /// Direction in which the metric improves.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// Statistic of the source's runs that the published number is.
    #[serde(default)]
    pub statistic: Statistic,
    /// Number of runs behind the published number.
    #[serde(default)]
    pub n: Option<u32>,
    /// Published standard deviation between runs.
    #[serde(default)]
    pub sigma: Option<f64>,
    /// Row of the table of measured standard deviations, `results/src/statistics/spreads.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// Assumed standard deviation, where none was measured. It cannot decide a verdict by itself.
    #[serde(default)]
    pub assumed_sigma: Option<f64>,
    /// Reason for the assumed standard deviation.
    #[serde(default)]
    pub sigma_reason: Option<String>,
    /// Margin: how much worse than the published number still passes, in the metric's unit.
    #[serde(default)]
    pub margin: Option<f64>,
    /// Margin as a share of the target's error (for `parity`, of the baseline's error).
    /// For scores near the end of their scale: 0.5 allows at most half as many errors more. The
    /// error is 100 - score where higher is better, and the score itself where lower is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_of_error: Option<f64>,
    /// Reason for the margin.
    #[serde(default)]
    pub margin_reason: Option<String>,
    /// `ratio`: what must be equal in both arms.
    #[serde(default)]
    pub protocol: Option<RatioProtocol>,
    /// `ratio`: the arm that is 1.0. `parity`: the arm to compare with; absent: `fp32`.
    #[serde(default)]
    pub baseline: Option<String>,
    /// `ratio`, `memory`: hardware of the source. Elsewhere the claim is not comparable.
    #[serde(default)]
    pub hardware: Option<String>,
    /// `relation`: the other recipe.
    #[serde(default)]
    pub other: Option<String>,
    /// `trajectory`: unit of its points, epochs or updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// `trajectory`: its points (epoch or update, value, sigma).
    #[serde(default)]
    pub points: Vec<TrajectoryPoint>,
    /// The sibling configuration for which the source publishes this number.
    /// Such claims are judged and shown separately.
    #[serde(default)]
    pub extends: Option<String>,
    /// Document, with section or line. For a claim with `own`: the source of the idea.
    pub source: String,
    /// Conditions and contradictions in the source.
    #[serde(default)]
    pub note: Option<String>,
}

impl ClaimSpec {
    /// Whether the claim is about the outputs for an evaluation set with a search.
    /// A claim that names no search is about the outputs of a task without searches.
    pub fn is_of(&self, eval: &str, decode: &str) -> bool {
        self.eval.as_deref() == Some(eval) && self.decode.as_deref().unwrap_or(DIRECT) == decode
    }

    /// Who makes the statement: the keys `own` and `extends` tell.
    pub fn statement(&self) -> Statement {
        match (&self.own, &self.extends) {
            (Some(_), _) => Statement::Own,
            (None, Some(_)) => Statement::Extended,
            (None, None) => Statement::Published,
        }
    }

    /// Whether both claims state the same.
    /// Margins, standard deviations, texts and who makes the statement may differ.
    pub fn claims_the_same(&self, other: &Self) -> bool {
        let parts = |claim: &Self| {
            let points: Vec<(u64, f64)> = claim.points.iter().map(|point| (point.at, point.value)).collect();
            (claim.kind, claim.value, claim.direction, claim.protocol, claim.clock, points)
        };
        let texts = |claim: &Self| {
            let of = [&claim.signature, &claim.eval, &claim.decode, &claim.arm, &claim.baseline];
            (claim.metric.clone(), of.map(Clone::clone), claim.hardware.clone(), claim.other.clone())
        };
        parts(self) == parts(other) && texts(self) == texts(other)
    }

    /// Whether the claim applies to this arm.
    pub fn speaks_of(&self, arm: &str) -> bool {
        self.arm.as_deref().is_none_or(|claimed| claimed == "any" || claimed == arm)
    }

    /// The margin in the score's unit. `of` is the score that a relative margin refers to.
    pub fn margin_at(&self, of: f64) -> Option<f64> {
        self.margin.or_else(|| {
            let error = if self.direction == Some(Direction::Lower) { of } else { 100.0 - of };
            self.margin_of_error.map(|share| share * error.max(0.0))
        })
    }

    /// The points in time of a trajectory.
    pub fn moments(&self) -> impl Iterator<Item = Moment> {
        let clock = self.clock.iter();
        clock.flat_map(|&clock| self.points.iter().map(move |point| Moment { clock, at: point.at }))
    }
}

/// Who makes the statement of a claim. The three groups are listed and counted separately, and
/// never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statement {
    /// The source states it for exactly this configuration.
    Published,
    /// The source states it for a sibling configuration: the claim has the key `extends`.
    Extended,
    /// No one published it for this system; it is a check of this project.
    /// The claim has the key `own`.
    Own,
}

impl Statement {
    /// All variants, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Published, Self::Extended, Self::Own];

    /// The word used in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Extended => "extended",
            Self::Own => "own",
        }
    }
}

/// Kind of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A result, e.g. a score.
    Value,
    /// A threshold that the source promises.
    Bound,
    /// The mixed-precision arm is not worse than the baseline arm.
    Parity,
    /// A speed-up of one arm over another.
    Ratio,
    /// A difference between two settings.
    Relation,
    /// Results during training.
    Trajectory,
    /// The source reports that training diverges.
    Diverges,
    /// A factor of memory or of batch size.
    Memory,
}

impl ClaimKind {
    /// The word of recipes and ledgers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Bound => "bound",
            Self::Parity => "parity",
            Self::Ratio => "ratio",
            Self::Relation => "relation",
            Self::Trajectory => "trajectory",
            Self::Diverges => "diverges",
            Self::Memory => "memory",
        }
    }
}

/// Direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
}

/// Statistic of the source's runs that the published number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The source does not say.
    #[default]
    Unstated,
    /// The result of one run.
    Single,
    /// The mean of n runs.
    Mean,
    /// The best of n runs.
    Best,
}

/// What must be equal in the arms of a speed-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RatioProtocol {
    /// Both arms use the same batch.
    EqualBatch,
    /// Each arm uses its published batch.
    AsPublished,
}

/// Unit in which the progress of a run is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Completed passes over the training data.
    Epochs,
    /// Updates of the weights.
    Updates,
}

impl Clock {
    /// The singular of the unit: `epoch` or `update`.
    pub fn one(self) -> &'static str {
        match self {
            Self::Epochs => "epoch",
            Self::Updates => "update",
        }
    }
}

/// A point in time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Moment {
    /// Unit of `at`.
    pub clock: Clock,
    /// Number of epochs or updates.
    pub at: u64,
}

/// Writes e.g. `epoch 3`.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.clock.one(), self.at)
    }
}

/// One point of a `trajectory` claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryPoint {
    /// Number of epochs or updates, in the unit of the claim's `clock`, from 1.
    pub at: u64,
    /// Published number.
    pub value: f64,
    /// Published standard deviation.
    #[serde(default)]
    pub sigma: Option<f64>,
}
