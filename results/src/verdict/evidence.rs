//! What was measured, in the form that a verdict needs.

use serde::{Deserialize, Serialize};
use zoo_recipes::{ClaimSpec, RatioProtocol};

use super::rules::Rules;
use crate::metrics::{Convention, MetricValue, Share, TrainedTerm};
use crate::statistics::{LookPlan, spread};

/// Everything measured that bears on one claim. Fields that do not matter for the claim's kind may be left at their defaults.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// Rules that the verdict follows.
    #[serde(default = "Rules::unnamed", skip_serializing_if = "Rules::is_unnamed")]
    pub rules: Rules,
    /// Arm that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// `parity`, `ratio`: the arm it was held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Evaluation set that was decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval: Option<String>,
    /// Search that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<String>,
    /// Convention of the scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Runs in the order of their planned seeds.
    pub runs: Vec<RunScore>,
    /// `parity`: the baseline arm's runs; paired by seed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baseline_runs: Vec<RunScore>,
    /// `trajectory`: the runs' scores on the way, in rising order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointScores>,
    /// The numbers of seeds at which a verdict is sought.
    pub plan: LookPlan,
    /// The row of the table of spreads that the claim names, as it was when this was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<StatedSpread>,
    /// What earlier plans of the same claim spent of the 5 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// `ratio`: the timing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedEvidence>,
    /// Product type that a probe found in the arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Product type that a probe found in the baseline arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_precision: Option<Precision>,
    /// The machine, in the words in which claims name hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// Tier; anything but `full` or nothing is not comparable with a published number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Keys changed with `--set` that the recipe does not list as free.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// The scores come from outside: conditions that are not given are taken to be the claim's, and a note says so.
    pub external: bool,
}

/// One run (one seed) of an arm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunScore {
    /// Seed; `None` for a score from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How the run ended.
    pub status: RunStatus,
    /// The score, in the claim's unit. Needed where `status` is `scored`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// `bound`: the score's interval from resampling the test set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// `bound`: errors and words, where the score is an error rate; its limits and those of `interval` are both kept to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<ErrorCount>,
    /// `parity`: interval of score minus the same seed's baseline score, from resampling the test set in pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Interval>,
    /// `diverges`: training loss at the start; may be NaN or infinite.
    #[serde(skip_serializing_if = "Option::is_none", with = "any_float")]
    pub first_loss: Option<f64>,
    /// `diverges`: training loss at the end; may be NaN or infinite.
    #[serde(skip_serializing_if = "Option::is_none", with = "any_float")]
    pub last_loss: Option<f64>,
    /// SHA-256 of the hypotheses that the score was computed from, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypotheses: Option<String>,
    /// The term of training whose mean the score is, of a claim on one. It has no hypotheses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<TrainedTerm>,
}

impl Evidence {
    /// Every score that a verdict may rest on.
    pub(crate) fn scores(&self) -> impl Iterator<Item = &RunScore> {
        let of_points = self.points.iter().flat_map(|point| &point.runs);
        self.runs.iter().chain(&self.baseline_runs).chain(of_points)
    }
}

impl RunScore {
    /// A run that ended with a score.
    #[must_use]
    pub fn scored(seed: u64, score: f64) -> Self {
        Self { seed: Some(seed), score: Some(score), ..Self::default() }
    }

    /// A score from outside.
    #[must_use]
    pub fn external(score: f64) -> Self {
        Self { score: Some(score), ..Self::default() }
    }
}

/// A row of the table of measured spreads, as a verdict uses it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedSpread {
    /// Name of the row.
    pub row: String,
    /// Standard deviation of one run's score.
    pub sd: f64,
    /// Degrees of freedom; `None` where the number of runs is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freedom: Option<u32>,
    /// It was measured on another system than the one that is judged.
    pub carried: bool,
}

impl StatedSpread {
    /// The row that a claim of this recipe names, as the table has it now; `None` where it names none, or one that is not there.
    #[must_use]
    pub fn named(claim: &ClaimSpec, recipe: &str) -> Option<Self> {
        let row = spread(claim.spread.as_deref()?)?;
        let carried = !row.is_of(recipe);
        Some(Self { row: row.name.clone(), sd: row.sd, freedom: row.freedom(), carried })
    }

