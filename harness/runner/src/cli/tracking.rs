//! Options that write runs to experiment trackers.

use std::path::PathBuf;

use clap::Args;

use crate::completing;
use crate::tracking::Folders;

/// Arguments of `zoo track`.
#[derive(Debug, Args)]
pub struct TrackArgs {
    /// Folders of runs, or their names: NAME[:ARM[:SEED]] or @last
    #[arg(value_name = "RUN", required_unless_present = "all", add = completing::runs())]
    pub runs: Vec<PathBuf>,
    /// Write every run of the home
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,
    /// Trackers
    #[command(flatten)]
    pub track: TrackOptions,
}

/// Trackers.
#[derive(Debug, Args)]
pub struct TrackOptions {
    /// Write the runs as event files into this folder of TensorBoard
    #[arg(long, value_name = "DIR")]
    pub tensorboard: Option<PathBuf>,
    /// Write the runs into this folder of MLflow's file store
    #[arg(long, value_name = "DIR")]
    pub mlflow: Option<PathBuf>,
}

impl TrackOptions {
    /// The folders that were named.
    pub fn folders(&self) -> Folders {
        Folders { tensorboard: self.tensorboard.clone(), mlflow: self.mlflow.clone() }
    }
}
