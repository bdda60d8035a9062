//! One comparison and what came of it.

use zoo_recipes::{ClaimSpec, Statement};

use crate::report::{Cell, Column, Table, heading};
use crate::verdict::Outcome;

/// What is held against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Ours against a published claim.
    Target,
    /// Our score against the recorded one.
    Quality,
    /// Our ratio of two arms against the recorded one.
    Speed,
}

impl Check {
    /// The word of tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Quality => "quality",
            Self::Speed => "speed",
        }
    }
}

/// Where a claim stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File, from the repository's root.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Recipe.
    pub recipe: String,
    /// Tier; `None`: the published size.
    pub tier: Option<String>,
    /// What kind.
    pub check: Check,
    /// What of: `bleu test beam5 mixed`.
    pub subject: String,
    /// The claim that it is about, if any.
    pub claim: Option<ClaimSpec>,
    /// Who stands behind that claim, where it is a target.
    pub statement: Option<Statement>,
    /// Where that claim stands; filled in by who knows the files.
    pub place: Option<Place>,
    /// The published or recorded number.
    pub expected: Option<f64>,
    /// Ours.
    pub measured: Option<f64>,
    /// What it counts as.
    pub outcome: Outcome,
    /// In two or three words: `WORSE`, `unchanged`, `REPRODUCED`.
    pub standing: String,
    /// In a sentence.
    pub explanation: String,
    /// Whether ours was run for this call or reused; `None` where it was only read from a ledger. Filled in by who ran it.
    pub run: Option<String>,
}

impl Row {
    /// A recipe whose run failed: red, whatever was recorded of it.
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

    /// A name that is unique in a call.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.check.name(), self.subject)
    }

    /// Recipe and tier; of targets, those of one kind of statement, which are never counted with others.
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
            Cell::words(row.run.clone().unwrap_or_else(|| "-".to_owned())),
            Cell::words(row.standing.clone()),
            Cell::words(row.explanation.clone()),
        ]);
    }
    table
}
