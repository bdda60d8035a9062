//! Version of the judging rules. A record keeps the version that it was judged by.

use serde::{Deserialize, Serialize};

/// The rules that a verdict follows. `docs/verdicts.md` describes both.
///
/// Old records name no rules and were judged by the first. `zoo ledger recheck` derives each record
/// by its own rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub enum Rules {
    /// A stated sigma is used unadjusted up to four seeds. An arm `mixed` may compute in bf16.
    First,
    /// A standard deviation has a source and degrees of freedom. An arm computes in the type that
    /// its name gives.
    #[default]
    Second,
}

/// Error for a number that is not a known version of the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "rules {given} are not known\nhint: this program knows rules 1 and 2; a later one judged this record"
)]
pub struct UnknownRules {
    given: u32,
}

impl Rules {
    /// The rules of records that name none.
    pub(super) fn unnamed() -> Self {
        Self::First
    }

    /// Whether a record omits the number.
    pub(super) fn is_unnamed(&self) -> bool {
        *self == Self::unnamed()
    }
}

impl TryFrom<u32> for Rules {
    type Error = UnknownRules;

    fn try_from(given: u32) -> Result<Self, UnknownRules> {
        match given {
            1 => Ok(Self::First),
            2 => Ok(Self::Second),
            given => Err(UnknownRules { given }),
        }
    }
}

impl From<Rules> for u32 {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::First => 1,
            Rules::Second => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Evidence;

    #[test]
    fn evidence_without_rules_is_judged_by_the_first_and_new_evidence_by_the_present() {
        let old = r#"{"runs":[],"plan":[1],"external":false}"#;
        let read: Evidence = serde_json::from_str(old).unwrap();
        assert_eq!(read.rules, Rules::First);
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
        let new = serde_json::to_string(&Evidence::default()).unwrap();
        assert!(new.contains(r#""rules":2"#), "{new}");
        assert!(serde_json::from_str::<Evidence>(r#"{"rules":3}"#).is_err());
    }
}
