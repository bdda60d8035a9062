//! The generated parts of RESULTS.md and README.md, from recipes and ledger.

use std::collections::BTreeMap;

use zoo_recipes::Statement;

use super::account::{Account, ClaimAccount, Listed, RecipeStanding, WORST_FIRST};
use super::table::{Cell, Column, Format, Table};
use super::tally::{ByStatement, Tally, heading};
use super::verdicts::claim;
use crate::ledger::{Entry, RunEnd};
use crate::verdict::Outcome;

/// The generated parts of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// All tables: totals, recipes, every claim with its verdicts, how runs ended, the ledger's
    /// last hash.
    pub results: String,
    /// The finished runs, in a few lines.
    pub runs: String,
}

/// Outcomes in the order of the columns.
const COLUMNS: [Outcome; 6] = [
    Outcome::Reproduced,
    Outcome::NotReproduced,
    Outcome::Inconclusive,
    Outcome::NotComparable,
    Outcome::NotRun,
    Outcome::NotJudgeable,
];

/// Counts of claims: those with an outcome that counts, and those that were judged but do not
/// count.
#[derive(Default, Clone)]
struct Counts {
    tally: Tally,
    uncounted: u64,
}

impl Counts {
    fn add(&mut self, claim: &ClaimAccount<'_>) {
        match claim.outcome {
            Some(outcome) => self.tally.add(outcome),
            None => self.uncounted += 1,
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let of = COLUMNS.iter().map(|outcome| self.tally.of(*outcome));
        let all = std::iter::once(self.tally.count() + self.uncounted).chain(of).chain([self.uncounted]);
        all.map(Cell::count).collect()
    }

    fn columns(first: &[&str]) -> Vec<Column> {
        let outcomes = COLUMNS.map(|outcome| outcome.to_string().to_lowercase());
        let words = first.iter().map(|title| Column::words(title));
        let numbers = outcomes.iter().map(|title| Column::numbers(title));
        words
            .chain([Column::numbers("claims")])
            .chain(numbers)
            .chain([Column::numbers("not counted")])
            .collect()
    }
}

/// Both generated parts. The same recipes and ledger always give the same text.
#[must_use]
pub fn render(recipes: &[RecipeStanding], entries: &[Entry]) -> Generated {
    let account = Account::of(recipes, entries);
    Generated { results: results(recipes, &account, entries), runs: runs(&account) }
}

fn results(recipes: &[RecipeStanding], account: &Account<'_>, entries: &[Entry]) -> String {
    let mut counts = ByStatement::<Counts>::default();
    account.claims.iter().for_each(|one| counts.of_mut(one.claim.statement()).add(one));
    let mut totals = Table::new(Counts::columns(&["statement"]));
    for statement in Statement::ALL {
        totals.push([vec![Cell::words(heading(statement))], counts.of(statement).cells()].concat());
    }
    let mut text = format!("{}\n", totals.render(Format::Md));
    text.push_str(&at_their_margins(&counts));
    text.push('\n');
    text.push_str(&recipe_table(recipes, account).render(Format::Md));
    for statement in Statement::ALL {
        text.push_str(&format!("\n### {}\n\n", title(statement)));
        let mut table = verdict_columns();
        let listed = account.claims.iter().filter(|one| one.claim.statement() == statement);
        listed.flat_map(|one| &one.listed).for_each(|one| table.push(row(one)));
        account.others.iter().filter(|one| one.statement == statement).for_each(|one| table.push(row(one)));
        text.push_str(&table.render(Format::Md));
    }
    text.push_str("\n### How runs ended\n\n");
    for (recipe, ends) in run_ends(entries) {
        let counts: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        text.push_str(&format!("- Runs of {recipe}: {}.\n", counts.join(", ")));
    }
    let head = entries.last().map_or("none", |entry| entry.hash.as_str());
    text.push_str(&format!("- Ledger: {} records, last hash `{head}`.\n", entries.len()));
    text
}

fn title(statement: Statement) -> &'static str {
    match statement {
        Statement::Published => "Published for the configuration",
        Statement::Extended => "Printed by the source for a sibling configuration",
        Statement::Own => "Checks of this project: nobody published them for the system",
    }
}

