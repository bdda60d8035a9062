//! What a page shows: gathered by the caller, as it was found.

use zoo_recipes::ClaimSpec;

use super::media::Sample;
use super::training_log::TrainingLog;
use crate::metrics::MetricValue;
use crate::verdict::Verdict;

/// The runs of one recipe.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// What was to be reproduced.
    pub recipe: RecipePart,
    /// The program that wrote the page: version and commit.
    pub program: String,
    /// When, UTC.
    pub made: String,
    /// The verdicts.
    pub verdicts: VerdictsPart,
    /// The runs.
    pub runs: Vec<RunPart>,
    /// Their evaluations.
    pub evaluations: Vec<EvaluationPart>,
    /// What could not be had, and why.
    pub missing: Vec<String>,
}

/// The recipe.
#[derive(Debug, Clone, Default)]
pub struct RecipePart {
    /// Name.
    pub name: String,
    /// Tier; none: the published size.
    pub tier: Option<String>,
    /// Task.
    pub task: String,
    /// A line on it.
    pub summary: String,
    /// Where it was published.
    pub origin: String,
    /// What was published.
    pub claims: Vec<ClaimSpec>,
    /// Keys that were changed.
    pub overrides: Vec<String>,
    /// Resolved, as TOML; by arm where they differ.
    pub toml: Vec<(String, String)>,
}

/// The verdicts, and where they come from.
#[derive(Debug, Clone, Default)]
pub struct VerdictsPart {
    /// Record or judgement of now, in words.
    pub from: String,
    /// In the order of the claims.
    pub judged: Vec<JudgedPart>,
}

/// A verdict.
#[derive(Debug, Clone)]
pub struct JudgedPart {
    /// Number of the claim, from 1.
    pub number: usize,
    /// Arm that was held against it.
    pub arm: String,
    /// What it says.
    pub statement: String,
    /// What came out.
    pub verdict: Verdict,
}

/// A run.
#[derive(Debug, Clone, Default)]
pub struct RunPart {
    /// Arm.
    pub arm: String,
    /// Seed.
    pub seed: u64,
    /// How it ended, or that it did not.
    pub state: String,
    /// Counts and times, with their names; the same names for every run.
    pub numbers: Vec<(String, String)>,
    /// Device, precision, commit, …
    pub environment: Vec<(String, String)>,
    /// Its log; none where it cannot be read.
    pub log: Option<TrainingLog>,
}

impl RunPart {
    /// `fp32, seed 1`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, seed {}", self.arm, self.seed)
    }
}

/// An evaluation set decoded with a search, by one run.
#[derive(Debug, Clone, Default)]
pub struct EvaluationPart {
    /// Index of the run.
    pub run: usize,
    /// Evaluation set.
    pub eval: String,
    /// Search.
    pub decode: String,
    /// Updates of the checkpoint; none: the weights that the recipe evaluates.
    pub update: Option<u64>,
    /// Scores.
    pub scores: Vec<MetricValue>,
    /// Seconds of decoding.
    pub seconds: f64,
    /// Hypotheses, one a line; empty of a checkpoint, which is only shown by its scores.
    pub hypotheses: Vec<String>,
    /// References.
    pub references: Vec<String>,
    /// What was translated; none of recordings, or where it is not at hand.
    pub sources: Option<Vec<String>>,
    /// Pictures and sounds.
    pub samples: Vec<Sample>,
}
