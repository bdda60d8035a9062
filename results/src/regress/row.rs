//! One comparison and its result.

use zoo_recipes::{ClaimSpec, Statement};

use crate::report::{Cell, Column, Table, heading};
use crate::verdict::Outcome;

/// Kind of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The new result compared with a published claim.
    Target,
    /// The new score compared with the recorded one.
    Quality,
    /// The new ratio of two arms compared with the recorded one.
    Speed,
}

impl Check {
    /// The word used in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Quality => "quality",
            Self::Speed => "speed",
        }
    }
}

/// Location of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File, relative to the repository's root.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Kind of comparison.
    pub check: Check,
    /// Subject of the comparison: `bleu test beam5 mixed`.
    pub subject: String,
    /// The claim that it concerns, if there is one.
    pub claim: Option<ClaimSpec>,
    /// Who makes that claim, for a target.
    pub statement: Option<Statement>,
    /// Location of that claim; filled in by the caller that has the files.
    pub place: Option<Place>,
    /// The published or recorded number.
    pub expected: Option<f64>,
    /// The new number.
    pub measured: Option<f64>,
    /// The outcome that it counts as.
    pub outcome: Outcome,
    /// Result in two or three words: `WORSE`, `unchanged`, `REPRODUCED`.
    pub standing: String,
    /// Explanation in a sentence.
    pub explanation: String,
    /// Whether the new result was run for this call or reused; `None` if it was only read from a
    /// ledger. Filled in by the caller that ran it.
    pub run: Option<String>,
}

impl Row {
    /// A recipe whose run failed. It counts as failed, whatever was recorded.
    #[must_use]
    pub fn failed(recipe: &str, tier: Option<&str>, why: &str) -> Self {
        Self {
            recipe: recipe.to_owned(),
            tier: tier.map(str::to_owned),
            check: Check::Target,
            subject: "run".to_owned(),
            claim: None,
            statement: None,
            place: None,
            expected: None,
            measured: None,
            outcome: Outcome::NotReproduced,
            standing: "FAILED".to_owned(),
            explanation: why.to_owned(),
            run: None,
        }
    }

    /// A name that is unique within a call.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.check.name(), self.subject)
    }

    /// Recipe and tier. Targets are grouped by kind of statement, because the kinds are never
    /// counted together.
    #[must_use]
    pub fn group(&self) -> String {
        let suite = self.suite();
        self.statement.map_or(suite.clone(), |statement| format!("{suite}, {}", heading(statement)))
    }

    /// Recipe and tier.
    #[must_use]
    pub fn suite(&self) -> String {
        self.tier.as_ref().map_or_else(|| self.recipe.clone(), |tier| format!("{}.{tier}", self.recipe))
    }
}

/// All rows as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(vec![
        Column::words("recipe"),
        Column::words("check"),
        Column::words("statement"),
        Column::words("of"),
        Column::numbers("expected"),
        Column::numbers("measured"),
        Column::words("run"),
        Column::words("standing"),
        Column::words("explanation"),
    ]);
    for row in rows {
        table.push(vec![
            Cell::words(row.suite()),
            Cell::words(row.check.name()),
            Cell::words(row.statement.map_or("", Statement::name)),
            Cell::words(row.subject.clone()),
            Cell::number(row.expected),
            Cell::number(row.measured),
            Cell::of(row.run.as_deref().unwrap_or("-"), row.run.clone()),
            Cell::words(row.standing.clone()),
            Cell::words(row.explanation.clone()),
        ]);
    }
    table
}
