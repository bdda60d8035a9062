//! What a line of the ledger says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zoo_recipes::{ClaimSpec, Moment};

use crate::verdict::{Evidence, Interval, Verdict};

/// One run, or one judgement over runs, with everything needed to judge again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// When the record was written, UTC, `2026-01-31T23:59:59Z`.
    pub time: String,
    /// Name of the recipe.
    pub recipe: String,
    /// SHA-256 of the resolved recipe, hexadecimal.
    pub recipe_hash: String,
    /// The same of the recipe without its claims, its words and changes of its free keys: the system that was judged. Records of earlier
    /// programs have none, or one with the words and changes in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The system's hash as those programs formed it, so that what they spent is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_with_words: Option<String>,
    /// Arm; `None` where the record is about several.
    pub arm: Option<String>,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Seeds, in the order of the plan.
    pub seeds: Vec<u64>,
    /// How the run ended.
    pub end: RunEnd,
    /// Why, where it did not finish.
    pub reason: Option<String>,
    /// Commit of the program.
    pub commit: Option<String>,
    /// The program's working tree differed from that commit (`results/` aside).
    pub dirty: bool,
    /// Earlier commits under which parts of the run were made.
    pub commits_crossed: Vec<String>,
    /// SHA-256 of `Cargo.lock`.
    pub lock_hash: Option<String>,
    /// Device, e.g. `cpu` or `cuda:0`.
    pub device: Option<String>,
    /// The machine in words: processor or accelerator.
    pub hardware: Option<String>,
    /// Driver of the accelerator.
    pub driver: Option<String>,
    /// Product type that a probe found, by arm.
    pub precision: BTreeMap<String, String>,
    /// Digests of the prepared data, by name.
    pub data: BTreeMap<String, String>,
    /// The runs behind the scores. Records of earlier programs have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunRecord>,
    /// Scores of this run.
    pub scores: Vec<ScoreRecord>,
    /// Scores of points on the way, for trajectories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_the_way: Vec<ScoreRecord>,
    /// Seconds, by stage.
    pub durations: BTreeMap<String, f64>,
    /// Keys changed with `--set`, with their values.
    pub overrides: BTreeMap<String, String>,
    /// Claims, what they were held against, and what came out.
    pub judgements: Vec<Judgement>,
    /// Anything else to know.
    pub notes: Vec<String>,
}

/// Key of a record's overrides that names weights to start from, and not a key of the recipe.
const INITIAL_WEIGHTS: &str = "init-from";

impl Record {
    /// What was changed in the recipe, as it was given: `KEY=VALUE`.
    pub fn changes(&self) -> Vec<String> {
        let of_recipe = self.overrides.iter().filter(|(key, _)| *key != INITIAL_WEIGHTS);
        of_recipe.map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// The claims of the recipe as they were: each was judged, in one arm or several.
    pub fn claims(&self) -> Vec<ClaimSpec> {
        let mut found: Vec<ClaimSpec> =
            self.judgements.iter().map(|judgement| judgement.claim.clone()).collect();
        found.dedup();
        found
    }

    /// Scores at the end and of points on the way.
    pub fn all_scores(&self) -> impl Iterator<Item = &ScoreRecord> {
        self.scores.iter().chain(&self.on_the_way)
    }

    /// Whether this is evidence of this program: a finished run whose numbers all come from outputs that were kept. Anything else is
    /// shown as external and never counted, whatever it says of itself.
    pub fn is_own_evidence(&self) -> bool {
        let kept = self.all_scores().any(|score| score.hypotheses.is_some());
        self.end == RunEnd::Finished && kept && self.without_outputs().is_empty()
    }
}

/// A run as its folder was when the record was written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunRecord {
    /// Arm.
    pub arm: String,
    /// Seed.
    pub seed: u64,
    /// Path below the home's folder of runs, with `/`; kept hypotheses have the same one.
    pub folder: String,
    /// Binary and machine that began the run, as `run.json` has them.
    pub environment: serde_json::Value,
    /// SHA-256, hexadecimal, of `run.json`, `recipe.toml`, `trained.json` and `log.jsonl`.
    pub files: BTreeMap<String, String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// It has begun; what became of it is in a later record, or nothing did.
    Started,
    /// To its end.
    #[default]
    Finished,
    /// By an error or by divergence; `reason` says which.
    Failed,
    /// By the user or the machine; it can go on.
    Interrupted,
    /// It ran elsewhere: only its results were judged here.
    External,
}

impl std::fmt::Display for RunEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::External => "external",
        })
    }
}

/// One score and the file it was computed from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScoreRecord {
    /// Evaluation set.
    pub eval: String,
    /// Search.
    pub decode: String,
    /// Arm.
    pub arm: String,
    /// Seed.
    pub seed: u64,
    /// When, of a point on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment: Option<Moment>,
    /// Metric.
    pub metric: String,
    /// Its convention.
    pub signature: String,
    /// The score.
    pub value: f64,
    /// Interval from resampling the test set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The hypotheses; `None` where the score was given from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypotheses: Option<HypothesesFile>,
}

/// A kept file of hypotheses, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HypothesesFile {
    /// Path below the folder of hypotheses, with `/`.
    pub path: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// A verdict with all that it was derived from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The claim as the recipe had it.
    pub claim: ClaimSpec,
    /// What was held against it.
    pub evidence: Evidence,
    /// What came out.
    pub verdict: Verdict,
}

impl Judgement {
    /// Judges.
    #[must_use]
    pub fn of(claim: ClaimSpec, evidence: Evidence) -> Self {
        let verdict = crate::verdict::judge(&claim, &evidence);
        Self { claim, evidence, verdict }
    }
}
