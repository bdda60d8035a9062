//! The evidence levels.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Evidence level. Levels are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// The recipe resolves without findings.
    Schema,
    /// The parameters of the model are counted.
    Parameters,
    /// The model's parts match another framework.
    Parity,
    /// Schedule, loss scaling and data match traces and digests.
    Traces,
    /// The recipe was run end to end at toy size.
    Smoke,
    /// The recipe was run on its own data, smaller or changed.
    SmallRun,
    /// The recipe was run as published.
    FullRun,
}

impl Rung {
    /// All levels, lowest first.
    pub const ALL: [Self; 7] = [
        Self::Schema,
        Self::Parameters,
        Self::Parity,
        Self::Traces,
        Self::Smoke,
        Self::SmallRun,
        Self::FullRun,
    ];

    /// Name of the level in tables and in `--evidence`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Parameters => "parameters",
            Self::Parity => "parity",
            Self::Traces => "traces",
            Self::Smoke => "smoke",
            Self::SmallRun => "small-run",
            Self::FullRun => "full-run",
        }
    }
}
