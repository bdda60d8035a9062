//! The `[[claim]]` blocks: published numbers, numbers carried over from a sibling, and checks of this project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DIRECT;

/// One statement. Which keys a kind needs is checked by `validate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSpec {
    /// What is claimed.
    pub kind: ClaimKind,
    /// A check of this project that nobody published for this system: a sentence that says why it is made. Counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// `bleu`, `wer`, `loss`, `updates-per-second`, …
    pub metric: String,
    /// Metric convention, e.g. `nrefs:1|case:lc|eff:no|tok:none|smooth:none`. Unlike signatures are never compared.
    #[serde(default)]
    pub signature: Option<String>,
    /// Name of an evaluation set.
    #[serde(default)]
    pub eval: Option<String>,
    /// Name of a search.
    #[serde(default)]
    pub decode: Option<String>,
    /// Arm that is held against the claim; `any` where the source does not say.
    #[serde(default)]
    pub arm: Option<String>,
    /// The published number. Absent for `parity`, `relation` and `diverges`.
    #[serde(default)]
    pub value: Option<f64>,
    /// Which way is better.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// What the published number is of its runs.
    #[serde(default)]
    pub statistic: Statistic,
    /// Runs behind the published number.
    #[serde(default)]
    pub n: Option<u32>,
    /// Published standard deviation between runs.
    #[serde(default)]
    pub sigma: Option<f64>,
    /// Row of the table of measured standard deviations, `results/src/statistics/spreads.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// Assumed standard deviation where none was measured. It concludes nothing by itself.
    #[serde(default)]
    pub assumed_sigma: Option<f64>,
    /// Why that one.
    #[serde(default)]
    pub sigma_reason: Option<String>,
    /// How much worse still counts.
    #[serde(default)]
    pub margin: Option<f64>,
    /// The margin as a share of the target's error (`parity`: of the baseline's), for scores near the end of their scale: 0.5 is at
    /// most half as many errors more. The error is 100 less the score where more is better, the score itself where less is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_of_error: Option<f64>,
    /// Why that much.
    #[serde(default)]
    pub margin_reason: Option<String>,
    /// `ratio`: what must be equal between the arms.
    #[serde(default)]
    pub protocol: Option<RatioProtocol>,
    /// `ratio`: the arm that is 1.0. `parity`: the arm to be no worse than; absent: `fp32`.
    #[serde(default)]
    pub baseline: Option<String>,
    /// `ratio`, `memory`: the hardware of the source; elsewhere the claim is not comparable.
    #[serde(default)]
    pub hardware: Option<String>,
    /// `relation`: the other recipe.
    #[serde(default)]
    pub other: Option<String>,
    /// `trajectory`: what its points count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// `trajectory`: points (epoch or update, value, sigma).
    #[serde(default)]
    pub points: Vec<TrajectoryPoint>,
    /// The source prints this for a sibling configuration, named here. Judged and shown apart.
    #[serde(default)]
    pub extends: Option<String>,
    /// Document, section or line. Of a claim with `own`: where the idea is from.
    pub source: String,
    /// Conditions and conflicts worth knowing.
    #[serde(default)]
    pub note: Option<String>,
}

impl ClaimSpec {
    /// Whether it is on the outputs of an evaluation set with a search. A claim that names no search is on
    /// the outputs of a task without searches.
    pub fn is_of(&self, eval: &str, decode: &str) -> bool {
        self.eval.as_deref() == Some(eval) && self.decode.as_deref().unwrap_or(DIRECT) == decode
    }

    /// Who stands behind it: the key that is there says so.
    pub fn statement(&self) -> Statement {
        match (&self.own, &self.extends) {
            (Some(_), _) => Statement::Own,
            (None, Some(_)) => Statement::Extended,
            (None, None) => Statement::Published,
        }
    }

    /// Do both claim the same? Margins, standard deviations, texts and who stands behind them may differ.
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

    /// Is it about this arm?
    pub fn speaks_of(&self, arm: &str) -> bool {
        self.arm.as_deref().is_none_or(|claimed| claimed == "any" || claimed == arm)
    }

    /// The margin in the score's unit, where the score that it is relative to is `of`.
    pub fn margin_at(&self, of: f64) -> Option<f64> {
        self.margin.or_else(|| {
            let error = if self.direction == Some(Direction::Lower) { of } else { 100.0 - of };
            self.margin_of_error.map(|share| share * error.max(0.0))
        })
    }

    /// The moments of a trajectory.
    pub fn moments(&self) -> impl Iterator<Item = Moment> {
        let clock = self.clock.iter();
        clock.flat_map(|&clock| self.points.iter().map(move |point| Moment { clock, at: point.at }))
    }
}

/// Who stands behind a claim. The three are listed and counted apart and never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statement {
    /// The source states it for this very configuration.
    Published,
    /// The source states it for a sibling configuration: the claim has the key `extends`.
    Extended,
    /// Nobody published it for this system; this project checks it: the claim has the key `own`.
    Own,
}

impl Statement {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Published, Self::Extended, Self::Own];

    /// The word of tables, and of JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Extended => "extended",
            Self::Own => "own",
        }
    }
}

/// See [`ClaimSpec::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A result.
    Value,
    /// A threshold that the source promises.
    Bound,
    /// The mixed arm is no worse than the baseline arm.
    Parity,
    /// A speed-up.
    Ratio,
    /// A difference between two settings.
    Relation,
    /// Numbers on the way.
    Trajectory,
    /// The source reports divergence.
    Diverges,
    /// A memory or batch factor.
    Memory,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// What the published number is of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The source does not say.
    #[default]
    Unstated,
    /// One run.
    Single,
    /// The mean of n.
    Mean,
    /// The best of n.
    Best,
}

/// See [`ClaimSpec::protocol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RatioProtocol {
    /// The same batch in both arms.
    EqualBatch,
    /// Each arm with its published batch.
    AsPublished,
}

/// What tells how far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Passes over the training data, at their ends.
    Epochs,
    /// Updates of the weights.
    Updates,
}

impl Clock {
    /// `epoch`, `update`.
    pub fn one(self) -> &'static str {
        match self {
            Self::Epochs => "epoch",
            Self::Updates => "update",
        }
    }
}

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Moment {
    /// What is counted.
    pub clock: Clock,
    /// How many of them.
    pub at: u64,
}

/// `epoch 3`.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.clock.one(), self.at)
    }
}

/// One point of a `trajectory` claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryPoint {
    /// So many of what the claim's `clock` counts, from 1.
    pub at: u64,
    /// Published number.
    pub value: f64,
    /// Published spread.
    #[serde(default)]
    pub sigma: Option<f64>,
}