    /// "sd 0.5 of the row NAME, carried over, 12 degrees of freedom".
    #[must_use]
    pub fn words(&self) -> String {
        let whose = if self.carried { "carried over" } else { "of this very system" };
        let freedom = self.freedom.map_or_else(|| "unknown".to_owned(), |freedom| freedom.to_string());
        format!("sd {} of the row {}, {whose}, {freedom} degrees of freedom", self.sd, self.row)
    }
}

/// The standard deviation that a claim states, as it stands: printed, measured or assumed. For alarms and hints; a verdict counts it
/// by its source.
#[must_use]
pub fn stated_sigma(claim: &ClaimSpec) -> Option<f64> {
    let measured = || claim.spread.as_deref().and_then(spread).map(|row| row.sd);
    claim.sigma.or_else(measured).or(claim.assumed_sigma)
}

/// What earlier plans spent of a claim's 5 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// All of it together.
    pub alpha: f64,
    /// The last look of each plan.
    pub looks: Vec<SpentLook>,
}

/// How far an earlier plan went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpentLook {
    /// When its last verdict was recorded, UTC.
    pub time: String,
    /// The plan.
    pub plan: LookPlan,
    /// Seeds of its last look.
    pub seeds: u32,
    /// What it spent up to there.
    pub alpha: f64,
}

/// What the runs scored at a point of a trajectory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointScores {
    /// The claim's `at`.
    pub at: u64,
    /// In the order of their planned seeds.
    pub runs: Vec<RunScore>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// To its end, with a score.
    #[default]
    Scored,
    /// The loss became non-finite for good: worse than any score.
    Diverged,
    /// Not to its end, for a reason outside of the recipe. The look waits for it.
    Missing,
}

/// An interval around a measured number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Two-sided level, e.g. 0.95. Limits at another level are scaled as a normal distribution's, each side by itself.
    pub level: f64,
}

/// Errors of a test set, for exact limits. Of a metric of right answers those are what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorCount {
    /// Wrong words (or characters, sentences).
    pub errors: u64,
    /// All of the references'.
    pub total: u64,
    /// Score of a rate of 1: 100 where the score is in percent.
    pub scale: f64,
}

impl ErrorCount {
    /// The counts behind an error rate, or a classifier's accuracy or error; `None` of other metrics, and where no reference has a unit.
    #[must_use]
    pub fn of(value: &MetricValue) -> Option<Self> {
        let count = |key: &str| value.detail.get(key)?.as_u64();
        let (errors, total) = match value.signature.convention {
            Convention::ErrorRate(_) => (count("errors")?, count("reference_length")?),
            Convention::Accuracy(options) => {
                let (right, wrong) = (count("right")?, count("wrong")?);
                (if options.share == Share::Right { right } else { wrong }, right + wrong)
            }
            _ => return None,
        };
        (total > 0).then_some(Self { errors, total, scale: 100.0 })
    }
}

/// The type in which a probe saw products computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// IEEE single.
    Fp32,
    /// 10 bits of fraction in an f32 product.
    Tf32,
    /// IEEE half.
    Fp16,
    /// Brain float.
    Bf16,
    /// Rounded to brain float and multiplied as f32: the numbers are real, the speed says nothing.
    Bf16Emulated,
}

impl Precision {
    /// The name that records and explanations use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Bf16Emulated => "emulated bf16",
        }
    }

    /// The precision of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Fp32, Self::Tf32, Self::Fp16, Self::Bf16, Self::Bf16Emulated]
            .into_iter()
            .find(|precision| precision.name() == name)
    }
}

/// A timing of two arms in alternating blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedEvidence {
    /// Speed of the arm over the baseline's.
    pub ratio: f64,
    /// Its interval.
    pub interval: Interval,
    /// What was held equal.
    pub protocol: RatioProtocol,
    /// Global batch of the arm, in the recipe's unit.
    pub batch: u64,
    /// Global batch of the baseline.
    pub baseline_batch: u64,
}

/// JSON has no NaN and no infinity: those are written as text, so that a diverged loss survives the ledger.
mod any_float {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
    }

    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        let written =
            value.map(|v| if v.is_finite() { Written::Number(v) } else { Written::Text(v.to_string()) });
        written.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        match Option::<Written>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Written::Number(value)) => Ok(Some(value)),
            Some(Written::Text(text)) => text.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}
