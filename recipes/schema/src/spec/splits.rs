//! Sizes of splits: shares of what is read, and numbers of what is generated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::Findings;

/// Number of examples to read of each split, counted from its first. Joined recordings are counted
/// by `reader.join` instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareSpec {
    /// Examples of the split to train on.
    pub train: u32,
    /// Examples of every other split.
    pub eval: u32,
}

impl ShareSpec {
    /// Largest number of examples of a split. `training`: whether it is the one to train on.
    pub fn most(self, training: bool) -> usize {
        (if training { self.train } else { self.eval }) as usize
    }

    /// Checks that examples are left to read, and that the reader reads rather than generates its
    /// data.
    pub(crate) fn check(self, generated: bool, findings: &mut Findings<'_, '_>) {
        findings.positive(u64::from(self.train), "data.share.train");
        findings.positive(u64::from(self.eval), "data.share.eval");
        if generated {
            let hint = "data.reader.train, data.reader.valid and data.reader.test say how many are made";
            findings.report_with(
                "data.share",
                "the reader generates its data; there is nothing to read",
                hint,
            );
        }
    }
}

/// Numbers of generated examples of the splits `train`, `valid` and `test`.
pub(crate) struct Generated {
    pub(crate) train: u32,
    pub(crate) valid: u32,
    pub(crate) test: u32,
}

impl Generated {
    /// The splits with their numbers.
    pub(crate) fn splits(&self) -> [(&'static str, u32); 3] {
        [("train", self.train), ("valid", self.valid), ("test", self.test)]
    }

    /// Number of examples of a split; that of `test` if there is no split of this name.
    pub(crate) fn of(&self, split: &str) -> u32 {
        self.splits().into_iter().find(|(name, _)| *name == split).map_or(self.test, |(_, examples)| examples)
    }
}
