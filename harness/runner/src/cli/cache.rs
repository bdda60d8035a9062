//! Options of `zoo cache`.

use clap::{Args, Subcommand};

use crate::cache::Kind;

/// Examples of `zoo cache`.
pub const EXAMPLES: &str = "\
Examples:
  zoo cache                              sizes by kind
  zoo cache ls prepared runs             the entries of two kinds, and what needs them
  zoo cache verify                       reads all files that have recorded digests
  zoo cache gc --plan                    what is certainly useless
  zoo cache gc --checkpoints --runs --keep 1 --plan

docs/cache.md describes the kinds.";

/// Arguments of `zoo cache`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CacheArgs {
    /// What to do [default: ls]
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
    /// Options of `zoo cache ls`.
    #[command(flatten)]
    pub ls: CacheLsArgs,
}

/// Subcommands of `zoo cache`.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Show the sizes by kind, or the entries of kinds and what needs them
    #[command(after_help = "\
Examples:
  zoo cache ls
  zoo cache ls --entries
  zoo cache ls runs checkpoints --format json")]
    Ls(CacheLsArgs),
    /// Read files again and compare them with their recorded digests
    #[command(after_help = "\
Examples:
  zoo cache verify
  zoo cache verify downloads prepared
  zoo cache verify --format json

Prints the damaged and missing files. Opens no connection and changes nothing. Runs that a process
trains are not read. Exit codes: 7 for runs, checkpoints, hypotheses and the ledger; 4 for data.")]
    Verify(CacheVerifyArgs),
    /// Remove what is not needed; asks first
    #[command(after_help = "\
Examples:
  zoo cache gc --plan
  zoo cache gc --checkpoints --yes
  zoo cache gc --runs --keep 1
  zoo cache gc --prepared --downloads --older 90 --plan

Without options, removes temporary files of dead processes, and prepared data of corpora that this
program does not have. Keeps what records of the ledger need, what runs read, and what a process
uses, and says so. Removed data can be made again; removed runs and checkpoints cannot.")]
    Gc(CacheGcArgs),
}

/// Arguments of `zoo cache ls`.
#[derive(Debug, Default, Args)]
pub struct CacheLsArgs {
    /// List the entries of these kinds [default: the sizes of all kinds]
    #[arg(value_enum, value_name = "KIND")]
    pub kinds: Vec<Kind>,
    /// List the entries of all kinds
    #[arg(long)]
    pub entries: bool,
}

/// Arguments of `zoo cache verify`.
#[derive(Debug, Args)]
pub struct CacheVerifyArgs {
    /// Read only these kinds [default: all kinds with digests]
    #[arg(value_enum, value_name = "KIND")]
    pub kinds: Vec<Kind>,
}

/// Arguments of `zoo cache gc`.
#[derive(Debug, Args)]
pub struct CacheGcArgs {
    /// Remove files of checkpoints of ended runs that evaluation does not need
    #[arg(long)]
    pub checkpoints: bool,
    /// Remove runs; needs --keep or --older
    #[arg(long)]
    pub runs: bool,
    /// Remove prepared data that no run uses
    #[arg(long)]
    pub prepared: bool,
    /// Remove downloads and unpacked corpora that no run uses
    #[arg(long)]
    pub downloads: bool,
    /// Remove kept outputs that no record names
    #[arg(long)]
    pub hypotheses: bool,
    /// Remove compiled kernels of GPUs
    #[arg(long)]
    pub kernels: bool,
    /// Keep the N newest runs of each recipe, tier, arm and seed [default: all]
    #[arg(long, value_name = "N", requires = "runs", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Of the chosen kinds, remove only what was last written DAYS days ago or earlier
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub older: Option<u32>,
    /// Also remove what records, runs and evaluations need
    #[arg(long)]
    pub force: bool,
    /// Print the plan and remove nothing
    #[arg(long)]
    pub plan: bool,
}
