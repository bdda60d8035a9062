//! `zoo list`: lists recipes with their evidence.

use std::collections::HashMap;

use rayon::prelude::*;
use zoo_recipes::{DataStatus, Document, nearest};
use zoo_results::exit::Exit;

use crate::claim_tables::{self, ClaimsOf};
use crate::cli::ListArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::Versions;
use crate::evidence::rung::Rung;
use crate::fitting::{fitted, terminal_width};
use crate::listing::{Headline, Listed, listed};
use crate::output::{self, Cell, Format, Table};
use crate::records::{self, Kept};
use crate::{exporting, standing};

pub fn run(context: &Context, args: &ListArgs) -> Result<Exit> {
    let mut all = listed(context)?;
    if let Some(task) = &args.task {
        known("task", task, all.iter().map(|one| one.task.as_str()))?;
    }
    for tag in &args.tag {
        known("tag", tag, all.iter().flat_map(|one| &one.tags).map(String::as_str))?;
    }
    all.retain(|one| {
        args.tag.iter().all(|tag| one.tags.contains(tag))
            && args.task.as_ref().is_none_or(|task| one.task == *task)
            && args.evidence.is_none_or(|least| one.evidence >= Some(least))
    });
    let (key, table) = match args.claims {
        true => ("claims", claims(context, &all, args)?),
        false => ("recipes", recipes(context, &all, args)),
    };
    exporting::write("list", key, &table, context.format, args.out.as_deref())?;
    if all.is_empty() {
        context.progress.note("no recipe matches all of these filters; `zoo list` shows every recipe");
    }
    Ok(Exit::Ok)
}

/// Whether a table is for programs. In a file it always is.
fn is_for_programs(context: &Context, args: &ListArgs) -> bool {
    args.out.is_some() || matches!(context.format, Format::Csv | Format::Json)
}

/// A table for people in the width of their terminal.
fn in_terminal(context: &Context, table: Table) -> Table {
    match terminal_width() {
        Some(width) if context.format == Format::Human => fitted(table, width),
        _ => table,
    }
}

fn recipes(context: &Context, all: &[Listed], args: &ListArgs) -> Table {
    match is_for_programs(context, args) {
        true => for_programs(all),
        false => in_terminal(context, for_people(all)),
    }
}

/// The claims of these recipes with their last verdicts.
fn claims(context: &Context, all: &[Listed], args: &ListArgs) -> Result<Table> {
    let mut of_recipe: HashMap<String, Vec<Kept>> = HashMap::new();
    for kept in records::kept(context, None) {
        of_recipe.entry(kept.entry.record.recipe.clone()).or_default().push(kept);
    }
    let with_records: Vec<(&str, Vec<Kept>)> =
        all.iter().map(|one| (one.name.as_str(), of_recipe.remove(&one.name).unwrap_or_default())).collect();
    let standings = with_records.into_par_iter().map(|(name, kept)| {
        let document = Document::load(name)?;
        let mut versions = Versions::new(&document);
        let standings = standing::claims(&document, &mut versions, kept)?;
        Ok((name, versions.body()?.claim.clone(), standings))
    });
    let standings = standings.collect::<Result<Vec<_>>>()?;
    let of = standings.iter().map(|(recipe, claims, standings)| ClaimsOf { recipe, claims, standings });
    Ok(match is_for_programs(context, args) {
        true => claim_tables::for_programs(of),
        false => in_terminal(context, claim_tables::for_people(of)),
    })
}

/// Rejects a filter value that no recipe has, because an empty list would look like a valid answer.
fn known<'a>(what: &str, given: &str, words: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    if words.contains(&given) {
        return Ok(());
    }
    let hint = match nearest(given, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    Err(Failure::usage(format!("no recipe has the {what} `{given}`"))
        .hint(format!("{hint}the {what}s are {}", words.join(", "))))
}

/// Columns for people.
fn for_people(all: &[Listed]) -> Table {
    let mut table =
        output::columns(["name", "verdict", "of", "#size", "#time", "evidence", "task", "summary"]);
    for one in all {
        let headline = one.headline();
        let of = |Headline { statement, count, claims, .. }: Headline| {
            format!("{count}/{claims} {}", &statement.name()[..3])
        };
        table.push(output::words([
            one.name.clone(),
            headline.map_or_else(|| "-".to_owned(), |headline| headline.outcome.to_string()),
            headline.map(of).unwrap_or_default(),
            one.parameters.map_or_else(|| "-".to_owned(), |(count, _)| rounded(count)),
            one.trained.as_ref().map_or_else(|| "-".to_owned(), |trained| rough(trained.seconds)),
            one.evidence.map_or("none", Rung::name).to_owned(),
            one.task.clone(),
            one.summary.clone(),
        ]));
    }
    table
}

