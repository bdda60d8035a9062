//! Options of `zoo replay`.

use std::path::PathBuf;

use clap::Args;

use super::checks::ComputeChoice;
use crate::completing;

/// Examples of the command, and what it does not change.
pub const EXAMPLES: &str = "\
Examples:
  zoo replay @last --update 20
  zoo replay reversal-transformer.smoke:mixed --update 20 --compute fp32
  zoo replay ~/.local/share/zoo/runs/RUN --update 20 --compute bf16 --limit 0.01 --format json

Without --compute, the numbers of the update are compared with the log. Trains a copy in a scratch
folder from the newest state before the update. Records nothing and leaves RUN as it is. The exit
code is 9 if something differs. docs/mixed-precision.md describes the tables.";

/// Arguments of `zoo replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// Number of the update, counted from the start of training
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub update: u64,
    /// Compute the update in this type as well, and compare every tensor
    #[arg(long, value_enum, value_name = "TYPE")]
    pub compute: Option<ComputeChoice>,
    /// Largest relative error of every tensor [default: outputs 2^-8 with fp16 and 2^-5 with bf16, other
    /// tensors 8 times as much]
    #[arg(long, value_name = "X", requires = "compute", value_parser = limit)]
    pub limit: Option<f64>,
}

fn limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok(limit),
        _ => Err("a limit is a number from 0 up, for example 0.004".to_owned()),
    }
}
