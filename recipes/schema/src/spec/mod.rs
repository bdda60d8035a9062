//! The types of a recipe's blocks. Nothing here runs; each part of the product reads its own block.
//!
//! Every struct denies unknown keys, every `kind` is a closed set, and units are part of the key or
//! of the value.

mod augmentation;
mod batching;
mod claim;
mod features;
mod layers;
mod max_length;
mod optimizer;
mod precision;
mod recipe;
mod recordings;
mod schedule;
mod smoothing;
mod splits;
mod task;
mod text;
mod token_search;
mod tokens;
mod train;

pub use augmentation::*;
pub use batching::*;
pub use claim::*;
pub use features::*;
pub use layers::*;
pub use max_length::*;
pub use optimizer::*;
pub use precision::*;
pub use recipe::*;
pub use recordings::*;
pub use schedule::*;
pub use smoothing::*;
pub use splits::*;
pub use task::*;
pub use text::*;
pub use token_search::*;
pub use tokens::*;
pub use train::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[recipe]` block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Name of the recipe. It equals the file's stem.
    pub name: String,
    /// Task of the model. It equals the folder of the catalog.
    pub task: Task,
    /// One-line summary for `zoo list`.
    pub summary: String,
    /// Where the configuration was read: `repository@commit path`.
    pub origin: String,
    /// Can anybody get the data?
    pub status: DataStatus,
    /// Tags to filter by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Keys that `--set` may change in a reproduction, e.g. `train.log_every`.
    /// After a change of any other key, the run no longer counts as a reproduction.
    #[serde(default)]
    pub free: Vec<String>,
    /// Rows of the source's vocabulary, special tokens included.
    /// They are counted in the prepared `data.corpus`, and give the model's size before the data is
    /// fetched. Not inherited, and not part of the recipe's hash: the data decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary_rows: Option<u32>,
    /// Differences between this computation and the source's, one sentence each.
    /// `zoo show` prints them. They are not inherited from a base, which has another source, and
    /// are not part of the recipe's hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// Availability of a recipe's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataStatus {
    /// The data is fetched from public addresses.
    Public,
    /// The program generates the data from a description.
    Generated,
    /// The data needs a licence or a registration; the user brings the files.
    Gated,
    /// The data was never released.
    Private,
}