/// What the error rate of a single verdict means for all verdicts together.
fn at_their_margins(counts: &ByStatement<Counts>) -> String {
    let of = |statement| {
        let decided = counts.of(statement).tally.decided();
        let plural = if decided == 1 { "" } else { "s" };
        format!("{:.2} of {decided} verdict{plural} on {}", 0.05 * decided as f64, heading(statement))
    };
    let parts = Statement::ALL.map(of);
    format!(
        "A verdict that says REPRODUCED or NOT REPRODUCED is wrong 5 times in 100 for a system that stands at the claim's margin.\n\
         If all stood there, about {}, {} and {} would be wrong.\n",
        parts[0], parts[1], parts[2]
    )
}

fn recipe_table(recipes: &[RecipeStanding], account: &Account<'_>) -> Table {
    let mut table = Table::new(Counts::columns(&["recipe", "evidence", "statement"]));
    for standing in recipes {
        let mut counts = ByStatement::<Counts>::default();
        let of_recipe = account.claims.iter().filter(|one| std::ptr::eq(one.standing, standing));
        of_recipe.for_each(|one| counts.of_mut(one.claim.statement()).add(one));
        for statement in Statement::ALL {
            let counts = counts.of(statement);
            if counts.tally.count() + counts.uncounted > 0 {
                let words = [standing.recipe.as_str(), &standing.evidence, statement.name()];
                table.push([words.map(Cell::words).to_vec(), counts.cells()].concat());
            }
        }
    }
    table
}

fn verdict_columns() -> Table {
    Table::new(vec![
        Column::words("recipe"),
        Column::words("claim"),
        Column::words("set"),
        Column::words("arm"),
        Column::numbers("claimed"),
        Column::numbers("measured"),
        Column::numbers("seeds"),
        Column::words("verdict"),
        Column::words("earlier verdicts"),
        Column::words("record"),
    ])
}

fn row(one: &Listed) -> Vec<Cell> {
    let verdict = &one.verdict;
    vec![
        Cell::words(one.recipe.clone()),
        Cell::words(claim(verdict)),
        Cell::words(verdict.eval.clone().unwrap_or_default()),
        Cell::words(one.arm.clone().unwrap_or_default()),
        Cell::number(verdict.published),
        Cell::number(verdict.measured),
        Cell::count(u64::from(verdict.seeds)),
        Cell::words(words(one)),
        Cell::words(one.earlier.text().unwrap_or_default()),
        one.record.map_or_else(|| Cell::words(""), Cell::count),
    ]
}

/// The outcome in words: `REPRODUCED (not counted: ...)`, `NOT JUDGEABLE: no code ...`.
fn words(one: &Listed) -> String {
    let outcome = one.verdict.outcome;
    match one.uncounted {
        // The claim's own cell already states this.
        Some(_) if one.verdict.external => outcome.to_string(),
        Some(why) => format!("{outcome} ({why})"),
        None if outcome == Outcome::NotJudgeable => format!("{outcome}: {}", one.verdict.explanation),
        None => outcome.to_string(),
    }
}

