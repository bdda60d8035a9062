//! Options of the commands that check and explain what there is.

use std::path::PathBuf;

use burn::tensor::FloatDType;
use clap::{Args, ValueEnum};
use zoo_models::precision::Compute;

use super::LedgerFile;

/// Type of the products that references are compared in.
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
    /// As models take it.
    pub fn compute(self) -> Compute {
        match self {
            Self::Fp32 => Compute::FP32,
            Self::Fp16 => Compute(FloatDType::F16),
            Self::Bf16 => Compute(FloatDType::BF16),
        }
    }
}

/// `zoo verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Names or paths; none: every recipe that is built in. With --kernels, how names of operations begin
    pub recipes: Vec<String>,
    /// Climb to this rung, shown before or not
    #[arg(long, value_enum, value_name = "RUNG")]
    pub to: Option<crate::evidence::Rung>,
    /// Type of the products in which parity is shown; in halves up to the gradients, within wider limits
    #[arg(long, value_enum, default_value_t = ComputeChoice::Fp32, value_name = "TYPE")]
    pub compute: ComputeChoice,
    /// Fixtures to climb against [default: those that the program carries]
    #[arg(long, value_name = "FOLDER")]
    pub fixtures: Option<PathBuf>,
    /// Ledger whose runs small-run and full-run derive again [default: ledger.jsonl in --home]
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Hold own operations against the same in Burn's on --device, and climb nothing
    #[arg(long, conflicts_with_all = ["to", "fixtures", "ledger"])]
    pub kernels: bool,
}

/// `zoo regress`.
#[derive(Debug, Args)]
pub struct RegressArgs {
    /// Recipes by name, path, task or tag; repeatable [default: all]
    #[arg(long, value_delimiter = ',', value_name = "RECIPE|TASK|TAG,…")]
    pub select: Vec<String>,
    /// Size that is run: smoke, full, or another tier
    #[arg(long, default_value = "smoke")]
    pub tier: String,
    /// Number of seeds to run
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub seeds: u32,
    /// Recorded results to compare with
    #[arg(long, default_value = "results/ledger.jsonl", value_name = "FILE")]
    pub baseline: PathBuf,
    /// Run nothing: judge the newest records of this ledger again
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Rate of false alarms that is accepted, of all quality comparisons together
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    pub alarm_rate: f64,
    /// Share by which the speed of one arm over another may fall
    #[arg(long, default_value_t = 0.10, value_name = "SHARE")]
    pub speed_tolerance: f64,
    /// Compare quality with records of other devices as well
    #[arg(long)]
    pub any_device: bool,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Annotate the claims' lines (on stderr) and write the step summary, as GitHub's workflows read them
    #[arg(long)]
    pub github: bool,
}

/// `zoo explain`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["run", "hypotheses"]))]
pub struct ExplainArgs {
    /// Folder of a run
    pub run: Option<PathBuf>,
    /// Hypotheses of any framework, one a line
    #[arg(long, value_name = "FILE")]
    pub hypotheses: Option<PathBuf>,
    /// References; repeatable for several references a segment [default: those of the recipe's data]
    #[arg(long, value_name = "FILE", requires = "hypotheses")]
    pub references: Vec<PathBuf>,
    /// The published number [default: that of the claim]
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    pub claimed: Option<f64>,
    /// Recipe with the claim, for files
    #[arg(long, requires = "hypotheses")]
    pub recipe: Option<String>,
    /// Number of the claim in `zoo show`, from 1 [default: the first that states a score]
    #[arg(long, value_name = "N")]
    pub claim: Option<usize>,
    /// Evaluation set [default: the claim's]
    #[arg(long, value_name = "SET")]
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

/// `zoo bundle`.
#[derive(Debug, Args)]
pub struct BundleArgs {
    /// Folder of a run, or a ledger's entry: its number or the beginning of its hash
    pub run: String,
    /// Where to [default: NAME-HASH.bundle.json here]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The recipe, where it is not built in or has changed since
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// Which ledger
    #[command(flatten)]
    pub file: LedgerFile,
}

/// `zoo check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Names or paths; none: every recipe that is built in
    pub recipes: Vec<String>,
}

/// `zoo align`.
#[derive(Debug, Args)]
pub struct AlignArgs {
    /// Name or path of a recipe
    pub recipe: String,
    /// What another framework computed, laid out as docs/align.md says
    pub file: PathBuf,
    /// Type of the products; in halves it is compared up to the gradients, within wider limits
    #[arg(long, value_enum, default_value_t = ComputeChoice::Fp32, value_name = "TYPE")]
    pub compute: ComputeChoice,
}
