//! `zoo profile`: prints and draws the exponents of the values of some updates.

use std::path::Path;

use zoo_recipes::Document;
use zoo_results::exit::Exit;
use zoo_results::profile::{Fp16Shares, Pattern, Quantity, Row};
use zoo_results::report::exponents::{figure, is_figure, percent};

use crate::cli::ProfileArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Cell, Format, Table};
use crate::run::folder::Run;
use crate::run::saved_profile;
use crate::runs::run_or_recipe;
use crate::stages::{ProfileReport, Request, Subject, chosen_arms, profile};

/// Number of paths that an error names.
const NAMED: usize = 5;

pub fn run(context: &Context, args: &ProfileArgs) -> Result<Exit> {
    if let Some(file) = &args.svg {
        check_figure(file)?;
    }
    let subject = subject(context, args)?;
    if args.save {
        check_saving(&subject)?;
    }
    let mut report = profile(context, &subject, &args.updates)?;
    if let Some(run) = report.run.as_ref().filter(|_| args.save) {
        write(context, &report, &saved_profile::path(run), || saved_profile::save(run, &report))?;
    }
    if let Some(pattern) = &args.layer {
        let matching = report.updates.clone().matching(&Pattern::new(pattern));
        match matching.paths().is_empty() {
            false => report.updates = matching,
            true => {
                let all = report.updates.paths();
                let first = all[..all.len().min(NAMED)].join(", ");
                context.progress.note(&format!(
                    "no layer or parameter matches `{pattern}`, so all are printed; the first are {first}"
                ));
            }
        }
    }
    if let Some(file) = &args.svg {
        let svg = figure(&title(&report), &report.updates, report.suggested.log2);
        write(context, &report, file, || write_whole(file, svg.as_bytes()))?;
    }
    match context.format {
        Format::Json => output::write_document("profile", &report)?,
        Format::Csv => output::write(&numbers(&report).render(Format::Csv))?,
        format => output::write(&text(&report, format))?,
    }
    report.failure.map_or(Ok(Exit::Ok), Err)
}

/// Writes a file. One of a profile with missing updates replaces no earlier one.
fn write(
    context: &Context,
    report: &ProfileReport,
    file: &Path,
    write: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !report.missing_updates.is_empty() && file.exists() {
        let file = context.shown(file);
        context.progress.note(&format!("did not overwrite {file}: updates are missing"));
        return Ok(());
    }
    write()?;
    context.progress.note(&format!("wrote {}", context.shown(file)));
    Ok(())
}

/// Refuses to overwrite a file that is not a figure of this command.
fn check_figure(file: &Path) -> Result<()> {
    match std::fs::read(file) {
        Ok(there) if !is_figure(&there) => {
            Err(Failure::usage(format!("{} exists and is not a figure of zoo profile", file.display()))
                .hint("choose another path with --svg FILE; only such figures are overwritten"))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("read", file, &error)),
        _ => Ok(()),
    }
}

/// Refuses to save the profile of a recipe, and to overwrite what is not a saved profile.
fn check_saving(subject: &Subject) -> Result<()> {
    match subject {
        Subject::Run(path) => saved_profile::check(&Run::folder_of(path)?),
        Subject::Recipe(_) => {
            Err(Failure::usage("--save writes into the folder of a run, and a recipe has none")
                .hint("name a run: `zoo runs` lists them"))
        }
    }
}

/// The recipe or run that the options name.
fn subject(context: &Context, args: &ProfileArgs) -> Result<Subject> {
    if let Some(run) = run_or_recipe(context, &args.subject)? {
        let overlay = &args.overlay;
        let is_set =
            [args.arm.is_some(), args.seed.is_some(), overlay.tier.is_some(), !overlay.overrides.is_empty()];
        if is_set.contains(&true) {
            return Err(Failure::usage("--arm, --seed, --tier and --set cannot change a run")
                .hint("omit them, or name a recipe instead of a run"));
        }
        return Ok(Subject::Run(run));
    }
    let document = Document::load(&args.subject)?;
    let arms = chosen_arms(&document, args.arm.as_slice())?;
    let request = Request::of(&document, args.overlay.tier.as_deref(), 1)?;
    Ok(Subject::Recipe(Box::new(Request {
        arms: arms.into_iter().take(1).collect(),
        overrides: args.overlay.overrides.clone(),
        seeds: args.seed.map_or(request.seeds, |seed| vec![seed]),
        ..request
    })))
}