fn for_programs(all: &[Listed]) -> Table {
    let mut table = output::columns([
        "name",
        "task",
        "arms",
        "#published",
        "#extended",
        "#own",
        "#not judgeable",
        "evidence",
        "data",
        "summary",
        "#parameters",
        "parameters exact",
        "train seconds",
        "trained on",
        "verdict",
        "statement",
        "outcomes",
    ]);
    for one in all {
        let headline = one.headline();
        let mut row = vec![
            Cell::words(&one.name),
            Cell::words(&one.task),
            Cell::list(one.arms.iter().map(String::as_str), " "),
        ];
        row.extend(one.counts.numbers().map(Cell::count));
        row.extend([
            Cell::of("", one.evidence.map(Rung::name)),
            Cell::words(status(one.data)),
            Cell::words(&one.summary),
            Cell::of("", one.parameters.map(|(count, _)| count)),
            Cell::of("", one.parameters.map(|(_, exact)| exact)),
            Cell::of("", one.trained.as_ref().map(|trained| trained.seconds)),
            Cell::of("", one.trained.as_ref().and_then(|trained| trained.hardware.clone())),
            headline.map_or_else(|| Cell::words(""), |headline| Cell::outcome(headline.outcome)),
            Cell::of("", headline.map(|headline| headline.statement.name())),
            Cell::of(one.outcomes.lines().join("; "), one.outcomes.json()),
        ]);
        table.push(row);
    }
    table
}

/// A number in at most five characters: `21 k`, `2.6 M`, `211 M`.
fn rounded(count: u64) -> String {
    let number = count as f64;
    let (scaled, unit) = match count {
        0..1000 => return count.to_string(),
        1000..999_500 => (number / 1e3, "k"),
        999_500..999_500_000 => (number / 1e6, "M"),
        _ => (number / 1e9, "G"),
    };
    if scaled < 9.95 { format!("{scaled:.1} {unit}") } else { format!("{scaled:.0} {unit}") }
}

/// A duration in one unit: `57 s`, `16 min`, `9 h`, `12 d`.
fn rough(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        ..90.0 => (seconds, "s"),
        ..5400.0 => (seconds / 60.0, "min"),
        ..172_800.0 => (seconds / 3600.0, "h"),
        _ => (seconds / 86_400.0, "d"),
    };
    format!("{scaled:.0} {unit}")
}

/// Name of a data status, as recipes write it.
pub fn status(status: DataStatus) -> &'static str {
    match status {
        DataStatus::Public => "public",
        DataStatus::Generated => "generated",
        DataStatus::Gated => "gated",
        DataStatus::Private => "private",
    }
}

#[cfg(test)]
mod tests {
    use zoo_results::report::{ByStatement, Tally};
    use zoo_results::verdict::Outcome;

    use super::*;
    use crate::listing::Trained;
    use crate::wording::ClaimCounts;

    #[test]
    fn every_recipe_fits_eighty_columns_with_verdict_size_and_time() {
        let listed = |name: &str| {
            let document = Document::load(name).unwrap();
            let about = document.about();
            let mut outcomes = ByStatement::<Tally>::default();
            outcomes.of_mut(zoo_recipes::Statement::Own).add(Outcome::NotReproduced);
            Listed {
                name: about.name.clone(),
                task: about.task.to_string(),
                tags: about.tags.clone(),
                arms: Vec::new(),
                data: about.status,
                summary: about.summary.clone(),
                evidence: Some(Rung::SmallRun),
                counts: ClaimCounts { statements: [0, 0, 8], not_judgeable: 0 },
                outcomes,
                parameters: Some((2_568_192, true)),
                trained: Some(Trained { arm: "fp32".into(), seconds: 5_399.0, hardware: None }),
            }
        };
        let all: Vec<Listed> = zoo_recipes::names().into_iter().map(listed).collect();
        let text = fitted(for_people(&all), 80).render(Format::Human);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let columns: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(columns, ["name", "verdict", "of", "size", "time"]);
        assert!(text.contains("  NOT REPRODUCED  1/8 own  2.6 M  90 min"), "{text}");
        let wide = for_people(&all);
        assert_eq!(wide.columns.len(), 8);
    }

    #[test]
    fn numbers_are_short() {
        let counts = [12, 999, 1_000, 21_568, 999_499, 999_500, 2_568_192, 210_808_832, 1_230_000_000];
        assert_eq!(
            counts.map(rounded),
            ["12", "999", "1.0 k", "22 k", "999 k", "1.0 M", "2.6 M", "211 M", "1.2 G"].map(str::to_owned)
        );
        let times = [57.4, 89.9, 90.0, 957.5, 5400.0, 200_000.0];
        assert_eq!(times.map(rough), ["57 s", "90 s", "2 min", "16 min", "2 h", "2 d"].map(str::to_owned));
    }
}
