//! Options of the commands that read recorded results.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::completing;

/// Subcommands of `zoo ledger`.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Verify the hash chain: no entry was changed, removed or inserted
    #[command(after_help = "\
Examples:
  zoo ledger verify
  zoo ledger verify --ledger results/data/ledger.jsonl --head \"$(cat results/data/ledger.head)\"")]
    Verify(LedgerVerifyArgs),
    /// Recompute every score and verdict from the stored files
    #[command(after_help = "\
Examples:
  zoo ledger recheck
  zoo ledger recheck --ledger results/data/ledger.jsonl
  zoo ledger recheck reversal-transformer-b3544d8bba1b.bundle.json
  zoo ledger recheck wmt.bundle.json --references test=newstest2014.de")]
    Recheck(LedgerRecheckArgs),
    /// Append the records of another ledger, e.g. of another machine, and copy their outputs
    #[command(after_help = "\
Examples:
  zoo ledger merge ~/from-the-gpu/ledger.jsonl
  zoo ledger merge ~/from-the-gpu/ledger.jsonl --ledger results/data/ledger.jsonl

Records that this ledger has already are left out. `hypotheses` beside the other ledger must be there.")]
    Merge(LedgerMergeArgs),
    /// List the entries
    #[command(after_help = "\
Examples:
  zoo ledger list --recipe reversal-transformer
  zoo ledger list --ledger results/data/ledger.jsonl --format csv")]
    List(LedgerListArgs),
    /// Write the verdicts or scores of all entries as a table: CSV, JSON or Parquet
    #[command(after_help = "\
Examples:
  zoo ledger export -o verdicts.csv
  zoo ledger export --rows scores -o scores.parquet
  zoo ledger export --ledger results/data/ledger.jsonl --recipe ptb-lstm-small --format json

A row is one verdict or one score, with the record that it is of. `zoo list --claims` has the claims.")]
    Export(LedgerExportArgs),
    /// Show one entry
    #[command(after_help = "\
Examples:
  zoo ledger show 3
  zoo ledger show 10 --ledger results/data/ledger.jsonl --format json")]
    Show(LedgerShowArgs),
}

/// Option that selects a ledger.
#[derive(Debug, Args)]
pub struct LedgerFile {
    /// Ledger file [default: ledger.jsonl in --home]
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
}

/// Arguments of `zoo ledger verify`.
#[derive(Debug, Args)]
pub struct LedgerVerifyArgs {
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
    /// Fail unless the last record has this hash; this detects removal of the last records
    #[arg(long, value_name = "HASH")]
    pub head: Option<String>,
    /// Fail unless a record has this hash or prefix; an earlier last hash shows append-only growth
    #[arg(long, value_name = "HASH")]
    pub holds: Option<String>,
}

/// Arguments of `zoo ledger recheck`.
#[derive(Debug, Args)]
pub struct LedgerRecheckArgs {
    /// Bundle to check, offline and without the ledger [default: check the ledger]
    pub bundle: Option<PathBuf>,
    /// References of a bundle's evaluation set; repeatable [default: the recipe's data, if fetched]
    #[arg(long, value_name = "SET=FILE", requires = "bundle")]
    pub references: Vec<String>,
    /// Accept that scores without references are not recomputed
    #[arg(long, requires = "bundle")]
    pub without_references: bool,
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
}

/// Arguments of `zoo ledger merge`.
#[derive(Debug, Args)]
pub struct LedgerMergeArgs {
    /// Ledger whose records are taken over; it stays as it is
    pub other: PathBuf,
    /// Ledger to extend
    #[command(flatten)]
    pub file: LedgerFile,
}

/// Arguments of `zoo ledger list`.
#[derive(Debug, Args)]
pub struct LedgerListArgs {
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
    /// List only entries of this recipe
    #[arg(long, add = completing::recipes())]
    pub recipe: Option<String>,
}

/// What a row of an exported ledger is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LedgerRows {
    /// A verdict on a claim
    #[default]
    Verdicts,
    /// A score of a run
    Scores,
}

/// Arguments of `zoo ledger export`.
#[derive(Debug, Args)]
pub struct LedgerExportArgs {
    /// What a row is
    #[arg(long, value_enum, default_value_t, value_name = "ROWS")]
    pub rows: LedgerRows,
    /// New file: .csv, .json or .parquet [default: stdout, as --format]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
    /// Export only entries of this recipe
    #[arg(long, add = completing::recipes())]
    pub recipe: Option<String>,
}

/// Arguments of `zoo ledger show`.
#[derive(Debug, Args)]
pub struct LedgerShowArgs {
    /// Number of the entry in `zoo ledger list`, or the beginning of its hash
    pub entry: String,
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
}

/// Arguments of `zoo report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Runs to report, of one recipe and tier: a recipe's name or path (its newest runs), or runs
    /// by folder, NAME[:ARM[:SEED]] or @last
    #[arg(value_name = "RUN", add = completing::recipes_and_runs())]
    pub runs: Vec<String>,
    /// HTML file to write; replaces only reports [default: ./NAME.report.html]
    #[arg(long, short, value_name = "FILE", requires = "runs")]
    pub out: Option<PathBuf>,
    /// Report only runs of these arms
    #[arg(long, value_delimiter = ',', value_name = "ARM,…", requires = "runs", add = completing::arms())]
    pub arms: Vec<String>,
    /// Report only runs of these seeds
    #[arg(long, value_delimiter = ',', value_name = "SEED,…", requires = "runs", add = completing::run_seeds())]
    pub seeds: Vec<u64>,
    /// Report runs of this tier instead of the published size, e.g. smoke
    #[arg(long, requires = "runs", add = completing::tiers())]
    pub tier: Option<String>,
    /// Ledger to use
    #[command(flatten)]
    pub file: LedgerFile,
    /// Write the tables into a Markdown file, between `<!-- results:begin -->` and `<!--
    /// results:end -->`, or `runs:begin` and `runs:end`
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub into: Option<PathBuf>,
    /// Change nothing; fail if the table is out of date
    #[arg(long, requires = "into")]
    pub check: bool,
}
