//! Content of a page, collected by the caller.

use zoo_recipes::ClaimSpec;

use super::media::Sample;
use super::training_log::TrainingLog;
use crate::metrics::MetricValue;
use crate::profile::Profile;
use crate::verdict::Verdict;

/// The runs of one recipe.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The recipe that was run.
    pub recipe: RecipePart,
    /// The program that wrote the page: version and commit.
    pub program: String,
    /// Time of writing, UTC.
    pub made: String,
    /// The verdicts.
    pub verdicts: VerdictsPart,
    /// The runs.
    pub runs: Vec<RunPart>,
    /// Saved profiles of the runs.
    pub profiles: Vec<ProfilePart>,
    /// Evaluations of the runs.
    pub evaluations: Vec<EvaluationPart>,
    /// Missing data, with reasons.
    pub missing: Vec<String>,
}

/// The recipe.
#[derive(Debug, Clone, Default)]
pub struct RecipePart {
    /// Name of the recipe.
    pub name: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Task of the recipe.
    pub task: String,
    /// One-line summary.
    pub summary: String,
    /// Where it was published.
    pub origin: String,
    /// The claims.
    pub claims: Vec<ClaimSpec>,
    /// Keys that were changed.
    pub overrides: Vec<String>,
    /// The resolved recipe as TOML; one for each arm if the arms differ.
    pub toml: Vec<(String, String)>,
}

/// The verdicts and their origin.
#[derive(Debug, Clone, Default)]
pub struct VerdictsPart {
    /// Whether they come from a record or from a new judgement, in words.
    pub from: String,
    /// Verdicts in the order of the claims.
    pub judged: Vec<JudgedPart>,
}

/// A verdict.
#[derive(Debug, Clone)]
pub struct JudgedPart {
    /// Number of the claim, from 1.
    pub number: usize,
    /// Arm that was compared with the claim.
    pub arm: String,
    /// Text of the claim.
    pub statement: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// A run.
#[derive(Debug, Clone, Default)]
pub struct RunPart {
    /// Arm of the run.
    pub arm: String,
    /// Seed of the run.
    pub seed: u64,
    /// How it ended, or that it has not ended.
    pub state: String,
    /// Counts and times with their names; all runs have the same names.
    pub numbers: Vec<(String, String)>,
    /// Device, precision, commit, …
    pub environment: Vec<(String, String)>,
    /// Its log; `None` if it cannot be read.
    pub log: Option<TrainingLog>,
}

impl RunPart {
    /// Name of the run: `fp32, seed 1`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, seed {}", self.arm, self.seed)
    }
}

/// The saved profile of one run.
#[derive(Debug, Clone, Default)]
pub struct ProfilePart {
    /// Index of the run.
    pub run: usize,
    /// Type of matrix products of the profiled updates.
    pub compute: String,
    /// Program and machine that made the profile, in words.
    pub from: String,
    /// The profiled updates.
    pub profile: Profile,
}

/// An evaluation set decoded with a search, by one run.
#[derive(Debug, Clone, Default)]
pub struct EvaluationPart {
    /// Index of the run.
    pub run: usize,
    /// Name of the evaluation set.
    pub eval: String,
    /// Name of the search.
    pub decode: String,
    /// Number of updates of the checkpoint; `None` for the weights that the recipe evaluates.
    pub update: Option<u64>,
    /// Scores of the outputs.
    pub scores: Vec<MetricValue>,
    /// Decoding time in seconds.
    pub seconds: f64,
    /// Hypotheses, one per line; empty for a checkpoint, of which only the scores are shown.
    pub hypotheses: Vec<String>,
    /// References, one per line.
    pub references: Vec<String>,
    /// Source sentences; `None` for recordings, or if they are not available.
    pub sources: Option<Vec<String>>,
    /// Pictures and sounds.
    pub samples: Vec<Sample>,
}
