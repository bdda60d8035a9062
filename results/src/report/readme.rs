//! The tables in the README, made from recipes and ledger and compared with them.

use std::collections::{BTreeMap, BTreeSet};

use zoo_recipes::ClaimSpec;

use super::table::{Cell, Column, Format, Table};
use super::verdicts::claim;
use crate::ledger::{Entry, Judgement, Record, RunEnd};
use crate::verdict::{Outcome, Verdict};

/// Line before the generated part.
pub const BEGIN: &str = "<!-- results:begin -->";
/// Line behind it.
pub const END: &str = "<!-- results:end -->";

/// Why the generated part is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadmeError {
    /// A marker is missing, doubled, or they are in the wrong order.
    #[error(
        "the README needs one line `{BEGIN}` and behind it one line `{END}`\nhint: put both where the table belongs"
    )]
    Markers,
    /// The text does not agree with the ledger.
    #[error(
        "line {line} of the README is not what the ledger says\n  README: {found}\n  ledger: {expected}\nhint: {hint}"
    )]
    Stale {
        /// Line of the README, from 1.
        line: usize,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
        /// How to renew it.
        hint: String,
    },
}

/// What is known of a recipe besides the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeStanding {
    /// Name.
    pub recipe: String,
    /// Hashes of its present version: its own, and those of runs with changes that make no other recipe of it.
    pub hashes: BTreeSet<String>,
    /// What was published for it.
    pub claims: Vec<ClaimSpec>,
    /// The highest rung of evidence.
    pub evidence: String,
}

impl RecipeStanding {
    /// Is the record about the present version?
    fn has(&self, record: &Record) -> bool {
        self.recipe == record.recipe && self.hashes.contains(&record.recipe_hash)
    }
}

/// Outcomes in the order of the counts; where a claim was judged in several arms the first of [`WORST_FIRST`] counts.
const COUNTED: [Outcome; 5] = [
    Outcome::Reproduced,
    Outcome::NotReproduced,
    Outcome::Inconclusive,
    Outcome::NotComparable,
    Outcome::NotRun,
];
const WORST_FIRST: [Outcome; 5] = [
    Outcome::NotReproduced,
    Outcome::Inconclusive,
    Outcome::Reproduced,
    Outcome::NotComparable,
    Outcome::NotRun,
];

/// The last judgement of a claim in an arm.
struct Last<'e> {
    entry: &'e Entry,
    judgement: &'e Judgement,
}

impl Last<'_> {
    /// Is it on this claim, of this version of the recipe, and run by this program?
    fn counts_for(&self, standing: &RecipeStanding, claim: &ClaimSpec) -> bool {
        standing.has(&self.entry.record) && self.judgement.claim == *claim && !self.is_external()
    }

    /// Evidence without kept outputs is external, whatever the record says.
    fn is_external(&self) -> bool {
        let record = &self.entry.record;
        let outside = self.judgement.verdict.external || record.end == RunEnd::External;
        outside || !record.without_outputs().is_empty()
    }
}

