//! Options of the commands that find, show, evaluate and export runs.

use std::path::PathBuf;

use clap::Args;

use super::LedgerFile;
use super::checks::ComputeChoice;
use crate::completing;
use crate::runs::State;

/// Arguments of `zoo runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Recipes by name, as `zoo list` or this command prints it, or by the beginning of the name
    #[arg(value_name = "RECIPE", add = completing::run_recipes())]
    pub recipes: Vec<String>,
    /// List only runs of these arms
    #[arg(long, alias = "arm", value_delimiter = ',', value_name = "ARM,…", add = completing::run_arms())]
    pub arms: Vec<String>,
    /// List only runs of these seeds
    #[arg(long, alias = "seed", value_delimiter = ',', value_name = "SEED,…", add = completing::run_seeds())]
    pub seeds: Vec<u64>,
    /// List only runs of this tier; `full` is the published size
    #[arg(long, add = completing::run_tiers())]
    pub tier: Option<String>,
    /// List only runs in these states
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STATE,…")]
    pub state: Vec<State>,
    /// List only the N newest runs
    #[arg(long, short = 'n', value_name = "N")]
    pub newest: Option<usize>,
    /// Refresh the list every SECONDS seconds until Ctrl-C [default: 2]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub watch: Option<u32>,
}

/// Arguments of `zoo log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// Print new lines until no process trains the run, or until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Number of lines of training to print: the newest. All other lines are printed
    #[arg(long, short = 'n', default_value_t = 20, value_name = "N")]
    pub lines: usize,
}

/// Arguments of `zoo diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(value_name = "A", add = completing::runs())]
    pub one: PathBuf,
    /// The other run
    #[arg(value_name = "B", add = completing::runs())]
    pub other: PathBuf,
}

/// Arguments of `zoo evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Folder of a run, a checkpoint in it, or the run's name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// Name of an evaluation set [default: those of the claims]
    #[arg(long, value_name = "SET", add = completing::eval_sets())]
    pub eval: Option<String>,
    /// Compute in this type [default: that of the run]. The scores lie in eval/TYPE of the run
    #[arg(long, value_enum, value_name = "TYPE")]
    pub compute: Option<ComputeChoice>,
    /// Name of a search [default: that of the claims]
    #[arg(long, value_name = "SEARCH", add = completing::searches())]
    pub decode: Option<String>,
    /// Change a search; repeatable, e.g. decode.beam.language_model=model.arpa.gz
    #[arg(long = "set", value_name = "decode.NAME.KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Decode and score one evaluation set [default: valid] with all these language model weights:
    /// for alpha, beta or both, a value, or the first value, the last value and the step
    #[arg(long, value_name = "KEY=FROM:TO:STEP,…")]
    pub sweep: Option<crate::run::sweep::SweptWeights>,
}

/// Arguments of `zoo pack`.
#[derive(Debug, Args)]
pub struct PackArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last; with --check, a package
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// Folder to write, or an archive if the name ends in .tar [default: ./NAME-ARM-seedN]
    #[arg(long, short, value_name = "DIR|FILE.tar")]
    pub out: Option<PathBuf>,
    /// Licence of the weights for the model card, e.g. cc-by-4.0 [default: other, with the link of the
    /// data's terms]
    #[arg(long, value_name = "ID")]
    pub license: Option<String>,
    /// Leave the judged record with its outputs out
    #[arg(long)]
    pub no_bundle: bool,
    /// Recipe to check the record with if it is not built in or has changed since the run
    #[arg(long, value_name = "RECIPE", conflicts_with = "no_bundle", add = completing::recipes())]
    pub recipe: Option<String>,
    /// Write nothing: check every file of a package, and that its model can be used
    #[arg(long, conflicts_with_all = ["out", "license", "no_bundle", "recipe", "ledger"])]
    pub check: bool,
    /// Ledger with the record
    #[command(flatten)]
    pub file: LedgerFile,
}

/// Arguments of `zoo export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// File to write; must not exist. `-` is stdout
    pub file: PathBuf,
}
