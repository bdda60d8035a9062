//! The content of a line of the ledger.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zoo_recipes::{ClaimSpec, Moment};

use crate::verdict::{Evidence, Interval, Verdict};

/// One run, or one judgement over several runs, with everything needed to judge again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Time when the record was written, UTC, `2026-01-31T23:59:59Z`.
    pub time: String,
    /// Name of the recipe.
    pub recipe: String,
    /// SHA-256 of the resolved recipe, hexadecimal.
    pub recipe_hash: String,
    /// SHA-256 of the recipe without its claims, its words and changes of its free keys: identifies
    /// the system that was judged. Records of earlier programs have no such hash, or one that
    /// includes the words and changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The system's hash as the earlier programs computed it, to find the level that they spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_with_words: Option<String>,
    /// Arm; `None` if the record is about several.
    pub arm: Option<String>,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Seeds, in the order of the plan.
    pub seeds: Vec<u64>,
    /// How the run ended.
    pub end: RunEnd,
    /// Reason, if it did not finish.
    pub reason: Option<String>,
    /// Commit of the program.
    pub commit: Option<String>,
    /// Whether the program's working tree differed from that commit (`results/` excepted).
    pub dirty: bool,
    /// Earlier commits under which parts of the run were made.
    pub commits_crossed: Vec<String>,
    /// SHA-256 of `Cargo.lock`.
    pub lock_hash: Option<String>,
    /// Device, e.g. `cpu` or `cuda:0`.
    pub device: Option<String>,
    /// Name of the CPU or accelerator.
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
    /// Scores at intermediate points, for trajectories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_the_way: Vec<ScoreRecord>,
    /// Durations in seconds, by stage.
    pub durations: BTreeMap<String, f64>,
    /// Keys changed with `--set`, with their values.
    pub overrides: BTreeMap<String, String>,
    /// Claims with their evidence and verdicts.
    pub judgements: Vec<Judgement>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// Key of a record's overrides that names initial weights. It is not a key of the recipe.
const INITIAL_WEIGHTS: &str = "init-from";

impl Record {
    /// The changes to the recipe, as they were given: `KEY=VALUE`.
    pub fn changes(&self) -> Vec<String> {
        let of_recipe = self.overrides.iter().filter(|(key, _)| *key != INITIAL_WEIGHTS);
        of_recipe.map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// The recipe's claims at the time of the record. Each was judged, in one arm or several.
    pub fn claims(&self) -> Vec<ClaimSpec> {
        let mut found: Vec<ClaimSpec> =
            self.judgements.iter().map(|judgement| judgement.claim.clone()).collect();
        found.dedup();
        found
    }

    /// Scores at the end and at intermediate points.
    pub fn all_scores(&self) -> impl Iterator<Item = &ScoreRecord> {
        self.scores.iter().chain(&self.on_the_way)
    }

    /// Whether this is evidence of this program: a finished run whose numbers all come from kept
    /// outputs. All other records are shown as external and never counted, whatever they state.
    pub fn is_own_evidence(&self) -> bool {
        let kept = self.all_scores().any(|score| score.hypotheses.is_some());
        self.end == RunEnd::Finished && kept && self.without_outputs().is_empty()
    }
}

/// The state of a run's folder when the record was written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunRecord {
    /// Name of the arm.
    pub arm: String,
    /// Random seed of the run.
    pub seed: u64,
    /// Path below the home's folder of runs, with `/`. Kept hypotheses have the same path.
    pub folder: String,
    /// Binary and machine that began the run, as in `run.json`.
    pub environment: serde_json::Value,
    /// SHA-256, hexadecimal, of `run.json`, `recipe.toml`, `trained.json` and `log.jsonl`.
    pub files: BTreeMap<String, String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// The run has started. A later record, if there is one, says how it ended.
    Started,
    /// The run finished.
    #[default]
    Finished,
    /// An error or divergence stopped the run; `reason` says which.
    Failed,
    /// The user or the machine stopped the run; it can be resumed.
    Interrupted,
    /// The run took place elsewhere; only its results were judged here.
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
    /// Evaluation set that was decoded.
    pub eval: String,
    /// Search that decoded it.
    pub decode: String,
    /// Arm of the run.
    pub arm: String,
    /// Seed of the run.
    pub seed: u64,
    /// The point in training, for an intermediate score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment: Option<Moment>,
    /// Name of the metric.
    pub metric: String,
    /// Signature: the convention of the metric.
    pub signature: String,
    /// The score, in the metric's unit.
    pub value: f64,
    /// Interval from resampling the test set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The hypotheses; `None` if the score is external.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypotheses: Option<HypothesesFile>,
}

/// A kept file of hypotheses, one per line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HypothesesFile {
    /// Path below the folder of hypotheses, with `/`.
    pub path: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// A verdict with everything it was derived from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The claim as the recipe stated it.
    pub claim: ClaimSpec,
    /// Evidence for the claim.
    pub evidence: Evidence,
    /// The resulting verdict.
    pub verdict: Verdict,
}

impl Judgement {
    /// Judges the claim on the evidence.
    #[must_use]
    pub fn of(claim: ClaimSpec, evidence: Evidence) -> Self {
        let verdict = crate::verdict::judge(&claim, &evidence);
        Self { claim, evidence, verdict }
    }
}
