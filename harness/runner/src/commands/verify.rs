//! `zoo verify`: re-checks the evidence of recipes.

use serde_json::json;
use zoo_models::ops::{Agreement, agreements};
use zoo_recipes::Document;
use zoo_results::exit::Exit;

use crate::cli::VerifyArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::rung::Rung;
use crate::evidence::{ladder, reached};
use crate::output::{self, Cell, Format};
use crate::records;
use crate::verify::{Climbed, Climber};

/// Checks the recipes one after another, then fails if a level failed.
pub fn run(context: &Context, args: &VerifyArgs) -> Result<Exit> {
    if args.kernels {
        return kernels(context, args);
    }
    let names: Vec<String> = match args.recipes.as_slice() {
        [] => zoo_recipes::names().into_iter().map(str::to_owned).collect(),
        some => some.to_vec(),
    };
    let ledgers = match &args.ledger {
        Some(path) if !path.is_file() => {
            return Err(Failure::new(Exit::Data, format!("there is no ledger {}", path.display())).hint(
                "the project's ledger is results/data/ledger.jsonl; the default is the ledger in --home",
            ));
        }
        Some(path) => vec![path.clone()],
        None => vec![context.ledger_path()],
    };
    let context = &context.for_fixtures();
    let runs = records::known_runs(context)?;
    let mut climber = Climber::new(context, args.compute.compute(), args.fixtures.as_deref(), &ledgers)?;
    let mut all: Vec<(String, Vec<Climbed>)> = Vec::new();
    let mut broken = Vec::new();
    for name in &names {
        let document = Document::load(name)?;
        // By default only recorded levels are checked, because a level without evidence cannot
        // break. A level that the user names must hold.
        let shown = reached(&ladder(&document, &runs)).unwrap_or(Rung::Schema);
        let to = args.to.unwrap_or(shown.min(Rung::Parity));
        let climbed = climber.climb(&document, to)?;
        if let Some(last) = climbed.last().filter(|last| !last.holds) {
            broken.push(format!("{}: {} failed: {}", document.name(), last.rung.name(), last.what));
        }
        context.progress.note(&format!(
            "{}: passed up to {}",
            document.name(),
            standing(&climbed).unwrap_or("none")
        ));
        all.push((document.name().to_owned(), climbed));
    }
    print(context, &all)?;
    match broken.as_slice() {
        [] => Ok(Exit::Ok),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            Err(Failure::new(Exit::Mismatch, format!("{first}{more}"))
                .hint("levels above a failed one were not checked; `zoo show NAME` prints what each level is derived from"))
        }
    }
}

/// Compares zoo's own operations with the same operations composed from Burn's.
fn kernels(context: &Context, args: &VerifyArgs) -> Result<Exit> {
    let context = &context.for_fixtures();
    let compute = args.compute.compute();
    let device = context.open_device_for(compute)?;
    let named = |operation: &str| args.recipes.iter().any(|name| operation.starts_with(name.as_str()));
    let wanted = |operation: &str| args.recipes.is_empty() || named(operation);
    let mut found = agreements(&device, compute, &wanted);
    found.extend(zoo_training::agreement::agreements(&device, &wanted));
    if found.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            format!("no operation is called {}", args.recipes.join(" or ")),
        )
        .hint("`zoo verify --kernels` without names compares all operations"));
    }
    let mut table =
        output::columns(["operation", "holds", "#error", "#limit", "#launches", "#composed launches"]);
    for one in &found {
        let launches = |which: usize| match one.launches {
            Some(launches) => Cell::of(launches[which].to_string(), launches[which]),
            None => Cell::number(None),
        };
        table.push(vec![
            Cell::words(one.operation),
            Cell::flag(one.holds(), ["yes", "NO"]),
            Cell::of(format!("{:.1e}", one.error), one.error),
            Cell::of(format!("{:.0e}", one.limit), one.limit),
            launches(0),
            launches(1),
        ]);
    }
    output::write_table("verify", "operations", &table, context.format)?;
    let broken: Vec<&Agreement> = found.iter().filter(|one| !one.holds()).collect();
    match broken.as_slice() {
        [] => Ok(Exit::Ok),
        [first, rest @ ..] => Err(Failure::new(
            Exit::Mismatch,
            format!(
                "{}: the own operation differs from its composition by {:.1e}, {:.0e} is allowed (and {} more)",
                first.operation,
                first.error,
                first.limit,
                rest.len()
            ),
        )
        .hint("`zoo verify --to parity` says which of the two is wrong: fixtures are computed with the own operations")),
    }
}

/// Name of the highest level that passed.
fn standing(climbed: &[Climbed]) -> Option<&'static str> {
    climbed.iter().take_while(|one| one.holds).last().map(|one| one.rung.name())
}

fn print(context: &Context, all: &[(String, Vec<Climbed>)]) -> Result<()> {
    if context.format == Format::Json {
        let all: Vec<_> = (all.iter())
            .map(|(recipe, climbed)| json!({ "recipe": recipe, "reached": standing(climbed), "rungs": climbed }))
            .collect();
        return output::write_document("verify", &json!({ "recipes": all }));
    }
    let mut table = output::columns(["recipe", "rung", "holds", "#seconds", "what was done"]);
    for (recipe, climbed) in all {
        for one in climbed {
            table.push(vec![
                Cell::words(recipe.clone()),
                Cell::words(one.rung.name()),
                Cell::flag(one.holds, ["yes", "NO"]),
                Cell::of(format!("{:.1}", one.seconds), one.seconds),
                Cell::words(one.what.clone()),
            ]);
        }
    }
    output::write(&table.render(context.format))
}
