//! What a recipe says, as types. Nothing here runs; each part of the product reads the block that is its own.
//!
//! Every struct denies unknown keys, every `kind` is a closed set, units stand in the key or the value.

mod acoustic;
mod augmentation;
mod claim;
mod convolutional;
mod data;
mod decode;
mod features;
mod model;
mod precision;
mod recipe;
mod recurrent;
mod speech;
mod symbols;
mod synthesis;
mod task;
mod train;

pub use acoustic::*;
pub use augmentation::*;
pub use claim::*;
pub use convolutional::*;
pub use data::*;
pub use decode::*;
pub use features::*;
pub use model::*;
pub use precision::*;
pub use recipe::*;
pub use recurrent::*;
pub use speech::*;
pub use symbols::*;
pub use synthesis::*;
pub use task::*;
pub use train::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[recipe]` block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Name, equal to the file's stem.
    pub name: String,
    /// What the model does. Equal to the folder of the catalog.
    pub task: Task,
    /// One line for `zoo list`.
    pub summary: String,
    /// Where the configuration was read: `repository@commit path`.
    pub origin: String,
    /// Can anybody get the data?
    pub status: DataStatus,
    /// Free words to filter by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Keys that `--set` may change without the run losing its claim to reproduce anything, e.g. `train.log_every`.
    #[serde(default)]
    pub free: Vec<String>,
    /// Rows of the source's vocabulary, the special tokens among them, as they were counted in the prepared `data.corpus`: what the model's
    /// size is told by before the data is there. Not inherited, and no part of the recipe's hash: the data decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary_rows: Option<u32>,
    /// What is computed otherwise than in the source, a sentence each. `zoo show` prints them. They are not inherited from a base, whose
    /// source is another one, and do not enter the recipe's hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// Availability of a recipe's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataStatus {
    /// Fetched from public addresses.
    Public,
    /// Made by the program from a description.
    Generated,
    /// Behind a licence or a registration; the user brings the files.
    Gated,
    /// Never released.
    Private,
}
