//! Options of `zoo profile`.

use std::path::PathBuf;

use clap::Args;

use super::OverlayArgs;
use crate::completing;

/// Arguments of `zoo profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Name or path of a recipe, or a run: its folder, NAME[:ARM[:SEED]] or @last
    #[arg(value_name = "RECIPE|RUN", add = completing::recipes_and_runs())]
    pub subject: String,
    /// Tier and overrides
    #[command(flatten)]
    pub overlay: OverlayArgs,
    /// Arm of the recipe [default: its first]
    #[arg(long, add = completing::arms())]
    pub arm: Option<String>,
    /// Seed of weights and batches [default: the recipe's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Updates to profile, counted from the start of training [default: 1,10,100; the next of a RUN]
    #[arg(long = "update", value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u64).range(1..))]
    pub updates: Vec<u64>,
    /// Show only layers and parameters whose path contains this; `*` stands for any characters
    #[arg(long, value_name = "PATTERN")]
    pub layer: Option<String>,
    /// Also write the profile of a RUN into its folder, for `zoo report`: profile.json
    #[arg(long)]
    pub save: bool,
    /// Also draw the histograms into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
