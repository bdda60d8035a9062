//! Options of the commands that check and explain results.

use std::path::PathBuf;

use burn::tensor::FloatDType;
use clap::{Args, ValueEnum};
use zoo_models::precision::Compute;
use zoo_recipes::ComputeType;

use super::LedgerFile;
use crate::completing;

/// Precision of the matrix products in comparisons with references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComputeChoice {
    /// IEEE single
    Fp32,
    /// IEEE half
    Fp16,
    /// Brain float
    Bf16,
}

impl ComputeChoice {
    /// Precision as the models use it.
    pub fn compute(self) -> Compute {
        match self {
            Self::Fp32 => Compute::FP32,
            Self::Fp16 => Compute(FloatDType::F16),
            Self::Bf16 => Compute(FloatDType::BF16),
        }
    }

    /// Precision as a recipe names it.
    pub fn spec(self) -> ComputeType {
        match self {
            Self::Fp32 => ComputeType::Fp32,
            Self::Fp16 => ComputeType::Fp16,
            Self::Bf16 => ComputeType::Bf16,
        }
    }
}

/// Arguments of `zoo verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Names or paths of recipes [default: all built-in]; with --kernels, operation name prefixes
    #[arg(add = completing::recipes())]
    pub recipes: Vec<String>,
    /// Check up to this level, recorded or not
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub to: Option<crate::evidence::rung::Rung>,
    /// Compute type of the parity check; half types check up to the gradients, with wider limits
    #[arg(long, value_enum, default_value_t = ComputeChoice::Fp32, value_name = "TYPE")]
    pub compute: ComputeChoice,
    /// Folder of fixtures to compare with [default: the built-in ones]
    #[arg(long, value_name = "FOLDER")]
    pub fixtures: Option<PathBuf>,
    /// Ledger whose runs small-run and full-run recompute [default: ledger.jsonl in --home]
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Only compare zoo's own operations with Burn's on --device
    #[arg(long, conflicts_with_all = ["to", "fixtures", "ledger"])]
    pub kernels: bool,
}

/// Arguments of `zoo regress`.
#[derive(Debug, Args)]
pub struct RegressArgs {
    /// Recipes by name, path, task or tag; repeatable [default: all]
    #[arg(long, value_delimiter = ',', value_name = "RECIPE|TASK|TAG,…", add = completing::recipes())]
    pub select: Vec<String>,
    /// Run this tier: smoke, full, or another one
    #[arg(long, default_value = "smoke", add = completing::tiers())]
    pub tier: String,
    /// Number of seeds to run
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub seeds: u32,
    /// Recorded results to compare with
    #[arg(long, default_value = "results/data/ledger.jsonl", value_name = "FILE")]
    pub baseline: PathBuf,
    /// Judge the newest records of this ledger again, without running anything
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Accepted false-alarm rate of all quality comparisons together
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    pub alarm_rate: f64,
    /// Tolerated relative drop of the speed-up of one arm over another
    #[arg(long, default_value_t = 0.10, value_name = "SHARE")]
    pub speed_tolerance: f64,
    /// Compare quality with records of other devices as well
    #[arg(long)]
    pub any_device: bool,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write GitHub annotations on the claims' lines to stderr, and the step summary
    #[arg(long)]
    pub github: bool,
}

/// Arguments of `zoo explain`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["run", "hypotheses"]))]
pub struct ExplainArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: Option<PathBuf>,
    /// Hypotheses of any framework, one per line
    #[arg(long, value_name = "FILE")]
    pub hypotheses: Option<PathBuf>,
    /// References; repeatable for several references per segment [default: those of the recipe's
    /// data]
    #[arg(long, value_name = "FILE", requires = "hypotheses")]
    pub references: Vec<PathBuf>,
    /// The published number [default: that of the claim]
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    pub claimed: Option<f64>,
    /// Recipe with the claim, for files
    #[arg(long, requires = "hypotheses", add = completing::recipes())]
    pub recipe: Option<String>,
    /// Number of the claim in `zoo show`, from 1 [default: the first that states a score]
    #[arg(long, value_name = "N")]
    pub claim: Option<usize>,
    /// Evaluation set [default: the claim's]
    #[arg(long, value_name = "SET", add = completing::eval_sets())]
    pub eval: Option<String>,
    /// How the measured score is computed [default: as the claim says, else sacreBLEU's default]
    #[arg(long, value_name = "SIGNATURE")]
    pub signature: Option<String>,
    /// Language of Moses' tokenizer: en, de or fr [default: the recipe's target]
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
    /// Hypotheses of another search; repeatable
    #[arg(long, value_name = "NAME=FILE", requires = "hypotheses")]
    pub search: Vec<String>,
    /// Hypotheses of other weights, e.g. without averaging; repeatable
    #[arg(long, value_name = "NAME=FILE", requires = "hypotheses")]
    pub weights: Vec<String>,
    /// Decode what the run has not stored: every search of the recipe, with and without averaging
    #[arg(long, requires = "run")]
    pub decode: bool,
}

/// Arguments of `zoo bundle`.
#[derive(Debug, Args)]
pub struct BundleArgs {
    /// A ledger's entry (its number or the beginning of its hash), or a run (its folder,
    /// NAME[:ARM[:SEED]] or @last)
    #[arg(add = completing::runs())]
    pub run: String,
    /// File to write [default: ./NAME-HASH.bundle.json]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Recipe to use if it is not built in or has changed since the run
    #[arg(long, value_name = "RECIPE", add = completing::recipes())]
    pub recipe: Option<String>,
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
}

/// Arguments of `zoo check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Names or paths of recipes [default: all built-in]
    #[arg(add = completing::recipes())]
    pub recipes: Vec<String>,
}

/// Arguments of `zoo align`.
#[derive(Debug, Args)]
pub struct AlignArgs {
    /// Name or path of a recipe
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// Another framework's tensors, in the layout of docs/align.md
    pub file: PathBuf,
    /// Compute type; half types compare up to the gradients, with wider limits
    #[arg(long, value_enum, default_value_t = ComputeChoice::Fp32, value_name = "TYPE")]
    pub compute: ComputeChoice,
}