fn title(report: &ProfileReport) -> String {
    let tier = report.tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
    let named = |numbers: Vec<u64>| match numbers.as_slice() {
        [one] => format!("update {one}"),
        _ => format!("updates {}", numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let updates = named(report.updates.updates.iter().map(|one| one.update).collect());
    let missing = match report.missing_updates.as_slice() {
        [] => String::new(),
        missing => format!("; training ended before {}", named(missing.to_vec())),
    };
    format!("{}{tier}, {}, seed {}: {updates}{missing}", report.recipe, report.arm, report.seed)
}

/// Tables of shares, and the suggested scale.
fn text(report: &ProfileReport, format: Format) -> String {
    let heading = |text: &str| match format {
        Format::Md => format!("\n## {text}\n\n"),
        _ => format!("\n{text}\n"),
    };
    let mut out = format!("{}\n", title(report));
    out.push_str(&heading("updates"));
    out.push_str(&updates(report).render(format));
    for quantity in Quantity::ALL {
        let rows = report.updates.rows(quantity, false);
        if rows.iter().all(|row| row.histogram.values() == 0) {
            continue;
        }
        out.push_str(&heading(&format!("{}, share of all values", quantity.name())));
        out.push_str(&shares(report, quantity, &rows).render(format));
    }
    out.push_str(&format!("\n{}\n", report.suggested));
    let others =
        report.other_seconds.map_or_else(String::new, |seconds| format!(", {seconds:.4} s the others"));
    out.push_str(&format!(
        "profiled updates took {:.4} s{others} (medians), on {}\n",
        report.profiled_seconds, report.hardware
    ));
    out
}

fn updates(report: &ProfileReport) -> Table {
    let mut table = output::columns(["update", "#loss", "#learning rate", "#loss scale", "#seconds"]);
    for one in &report.updates.updates {
        let number = |value: f64, text: String| Cell { text, value: value.into() };
        table.push(vec![
            Cell::count(one.update),
            number(one.loss, format!("{:.4}", one.loss)),
            number(one.lr, format!("{:.3e}", one.lr)),
            number(one.loss_scale, one.loss_scale.to_string()),
            number(one.seconds, format!("{:.4}", one.seconds)),
        ]);
    }
    table
}

/// Columns of a row's place.
fn place(row: &Row) -> [Cell; 2] {
    let update = row.update.map_or_else(|| Cell::words("all"), Cell::count);
    [update, Cell::words(row.path.clone().unwrap_or_else(|| "all".to_owned()))]
}

/// Table of a quantity's shares of FP16's ranges; those with the suggested scale only for gradients.
fn shares(report: &ProfileReport, quantity: Quantity, rows: &[Row]) -> Table {
    let scale = report.suggested.log2;
    let scaled = quantity.is_scaled() && scale > 0;
    let mut titles = vec!["update".to_owned(), "layer".to_owned(), "#values".to_owned()];
    let of = |titles: &[&str]| titles.iter().map(|title| format!("#{title}")).collect::<Vec<_>>();
    titles.extend(match quantity {
        Quantity::Ratios => of(&["unmoved", "2048 and more"]),
        _ => of(&["zero", "< 2^-24", "subnormal", ">= 2^16"]),
    });
    if scaled {
        let names = ["< 2^-24", "subnormal", ">= 2^16"];
        titles.extend(names.map(|name| format!("#x2^{scale}: {name}")));
    }
    titles.push("#exponents".to_owned());
    let mut table = output::columns(titles.iter().map(String::as_str));
    for row in rows {
        let (histogram, all) = (&row.histogram, row.histogram.values());
        let share = |count: u64| Cell { text: percent(count, all), value: count.into() };
        let outside = |log2: i32| {
            let Fp16Shares { lost, subnormal, above, .. } = Fp16Shares::of(histogram, log2);
            [lost, subnormal, above].map(share)
        };
        let mut cells: Vec<Cell> = place(row).into();
        cells.push(Cell::count(all));
        match quantity {
            Quantity::Ratios => {
                cells.extend([histogram.not_finite(), histogram.at_least(Quantity::LARGE_RATIO)].map(share));
            }
            _ => {
                cells.push(share(histogram.zeros()));
                cells.extend(outside(0));
            }
        }
        if scaled {
            cells.extend(outside(scale));
        }
        let ends = histogram.ends().map_or_else(|| "-".to_owned(), |(low, high)| format!("{low} to {high}"));
        cells.push(Cell::words(ends));
        table.push(cells);
    }
    table
}

/// One table of numbers of values, for programs: every quantity, update and layer.
fn numbers(report: &ProfileReport) -> Table {
    let titles = [
        "quantity",
        "update",
        "layer",
        "#values",
        "#zero",
        "#not finite",
        "#lost",
        "#subnormal",
        "#above",
        "#scale",
        "#lost scaled",
        "#subnormal scaled",
        "#above scaled",
        "#2048 and more",
        "#lowest exponent",
        "#highest exponent",
        "counts",
    ];
    let mut table = output::columns(titles);
    for quantity in Quantity::ALL {
        let is_ratio = quantity == Quantity::Ratios;
        let count = |value: u64, applies: bool| if applies { Cell::count(value) } else { Cell::words("") };
        for row in report.updates.rows(quantity, true) {
            let (histogram, scaled) = (&row.histogram, quantity.is_scaled());
            let plain = Fp16Shares::of(histogram, 0);
            let with = Fp16Shares::of(histogram, report.suggested.log2);
            let mut cells = vec![Cell::words(quantity.name())];
            cells.extend(place(&row));
            cells.extend([histogram.values(), histogram.zeros(), histogram.not_finite()].map(Cell::count));
            cells.extend([plain.lost, plain.subnormal, plain.above].map(|value| count(value, !is_ratio)));
            cells.push(match scaled {
                true => Cell::number(Some(report.suggested.scale)),
                false => Cell::words(""),
            });
            cells.extend([with.lost, with.subnormal, with.above].map(|value| count(value, scaled)));
            cells.push(count(histogram.at_least(Quantity::LARGE_RATIO), is_ratio));
            let ends = histogram.ends();
            let exponent = |end: Option<i32>| Cell::number(end.map(f64::from));
            cells.extend([exponent(ends.map(|(low, _)| low)), exponent(ends.map(|(_, high)| high))]);
            let counts: Vec<String> =
                histogram.exponents().map(|(exponent, count)| format!("{exponent}:{count}")).collect();
            cells.push(Cell::words(counts.join(" ")));
            table.push(cells);
        }
    }
    table
}