/// The generated part: how many claims came out how, the evidence of every recipe, and every claim with its last verdict (the last
/// judgement of a recipe's published size without changes that make another of it), run or not; then verdicts that are on no present claim, how the
/// runs that were started ended, and the ledger's last hash, by which the tables are bound to it.
#[must_use]
pub fn render(recipes: &[RecipeStanding], entries: &[Entry]) -> String {
    let last = last_judgements(recipes, entries);
    let mut counts: Vec<(&RecipeStanding, [u64; 5])> = Vec::new();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for standing in recipes {
        let mut count = [0; 5];
        for claim in &standing.claims {
            let judged: Vec<&Last<'_>> =
                last.iter().filter(|last| last.counts_for(standing, claim)).collect();
            let outcomes: Vec<Outcome> = judged.iter().map(|last| last.judgement.verdict.outcome).collect();
            let worst = WORST_FIRST.into_iter().find(|outcome| outcomes.contains(outcome));
            let worst = worst.unwrap_or(Outcome::NotRun);
            count[COUNTED.iter().position(|outcome| *outcome == worst).unwrap_or(4)] += 1;
            if judged.is_empty() {
                let verdict = crate::verdict::not_run(claim, "nothing was run");
                rows.push(row(&standing.recipe, claim.arm.clone(), &verdict, "", None));
            }
            rows.extend(judged.iter().map(|last| last.row("")));
        }
        counts.push((standing, count));
    }
    let is_listed = |last: &&Last<'_>| {
        recipes.iter().any(|standing| standing.claims.iter().any(|claim| last.counts_for(standing, claim)))
    };
    for last in last.iter().filter(|last| !is_listed(last)) {
        rows.push(last.row(match last.is_external() {
            // The claim's own cell says so already.
            true if last.judgement.verdict.external => "",
            true => " (external: no outputs were kept)",
            false => " (earlier version)",
        }));
    }
    let heads = |first: &[&str]| -> Vec<Column> {
        let outcomes = COUNTED.map(|outcome| outcome.to_string().to_lowercase());
        let words = first.iter().map(|title| Column::words(title));
        words
            .chain([Column::numbers("claims")])
            .chain(outcomes.iter().map(|title| Column::numbers(title)))
            .collect()
    };
    let numbers = |count: &[u64; 5]| -> Vec<Cell> {
        std::iter::once(count.iter().sum()).chain(*count).map(Cell::count).collect()
    };
    let mut sum = Table::new(heads(&[]));
    sum.push(numbers(&std::array::from_fn(|at| counts.iter().map(|(_, count)| count[at]).sum())));
    let mut evidence = Table::new(heads(&["recipe", "evidence"]));
    for (standing, count) in &counts {
        let mut row = vec![Cell::words(standing.recipe.clone()), Cell::words(standing.evidence.clone())];
        row.extend(numbers(count));
        evidence.push(row);
    }
    let mut table = Table::new(vec![
        Column::words("recipe"),
        Column::words("claim"),
        Column::words("set"),
        Column::words("arm"),
        Column::numbers("published"),
        Column::numbers("measured"),
        Column::numbers("seeds"),
        Column::words("verdict"),
        Column::words("record"),
    ]);
    rows.into_iter().for_each(|row| table.push(row));
    let mut text = [sum, evidence, table].map(|table| table.render(Format::Md)).join("\n");
    text.push('\n');
    for (recipe, ends) in run_ends(entries) {
        let counts: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        text.push_str(&format!("- Runs of {recipe}: {}.\n", counts.join(", ")));
    }
    let head = entries.last().map_or("none", |entry| entry.hash.as_str());
    text.push_str(&format!("- Ledger: {} records, last hash `{head}`.\n", entries.len()));
    text
}

impl Last<'_> {
    fn row(&self, note: &str) -> Vec<Cell> {
        let record = &self.entry.record;
        row(&record.recipe, arm_of(self.judgement), &self.judgement.verdict, note, Some(self.entry.sequence))
    }
}

fn row(recipe: &str, arm: Option<String>, verdict: &Verdict, note: &str, record: Option<u64>) -> Vec<Cell> {
    vec![
        Cell::words(recipe),
        Cell::words(claim(verdict)),
        Cell::words(verdict.eval.clone().unwrap_or_default()),
        Cell::words(arm.unwrap_or_default()),
        Cell::number(verdict.published),
        Cell::number(verdict.measured),
        Cell::count(u64::from(verdict.seeds)),
        Cell::words(format!("{}{note}", verdict.outcome)),
        record.map_or_else(|| Cell::words(""), Cell::count),
    ]
}

/// The last judgement of each claim in each arm, in the order of the ledger.
fn last_judgements<'e>(recipes: &[RecipeStanding], entries: &'e [Entry]) -> Vec<Last<'e>> {
    let mut last: BTreeMap<(String, String), Last<'e>> = BTreeMap::new();
    for entry in entries {
        let record = &entry.record;
        let unchanged = || record.overrides.is_empty() || recipes.iter().any(|standing| standing.has(record));
        let published = record.tier.as_deref().is_none_or(|tier| tier == "full") && unchanged();
        for judgement in record.judgements.iter().filter(|_| published) {
            let own = &judgement.verdict;
            let arm = arm_of(judgement);
            let parts =
                [&own.eval, &arm, &judgement.claim.decode].map(|part| part.clone().unwrap_or_default());
            let value = own.published.map_or(String::new(), |v| v.to_string());
            let identity =
                format!("{}\n{}\n{value}\n{}", claim(own), parts.join("\n"), judgement.claim.source);
            last.insert((record.recipe.clone(), identity), Last { entry, judgement });
        }
    }
    last.into_values().collect()
}

