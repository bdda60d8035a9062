//! Pooling of pictures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pooling layer takes of the pixels of a square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolKind {
    /// Maximum; of equal ones the first gets the gradient, row by row.
    Max,
    /// Mean.
    Average,
}
