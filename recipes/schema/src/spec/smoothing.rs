//! Label smoothing of cross-entropy, which losses of several tasks use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The two published definitions of label smoothing, with smoothing eps and V classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Smoothing {
    /// eps/V on every class, including the true one (fairseq, NVIDIA).
    #[default]
    AllClasses,
    /// eps/(V-1) on the other classes.
    /// The target's entropy is subtracted, so that the lowest loss is 0 (tensor2tensor,
    /// OpenSeq2Seq).
    OtherClasses,
}
