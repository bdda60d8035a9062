//! `zoo pack`: packs a run into a folder or archive that works anywhere, or checks one.

use std::path::PathBuf;

use serde_json::json;
use zoo_results::exit::Exit;
use zoo_results::report::grouped;

use crate::cli::PackArgs;
use crate::context::Context;
use crate::error::Result;
use crate::output::{self, Format};
use crate::packing::{self, PackRequest};
use crate::records;
use crate::runs::folder_of;
use crate::stages::opened_run;

pub fn run(context: &Context, args: &PackArgs) -> Result<Exit> {
    if args.check {
        return check(context, args);
    }
    let (run, recipe) = opened_run(&folder_of(context, &args.run)?, "zoo pack")?;
    let ledger = records::open(context, args.file.ledger.as_deref())?;
    let place = args.out.clone().unwrap_or_else(|| PathBuf::from(packing::usual_name(&run)));
    let request = PackRequest {
        run: &run,
        recipe: &recipe,
        ledger: &ledger,
        changed_recipe: args.recipe.as_deref(),
        with_bundle: !args.no_bundle,
        licence: args.license.as_deref(),
    };
    let packed = packing::pack(context, &request, &place)?;
    let record = packed.entry.as_ref().map(|entry| entry.sequence);
    match context.format {
        Format::Json => output::write_document(
            "pack",
            &json!({
                "package": packed.place, "files": packed.files, "bytes": packed.bytes, "record": record,
                "recipe": run.card.recipe, "tier": run.card.tier, "arm": run.card.arm, "seed": run.card.seed,
            }),
        )?,
        Format::Human => output::write(&format!(
            "{}: {} files, {} bytes, {}\n",
            packed.place.display(),
            packed.files,
            grouped(packed.bytes),
            record.map_or_else(|| "no record".to_owned(), |number| format!("record {number}"))
        ))?,
        format => table(format, &packed.place.display().to_string(), packed.files, packed.bytes, record)?,
    }
    Ok(Exit::Ok)
}

/// Runs `zoo pack --check`.
fn check(context: &Context, args: &PackArgs) -> Result<Exit> {
    let checked = packing::check(context, &args.run)?;
    for other in &checked.others {
        context.progress.note(&format!("{other} is not a file of the package"));
    }
    let card = &checked.run.card;
    let record = checked.record.as_ref().map(|(number, _)| *number);
    match context.format {
        Format::Json => output::write_document(
            "pack",
            &json!({
                "package": args.run, "files": checked.files, "bytes": checked.bytes, "others": checked.others,
                "record": record, "record_hash": checked.record.as_ref().map(|(_, hash)| hash),
                "recipe": card.recipe, "tier": card.tier, "arm": card.arm, "seed": card.seed,
            }),
        )?,
        Format::Human => output::write(&format!(
            "{}: {}, {} files are as they were packed, {} bytes; the model can be used\n",
            args.run.display(),
            packing::usual_name(&checked.run),
            checked.files,
            grouped(checked.bytes)
        ))?,
        format => table(format, &args.run.display().to_string(), checked.files, checked.bytes, record)?,
    }
    Ok(Exit::Ok)
}

fn table(format: Format, package: &str, files: usize, bytes: u64, record: Option<u64>) -> Result<()> {
    let mut table = output::columns(["package", "#files", "#bytes", "#record"]);
    let number = |count: Option<u64>| count.map_or_else(|| output::Cell::number(None), output::Cell::count);
    table.push(vec![
        output::Cell::words(package),
        output::Cell::count(files as u64),
        output::Cell::count(bytes),
        number(record),
    ]);
    output::write(&table.render(format))
}
