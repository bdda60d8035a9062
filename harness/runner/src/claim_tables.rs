//! Claims of recipes with their last verdicts, as tables.

use zoo_recipes::ClaimSpec;
use zoo_results::verdict::judgeable;

use crate::output::{self, Cell, Table};
use crate::standing::{ClaimStanding, OfArm};
use crate::wording::claim_line;

/// The claims of a recipe, with what the ledgers have on them.
pub struct ClaimsOf<'r> {
    pub recipe: &'r str,
    pub claims: &'r [ClaimSpec],
    /// One for each claim.
    pub standings: &'r [ClaimStanding],
}

impl ClaimsOf<'_> {
    /// Each claim with its number and standing.
    fn numbered(&self) -> impl Iterator<Item = (u64, &ClaimSpec, Option<&OfArm>)> {
        let shown = |at: usize| self.standings.get(at).and_then(ClaimStanding::shown);
        (1..).zip(self.claims).enumerate().map(move |(at, (number, claim))| (number, claim, shown(at)))
    }
}

/// A row for each claim, with all that programs need.
pub fn for_programs<'r>(all: impl IntoIterator<Item = ClaimsOf<'r>>) -> Table {
    let mut table = output::columns([
        "recipe",
        "#claim",
        "statement",
        "kind",
        "text",
        "metric",
        "signature",
        "eval",
        "decode",
        "arm",
        "baseline",
        "#published",
        "#margin",
        "#measured",
        "#seeds",
        "verdict",
        "explanation",
        "ledger",
        "#record",
        "uncounted",
        "source",
        "note",
        "not judgeable",
    ]);
    let number = |value: Option<f64>| {
        value.map_or_else(|| Cell::words(""), |value| Cell::of(value.to_string(), value))
    };
    let words = |text: &Option<String>| Cell::words(text.as_deref().unwrap_or_default());
    for of_recipe in all {
        for (at, claim, shown) in of_recipe.numbered() {
            let verdict = shown.map(|one| &one.listed.verdict);
            let record = shown.and_then(|one| one.record);
            table.push(vec![
                Cell::words(of_recipe.recipe),
                Cell::count(at),
                Cell::words(claim.statement().name()),
                Cell::words(claim.kind.name()),
                Cell::words(claim_line(claim)),
                Cell::words(&claim.metric),
                words(&claim.signature),
                words(&claim.eval),
                words(&claim.decode),
                words(&shown.and_then(|one| one.listed.arm.clone()).or_else(|| claim.arm.clone())),
                words(&claim.baseline),
                number(claim.value),
                number(verdict.and_then(|verdict| verdict.margin).or(claim.margin)),
                number(verdict.and_then(|verdict| verdict.measured)),
                Cell::count(verdict.map_or(0, |verdict| verdict.seeds).into()),
                verdict.map_or_else(|| Cell::words(""), |verdict| Cell::outcome(verdict.outcome)),
                Cell::words(verdict.map(|verdict| verdict.explanation.as_str()).unwrap_or_default()),
                Cell::words(record.map(|(whose, _)| whose).unwrap_or_default()),
                record.map_or_else(|| Cell::words(""), |(_, number)| Cell::count(number)),
                Cell::words(shown.and_then(|one| one.listed.uncounted).unwrap_or_default()),
                Cell::words(&claim.source),
                Cell::words(note(claim)),
                Cell::words(judgeable(claim).err().unwrap_or_default()),
            ]);
        }
    }
    table
}

/// The claims in one line each: recipe, number, claim, published, measured, verdict.
pub fn for_people<'r>(all: impl IntoIterator<Item = ClaimsOf<'r>>) -> Table {
    let mut table = output::columns(["recipe", "#", "claim", "#published", "#measured", "verdict"]);
    for of_recipe in all {
        for (at, claim, shown) in of_recipe.numbered() {
            let line = claim_line(claim);
            let verdict = shown.map_or_else(String::new, |OfArm { listed, .. }| {
                let uncounted = if listed.uncounted.is_some() { " (not counted)" } else { "" };
                format!("{}{uncounted}", listed.verdict.outcome)
            });
            table.push(vec![
                Cell::words(of_recipe.recipe),
                Cell::count(at),
                // Without the signature.
                Cell::words(line.split(" (").next().unwrap_or_default()),
                Cell::number(claim.value),
                Cell::number(shown.and_then(|one| one.listed.verdict.measured)),
                Cell::words(verdict),
            ]);
        }
    }
    table
}

/// What the recipe says of a claim beside its source.
fn note(claim: &ClaimSpec) -> String {
    let extends = claim.extends.as_ref().map(|sibling| format!("printed for {sibling}"));
    extends.into_iter().chain(claim.own.clone()).chain(claim.note.clone()).collect::<Vec<_>>().join("; ")
}
