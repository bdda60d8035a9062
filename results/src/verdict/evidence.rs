//! Measurements in the form that a verdict needs.

use serde::{Deserialize, Serialize};
use zoo_recipes::{ClaimSpec, RatioProtocol};

use super::rules::Rules;
use crate::metrics::{Convention, MetricValue, Share, TrainedTerm};
use crate::statistics::{LookPlan, spread};

/// All measurements that bear on one claim. Fields that the claim's kind does not use may keep
/// their defaults.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// Rules that the verdict follows.
    #[serde(default = "Rules::unnamed", skip_serializing_if = "Rules::is_unnamed")]
    pub rules: Rules,
    /// Arm that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// `parity`, `ratio`: the arm that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Evaluation set that was decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval: Option<String>,
    /// Search that decoded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<String>,
    /// Signature: the metric's convention for the scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Runs in the order of their planned seeds.
    pub runs: Vec<RunScore>,
    /// `parity`: the baseline arm's runs, paired by seed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baseline_runs: Vec<RunScore>,
    /// `trajectory`: the runs' scores at intermediate points, in rising order of the points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointScores>,
    /// The planned looks: numbers of seeds at which a verdict is attempted.
    pub plan: LookPlan,
    /// The row of the table of spreads that the claim names, as it was at the time of judging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<StatedSpread>,
    /// The part of the 5 % level that earlier plans for the same claim spent.
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
    /// Tier. Results of any tier other than `full` (or none) are not comparable with published
    /// numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Keys changed with `--set` that the recipe does not list as free.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// Whether the scores come from outside this program. Conditions that are not given are then
    /// assumed to be the claim's, and a note says so.
    pub external: bool,
}

/// One run (one seed) of an arm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunScore {
    /// Seed; `None` for an external score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How the run ended.
    pub status: RunStatus,
    /// The score, in the claim's unit. Required if `status` is `scored`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// `bound`: the score's interval from resampling the test set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// `bound`: errors and words, if the score is an error rate. The verdict uses the wider of the
    /// limits from these counts and those of `interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<ErrorCount>,
    /// `parity`: interval of the score minus the same seed's baseline score, from paired resampling
    /// of the test set.
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
    /// The training term whose mean is the score, for a claim on such a term. It has no hypotheses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<TrainedTerm>,
}

impl Evidence {
    /// All runs whose scores a verdict may use.
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

    /// A score from outside this program.
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
    /// Degrees of freedom; `None` if the number of runs is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freedom: Option<u32>,
    /// Whether it was measured on a system other than the judged one.
    pub carried: bool,
}

impl StatedSpread {
    /// The row that a claim of this recipe names, from the present table. `None` if the claim names
    /// no row, or one that is not in the table.
    #[must_use]
    pub fn named(claim: &ClaimSpec, recipe: &str) -> Option<Self> {
        let row = spread(claim.spread.as_deref()?)?;
        let carried = !row.is_of(recipe);
        Some(Self { row: row.name.clone(), sd: row.sd, freedom: row.freedom(), carried })
    }

    /// The spread in words: "sd 0.5 of the row NAME, carried over, 12 degrees of freedom".
    #[must_use]
    pub fn words(&self) -> String {
        let whose = if self.carried { "carried over" } else { "of this very system" };
        let freedom = self.freedom.map_or_else(|| "unknown".to_owned(), |freedom| freedom.to_string());
        format!("sd {} of the row {}, {whose}, {freedom} degrees of freedom", self.sd, self.row)
    }
}

/// The standard deviation that a claim states, unadjusted, whether printed, measured or assumed.
/// Used for alarms and hints; a verdict weights it by its source.
#[must_use]
pub fn stated_sigma(claim: &ClaimSpec) -> Option<f64> {
    let measured = || claim.spread.as_deref().and_then(spread).map(|row| row.sd);
    claim.sigma.or_else(measured).or(claim.assumed_sigma)
}

/// What earlier plans spent of a claim's 5 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// Sum over all plans.
    pub alpha: f64,
    /// The last look of each plan.
    pub looks: Vec<SpentLook>,
}

/// How far an earlier plan went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpentLook {
    /// Time of its last recorded verdict, UTC.
    pub time: String,
    /// The plan.
    pub plan: LookPlan,
    /// Number of seeds at its last look.
    pub seeds: u32,
    /// Level that it spent up to that look.
    pub alpha: f64,
}

/// The runs' scores at one point of a trajectory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointScores {
    /// The point: the claim's `at`.
    pub at: u64,
    /// Runs in the order of their planned seeds.
    pub runs: Vec<RunScore>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// The run finished with a score.
    #[default]
    Scored,
    /// The loss became non-finite and did not recover. This is worse than any score.
    Diverged,
    /// The run did not finish, for a reason outside the recipe. The look waits for it.
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
    /// Two-sided level, e.g. 0.95. Limits at another level are scaled as those of a normal
    /// distribution, each side separately.
    pub level: f64,
}

/// Errors on a test set, for exact limits. For a metric of correct answers, the counts are those of
/// correct answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorCount {
    /// Wrong words (or characters, sentences).
    pub errors: u64,
    /// Total of the references.
    pub total: u64,
    /// Score at a rate of 1: 100 if the score is in percent.
    pub scale: f64,
}

impl ErrorCount {
    /// The counts behind an error rate, or behind a classifier's accuracy or error. `None` for
    /// other metrics, and if the references have no units.
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

/// The number type of products, as a probe observed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// IEEE single precision.
    Fp32,
    /// TF32: 10 bits of fraction in an f32 product.
    Tf32,
    /// IEEE half precision.
    Fp16,
    /// Brain float.
    Bf16,
    /// Rounded to brain float and multiplied as f32. The numbers are real; the speed is
    /// meaningless.
    Bf16Emulated,
}

impl Precision {
    /// The name used in records and explanations.
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

    /// The precision with this name.
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
    /// Speed of the arm divided by the baseline's.
    pub ratio: f64,
    /// Interval of the ratio.
    pub interval: Interval,
    /// The protocol: what is held equal between the arms.
    pub protocol: RatioProtocol,
    /// Global batch of the arm, in the recipe's unit.
    pub batch: u64,
    /// Global batch of the baseline.
    pub baseline_batch: u64,
}

/// JSON has neither NaN nor infinity. They are written as text, so that a diverged loss survives in
/// the ledger.
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
