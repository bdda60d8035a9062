//! Counts of outcomes, separately for each kind of statement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zoo_recipes::Statement;

use crate::verdict::{Outcome, Verdict};

/// Number of times each outcome was reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally(BTreeMap<Outcome, u64>);

impl Tally {
    /// Adds one to an outcome's count.
    pub fn add(&mut self, outcome: Outcome) {
        *self.0.entry(outcome).or_default() += 1;
    }

    /// Count of this outcome.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0.get(&outcome).copied().unwrap_or(0)
    }

    /// Sum of all counts.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Number of verdicts that decide whether a claim holds. Each is wrong 5 times in 100 for a
    /// system at the margin.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.of(Outcome::Reproduced) + self.of(Outcome::NotReproduced)
    }
}

/// `1 REPRODUCED, 2 NOT RUN`.
impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// One tally for each kind of statement. There is no total over the three.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ByStatement<T>([T; 3]);

impl<T> ByStatement<T> {
    /// The tally of a kind.
    #[must_use]
    pub fn of(&self, statement: Statement) -> &T {
        &self.0[statement as usize]
    }

    /// The tally of a kind, mutable.
    pub fn of_mut(&mut self, statement: Statement) -> &mut T {
        &mut self.0[statement as usize]
    }
}

impl ByStatement<Tally> {
    /// The tallies of verdicts.
    #[must_use]
    pub fn of_verdicts<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> Self {
        let mut found = Self::default();
        for verdict in verdicts {
            found.of_mut(verdict.statement()).add(verdict.outcome);
        }
        found
    }

    /// A line for each kind that occurs: `published claims: 1 REPRODUCED`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let of = |statement| Some((heading(statement), self.of(statement)));
        let found = Statement::ALL.into_iter().filter_map(of).filter(|(_, tally)| tally.count() > 0);
        found.map(|(heading, tally)| format!("{heading}: {tally}")).collect()
    }

    /// `{"published": {"REPRODUCED": 1}}`.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let of = |statement: Statement| {
            let counts: serde_json::Map<String, serde_json::Value> = (self.of(statement).0.iter())
                .map(|(outcome, count)| (outcome.word().to_owned(), (*count).into()))
                .collect();
            (statement.name().to_owned(), serde_json::Value::Object(counts))
        };
        serde_json::Value::Object(Statement::ALL.into_iter().map(of).collect())
    }
}

/// Name of the claims of a kind, in the plural.
#[must_use]
pub fn heading(statement: Statement) -> &'static str {
    match statement {
        Statement::Published => "published claims",
        Statement::Extended => "extended claims",
        Statement::Own => "own checks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_statements_are_counted_apart() {
        let mut tallies = ByStatement::<Tally>::default();
        tallies.of_mut(Statement::Own).add(Outcome::Reproduced);
        tallies.of_mut(Statement::Own).add(Outcome::NotJudgeable);
        tallies.of_mut(Statement::Published).add(Outcome::NotRun);
        assert_eq!(
            tallies.lines(),
            ["published claims: 1 NOT RUN", "own checks: 1 REPRODUCED, 1 NOT JUDGEABLE"]
        );
        assert_eq!(tallies.of(Statement::Own).decided(), 1);
        assert_eq!(
            tallies.json(),
            serde_json::json!({"published": {"NOT-RUN": 1}, "extended": {}, "own": {"REPRODUCED": 1, "NOT-JUDGEABLE": 1}})
        );
    }
}
