//! The check of a package: every byte, and whether the model can be used.

use std::path::Path;

use zoo_results::bundle::contradictions;
use zoo_results::exit::Exit;

use super::{BUNDLE, archive};
use crate::bundling;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::is_below;
use crate::run::folder::{Card, Run};
use crate::run::own_files::OwnFiles;
use crate::run::package::{MANIFEST, Manifest};
use crate::stages::{InferRequest, inference};
use crate::tasks;

/// A package that was checked.
pub struct Checked {
    /// Identity of the packed run.
    pub run: Run,
    /// Number of files that the manifest lists.
    pub files: usize,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Files that the manifest does not list.
    pub others: Vec<String>,
    /// The record in the package: its number and hash.
    pub record: Option<(u64, String)>,
}

/// Checks the package in a folder or archive.
///
/// # Errors
/// It is not a package, a file is missing or was changed, or the model cannot be used.
pub fn check(ctx: &Context, place: &Path) -> Result<Checked> {
    if place.is_dir() {
        return usable(ctx, place);
    }
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Failure::io("write in", &std::env::temp_dir(), &error))?;
    archive::read(place, folder.path())?;
    usable(ctx, folder.path()).map_err(|failure| failure.about(&place.display().to_string()))
}

/// Checks the package in a folder.
///
/// # Errors
/// As for [`check`].
pub fn usable(ctx: &Context, folder: &Path) -> Result<Checked> {
    let shown = folder.display();
    let manifest = Manifest::of(folder)?.ok_or_else(|| {
        Failure::new(Exit::Data, format!("{shown} is not a package: it has no {MANIFEST}"))
            .hint("`zoo pack RUN -o DIR` writes a package")
    })?;
    let mut faults = Vec::new();
    for name in manifest.files.keys() {
        ctx.check_stop()?;
        let fault = match is_below(name) {
            true => manifest.fault(folder, name),
            false => Some("its name leads out of the package".to_owned()),
        };
        faults.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    if let Some(first) = faults.first() {
        let (count, all) = (faults.len(), manifest.files.len());
        let message = format!("{shown}: {count} of {all} files are missing or changed: {first}");
        return Err(Failure::new(Exit::Damaged, message).hint("get the package again"));
    }
    let known = |name: &String| name != MANIFEST && !manifest.files.contains_key(name);
    let names = archive::names(folder).map_err(|error| Failure::io("read", folder, &error))?;
    let others = names.into_iter().filter(known).collect();
    let request = InferRequest { run: folder.to_owned(), decode: None, overrides: Vec::new(), compute: None };
    let opened = inference(ctx, &request)?;
    tasks::of(&opened.recipe).open(&opened)?;
    OwnFiles::of(folder)?.checked().try_for_each(|(_, result)| result)?;
    let record = match manifest.files.contains_key(BUNDLE) {
        true => Some(record(folder, &opened.run)?),
        false => None,
    };
    let bytes = manifest.files.values().map(|file| file.bytes).sum();
    Ok(Checked { run: opened.run, files: manifest.files.len(), bytes, others, record })
}

/// Number and hash of the record in a package. It must agree with itself and be about the run.
fn record(folder: &Path, run: &Run) -> Result<(u64, String)> {
    let path = folder.join(BUNDLE);
    let damaged = |why: String| Failure::new(Exit::Damaged, format!("{}: {why}", path.display()));
    let bundle = bundling::read(&path)?;
    if let Some(first) = contradictions(&bundle)?.first() {
        return Err(damaged(first.clone()));
    }
    let entry = bundle.entry()?;
    let card = &run.card;
    let is_this = |arm: &str, seed: u64| arm == card.arm && seed == card.seed;
    let scored = entry.record.scores.iter().any(|score| is_this(&score.arm, score.seed));
    if entry.record.recipe != card.recipe || !scored {
        let Card { recipe, arm, seed, .. } = card;
        return Err(damaged(format!("it has no score of {recipe}, arm {arm}, seed {seed}")));
    }
    Ok((entry.sequence, entry.hash))
}