/// Claims that were run to their end: a sentence on published values of real data, a line for each
/// published or extended claim, with the worst of its arms, and the numbers of own checks by
/// verdict.
fn runs(account: &Account<'_>) -> String {
    let real = || {
        let published = |one: &&ClaimAccount<'_>| one.claim.statement() == Statement::Published;
        account.claims.iter().filter(published).filter(|one| !one.standing.generated)
    };
    let reproduced = real().filter(|one| one.outcome == Some(Outcome::Reproduced)).count();
    let mut text = match reproduced {
        0 => "No value that was published for real data has been reproduced yet.\n\n".to_owned(),
        n => format!(
            "{n} of {} claims that were published for real data have been reproduced.\n\n",
            real().count()
        ),
    };
    let mut table = Table::new(vec![
        Column::words("recipe"),
        Column::words("data"),
        Column::words("statement"),
        Column::words("claim"),
        Column::words("arm"),
        Column::numbers("claimed"),
        Column::numbers("measured"),
        Column::words("verdict"),
    ]);
    let mut rows: Vec<(&RecipeStanding, Vec<&Listed>)> = Vec::new();
    for one in &account.claims {
        let ran: Vec<&Listed> = one.listed.iter().filter(|listed| listed.record.is_some()).collect();
        let counted: Vec<&Listed> = ran.iter().copied().filter(|listed| listed.uncounted.is_none()).collect();
        let others: Vec<&Listed> =
            account.others.iter().filter(|other| is_reached_here(other) && is_of(other, one)).collect();
        // The verdicts that count, else those that do not, else those of an earlier version.
        rows.extend(
            [counted, ran, others].into_iter().find(|of| !of.is_empty()).map(|of| (one.standing, of)),
        );
    }
    rows.sort_by_key(|(standing, of)| (of[0].statement, standing.generated, standing.recipe.clone()));
    let mut own: BTreeMap<String, usize> = BTreeMap::new();
    for (standing, of) in rows {
        let rank = |one: &&&Listed| WORST_FIRST.iter().position(|outcome| *outcome == one.verdict.outcome);
        let Some(worst) = of.iter().min_by_key(|one| rank(one).unwrap_or(WORST_FIRST.len())) else {
            continue;
        };
        let verdict = match worst.uncounted {
            Some(why) => format!("{}, {}", worst.verdict.outcome, why.split(':').next().unwrap_or(why)),
            None => worst.verdict.outcome.to_string(),
        };
        if worst.statement == Statement::Own {
            *own.entry(verdict).or_default() += 1;
            continue;
        }
        let arms: Vec<&str> = of.iter().filter_map(|one| one.arm.as_deref()).collect();
        table.push(vec![
            Cell::words(&standing.recipe),
            Cell::words(if standing.generated { "generated" } else { "real" }),
            Cell::words(worst.statement.name()),
            Cell::words(claim(&worst.verdict).split(" (").next().unwrap_or_default()),
            Cell::words(arms.join(", ")),
            Cell::number(worst.verdict.published),
            Cell::number(worst.verdict.measured),
            Cell::words(verdict),
        ]);
    }
    text.push_str(&table.render(Format::Md));
    if !own.is_empty() {
        let counts: Vec<String> = own.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        text.push_str(&format!("\nOwn checks of this project: {}.\n", counts.join("; ")));
    }
    text
}

/// Whether a verdict on an earlier version of a recipe is on this claim.
fn is_of(other: &Listed, one: &ClaimAccount<'_>) -> bool {
    let verdict = &other.verdict;
    (&other.recipe, verdict.kind, &verdict.metric, &verdict.eval, verdict.published)
        == (&one.standing.recipe, one.claim.kind, &one.claim.metric, &one.claim.eval, one.claim.value)
        && one.claim.speaks_of(other.arm.as_deref().unwrap_or_default())
}

fn is_reached_here(one: &Listed) -> bool {
    super::earlier::is_reached(one.verdict.outcome) && !one.verdict.external
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_empty_ledger_hides_no_claim_and_adds_up_no_kinds() {
        let text = render(&[], &[]).results;
        assert!(text.ends_with("0 records, last hash `none`.\n"), "{text}");
        let document = zoo_recipes::Document::load("reversal-transformer").unwrap();
        let standing = RecipeStanding {
            recipe: document.name().to_owned(),
            hashes: BTreeSet::from([document.hash(None, &[]).unwrap()]),
            claims: document.resolve(&zoo_recipes::Selection::default()).unwrap().recipe.claim.clone(),
            evidence: "parity".to_owned(),
            generated: true,
            free: Vec::new(),
        };
        let Generated { results, runs } = render(std::slice::from_ref(&standing), &[]);
        for line in [
            "| published claims | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
            "| extended claims | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |",
            "| own checks | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |",
            "| reversal-transformer | parity | extended | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |",
        ] {
            assert!(results.contains(&format!("\n{line}\n")), "{line}\n{results}");
        }
        assert_eq!(results.matches("| NOT RUN |").count(), 2, "{results}");
        assert!(runs.starts_with("No value that was published for real data"), "{runs}");
    }
}