/// How the runs of each recipe ended.
fn run_ends(entries: &[Entry]) -> BTreeMap<&str, BTreeMap<String, usize>> {
    let mut ends: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for record in entries.iter().map(|entry| &entry.record) {
        if !(record.scores.is_empty() && record.end == RunEnd::Finished) {
            *ends.entry(&record.recipe).or_default().entry(record.end.to_string()).or_default() += 1;
        }
    }
    ends
}

/// The arm that was run; a claim may speak of any.
fn arm_of(judgement: &Judgement) -> Option<String> {
    judgement.evidence.arm.clone().or_else(|| judgement.verdict.arm.clone())
}

/// `readme` with the generated part put between its markers.
///
/// # Errors
/// [`ReadmeError::Markers`].
pub fn replace(readme: &str, generated: &str) -> Result<String, ReadmeError> {
    let (start, end) = between(readme)?;
    Ok(format!("{}\n{}{}", &readme[..start], generated, &readme[end..]))
}

/// Compares the generated part of `readme` with what the ledger gives; `command` is what renews it.
///
/// # Errors
/// [`ReadmeError::Stale`] names the first line that differs; [`ReadmeError::Markers`].
pub fn check(readme: &str, generated: &str, command: &str) -> Result<(), ReadmeError> {
    let fresh = replace(readme, generated)?;
    if fresh == readme {
        return Ok(());
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (readme.lines().collect(), fresh.lines().collect());
    let line = (0..old.len().max(new.len())).find(|i| old.get(*i) != new.get(*i)).unwrap_or(0);
    let text = |lines: &[&str]| (*lines.get(line).unwrap_or(&"(nothing)")).to_owned();
    let hint = format!("run `{command}`");
    Err(ReadmeError::Stale { line: line + 1, found: text(&old), expected: text(&new), hint })
}

/// Byte offsets of the end of the first marker and the start of the second.
fn between(readme: &str) -> Result<(usize, usize), ReadmeError> {
    let once = |marker: &str| {
        let mut places = readme.match_indices(marker).map(|(at, _)| at);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            _ => Err(ReadmeError::Markers),
        }
    };
    let (start, end) = (once(BEGIN)? + BEGIN.len(), once(END)?);
    if start <= end { Ok((start, end)) } else { Err(ReadmeError::Markers) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_part_is_put_in_and_compared() {
        let readme = format!("# zoo\n\n{BEGIN}\nold\n{END}\nmore\n");
        let fresh = replace(&readme, "new\n").unwrap();
        assert_eq!(fresh, format!("# zoo\n\n{BEGIN}\nnew\n{END}\nmore\n"));
        assert_eq!(replace(&fresh, "new\n").unwrap(), fresh);
        assert_eq!(check(&fresh, "new\n", "zoo results"), Ok(()));
        let Err(ReadmeError::Stale { line, found, expected, .. }) = check(&readme, "new\n", "zoo results")
        else {
            panic!("the old text went through");
        };
        assert_eq!((line, found.as_str(), expected.as_str()), (4, "old", "new"));
        for bad in ["", &format!("{END}\n{BEGIN}\n"), &format!("{BEGIN}\n{BEGIN}\n{END}\n")] {
            assert_eq!(replace(bad, ""), Err(ReadmeError::Markers));
        }
    }

    #[test]
    fn an_empty_ledger_hides_no_claim() {
        let text = render(&[], &[]);
        assert!(text.starts_with("| claims |") && text.ends_with("0 records, last hash `none`.\n"), "{text}");
        let document = zoo_recipes::Document::load("reversal-transformer").unwrap();
        let standing = RecipeStanding {
            recipe: document.name().to_owned(),
            hashes: BTreeSet::from([document.hash(None, &[]).unwrap()]),
            claims: document.resolve(&zoo_recipes::Selection::default()).unwrap().recipe.claim,
            evidence: "parity".to_owned(),
        };
        let text = render(std::slice::from_ref(&standing), &[]);
        assert!(text.contains("\n| 2 | 0 | 0 | 0 | 0 | 2 |\n"), "{text}");
        assert!(text.contains("| reversal-transformer | parity | 2 | 0 | 0 | 0 | 0 | 2 |"), "{text}");
        assert_eq!(text.matches("| NOT RUN |").count(), 2, "{text}");
    }
}
