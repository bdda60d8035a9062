//! Packing of a trained run into a folder or archive that works anywhere, and the check of one.
//!
//! [`package`](crate::run::package) has the layout.

mod archive;
mod card;
mod check;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::{Recipe, atomic};
use zoo_results::bundle::{BundleError, MAX_BYTES, check as check_bundle};
use zoo_results::exit::Exit;
use zoo_results::ledger::{Entry, Ledger};
use zoo_training::weights;

use self::card::{Card, model_card};
pub use self::check::check;
use crate::bundling::{entry_about, gather};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::json;
use crate::run::data::Sets;
use crate::run::evaluate::{Evaluation, evaluated_weights, read_evaluation};
use crate::run::folder::{Run, VOCABULARY, evaluation_files};
use crate::run::own_files::{FILES, LIST, OwnFiles, PackedFiles};
use crate::run::package::{MANIFEST, Manifest, PackedFile, WEIGHTS};
use crate::tasks;

/// File of the model card.
const CARD: &str = "README.md";
/// File of the judged record.
const BUNDLE: &str = "record.bundle.json";
/// Ending of the name of an archive.
const ARCHIVE: &str = "tar";

/// What to pack.
pub struct PackRequest<'a> {
    /// The run, opened.
    pub run: &'a Run,
    /// Recipe of the run.
    pub recipe: &'a Recipe,
    /// Ledger with the record of the run.
    pub ledger: &'a Ledger,
    /// Recipe to check the record with if the built-in one has changed.
    pub changed_recipe: Option<&'a str>,
    /// Whether to pack the record with its evidence.
    pub with_bundle: bool,
    /// Licence of the weights for the card, as Hugging Face names licences.
    pub licence: Option<&'a str>,
}

/// A written package.
pub struct Packed {
    /// The folder or archive.
    pub place: PathBuf,
    /// Number of files.
    pub files: usize,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// The record that the card quotes.
    pub entry: Option<Entry>,
}

/// Content of a file to write.
enum Content {
    Bytes(Vec<u8>),
    /// A copy of this file.
    Of(PathBuf),
}

/// Name of a package without a name: recipe, tier, arm and seed.
pub fn usual_name(run: &Run) -> String {
    let card = &run.card;
    let tier = card.tier.as_ref().map_or_else(String::new, |tier| format!(".{tier}"));
    format!("{}{tier}-{}-seed{}", card.recipe, card.arm, card.seed)
}

/// Packs a run into `place`: an archive if its name ends in `.tar`, else a folder. The same run and
/// record give the same bytes.
///
/// # Errors
/// `place` exists, the run has not ended or is a package, or something that belongs to the package
/// is missing or damaged.
pub fn pack(ctx: &Context, request: &PackRequest<'_>, place: &Path) -> Result<Packed> {
    let run = request.run;
    if Manifest::of(&run.folder)?.is_some() {
        return Err(Failure::usage(format!("{} is a package already", run.folder.display()))
            .hint("copy the folder; `zoo pack --check` checks it"));
    }
    if !run.trained_file().is_file() {
        return Err(Failure::usage(format!("the run {} has not ended", run.folder.display()))
            .hint("`zoo reproduce` trains it to its end; `zoo export` writes the weights of any run"));
    }
    if place.exists() {
        return Err(Failure::usage(format!("{} is there already", place.display()))
            .hint("-o DIR or FILE.tar names another place; nothing is overwritten"));
    }
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| Failure::io("make", parent, &error))?;
    let (contents, entry) = contents(ctx, request, parent)?;
    let staging = temporary(parent)?;
    let folder = staging.path().join(usual_name(run));
    let mut packed = BTreeMap::new();
    for (name, content) in &contents {
        ctx.check_stop()?;
        packed.insert(name.clone(), written(&folder.join(name), content)?);
    }
    let manifest = json(&Manifest::new(packed.clone()))?;
    written(&folder.join(MANIFEST), &Content::Bytes(manifest.clone()))?;
    // Nothing is given away that cannot be used.
    check::usable(ctx, &folder)?;
    if place.extension().is_some_and(|ending| ending == ARCHIVE) {
        archive::write(&folder, &usual_name(run), place)?;
    } else {
        atomic::rename(&folder, place).map_err(|error| Failure::io("write", place, &error))?;
    }
    Ok(Packed {
        place: place.to_owned(),
        files: packed.len() + 1,
        bytes: packed.values().map(|file| file.bytes).sum::<u64>() + manifest.len() as u64,
        entry,
    })
}

/// A folder beside the package, removed when dropped.
fn temporary(parent: &Path) -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix(".packing-").tempdir_in(parent);
    made.map_err(|error| Failure::io("write in", parent, &error))
}

/// The files of the package by their names, and the record of the run.
fn contents(
    ctx: &Context,
    request: &PackRequest<'_>,
    parent: &Path,
) -> Result<(BTreeMap<String, Content>, Option<Entry>)> {
    let PackRequest { run, recipe, ledger, .. } = request;
    let mut contents = BTreeMap::new();
    let mut add = |name: &str, content: Content| contents.insert(name.to_owned(), content);
    let values = evaluated_weights(run, recipe)?.values;
    let parameters: usize = values.iter().map(|one| one.values.len()).sum();
    let bytes = weights::encode(&values, about(run, recipe)?);
    add(WEIGHTS, Content::Bytes(bytes.map_err(|why| Failure::new(Exit::Internal, why))?));
    drop(values);
    for name in ["recipe.toml", "trained.json"] {
        add(name, Content::Of(run.folder.join(name)));
    }
    // The folder that the recipe lay in is of the author's machine.
    let identity = crate::run::folder::Card { base: PathBuf::from(FILES), ..run.card.clone() };
    add("run.json", Content::Bytes(json(&identity)?));
    for (name, content) in vocabulary(ctx, run, recipe, parent)? {
        add(&format!("{VOCABULARY}/{name}"), content);
    }
    let PackedFiles { list, files, missing } = OwnFiles::of(&run.folder)?.packed(recipe, &run.card.base)?;
    missing.iter().for_each(|why| ctx.progress.note(why));
    if !files.is_empty() {
        add(&format!("{FILES}/{LIST}"), Content::Bytes(json(&list)?));
    }
    for (name, file) in files {
        add(&format!("{FILES}/{name}"), Content::Of(file));
    }
    let entry = entry_about(ledger, &run.folder)?;
    if let Some(entry) = entry.as_ref().filter(|_| request.with_bundle) {
        add(BUNDLE, Content::Bytes(bundle(ctx, request, entry)?));
    }
    let folder = run.folder.join("eval");
    let evaluations: Vec<Evaluation> =
        evaluation_files(&folder).iter().map(|file| read_evaluation(&folder, file)).collect::<Result<_>>()?;
    let card = model_card(&Card {
        name: &usual_name(run),
        run,
        recipe,
        task: &*tasks::of(recipe),
        trained: &run.trained()?,
        evaluations: &evaluations,
        entry: entry.as_ref(),
        has_bundle: request.with_bundle,
        corpus: recipe.data().corpus().map(CorpusDefinition::find).transpose()?.as_ref(),
        licence: request.licence,
        parameters,
    });
    add(CARD, Content::Bytes(card.into_bytes()));
    Ok((contents, entry))
}

/// Metadata of the weights' file.
pub fn about(run: &Run, recipe: &Recipe) -> Result<HashMap<String, String>> {
    let text = recipe
        .to_toml()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot write the recipe: {error}")))?;
    let card = &run.card;
    let facts = [
        ("format", "pt".to_owned()),
        ("recipe", text),
        ("arm", card.arm.clone()),
        ("seed", card.seed.to_string()),
        ("key", card.key.clone()),
    ];
    Ok(facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// The files that the run keeps for a user's own input. They are made from the data for a run that
/// ended under an earlier version, which kept none.
fn vocabulary(ctx: &Context, run: &Run, recipe: &Recipe, parent: &Path) -> Result<Vec<(String, Content)>> {
    let task = tasks::of(recipe);
    if !task.keeps_vocabulary() {
        return Ok(Vec::new());
    }
    if run.has_vocabulary() {
        let kept = run.folder.join(VOCABULARY);
        return Ok(files_in(&kept)?.into_iter().map(|(name, file)| (name, Content::Of(file))).collect());
    }
    let ctx = ctx.for_run(&run.card.compute)?.reading(Some(run.folder.clone()));
    let data = task.prepare(&ctx, &run.card.base, Sets::All)?;
    data.check(recipe, run)?;
    let folder = temporary(parent)?;
    data.keep(folder.path())?;
    let read = |(name, file): (String, PathBuf)| {
        let bytes = fs::read(&file).map_err(|error| Failure::io("read", &file, &error))?;
        Ok((name, Content::Bytes(bytes)))
    };
    files_in(folder.path())?.into_iter().map(read).collect()
}

/// Name and path of each file of a folder.
fn files_in(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |error: std::io::Error| Failure::io("read", folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file()) {
            files.push((name.to_owned(), path));
        }
    }
    Ok(files)
}

/// The record with its evidence, checked.
fn bundle(ctx: &Context, request: &PackRequest<'_>, entry: &Entry) -> Result<Vec<u8>> {
    let without = |failure: Failure| {
        let (message, hint) = failure.parts();
        let hint = hint.map_or_else(String::new, |hint| format!("{hint}; "));
        Failure::new(failure.exit, format!("cannot pack record {}: {message}", entry.sequence))
            .hint(format!("{hint}--no-bundle leaves the record's evidence out"))
    };
    let (bundle, references) = gather(ctx, request.ledger, entry, request.changed_recipe).map_err(without)?;
    let checked = check_bundle(&bundle, &references).map_err(|error| without(error.into()))?;
    if !checked.holds() {
        return Err(without(Failure::new(Exit::Damaged, "it contradicts what is derived from it")));
    }
    let text = bundle.encode().map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(without(BundleError::TooLarge.into()));
    }
    Ok(text.into_bytes())
}

/// Writes a file of the package. Returns its size and digest.
fn written(path: &Path, content: &Content) -> Result<PackedFile> {
    let failed = |error: std::io::Error| Failure::io("write", path, &error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    match content {
        Content::Bytes(bytes) => {
            let mut file = fs::File::create_new(path).map_err(failed)?;
            file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
            Ok(PackedFile { bytes: bytes.len() as u64, sha256: hex::encode(Sha256::digest(bytes)) })
        }
        Content::Of(source) => {
            let mut from =
                zoo_recipes::untrusted::open(source).map_err(|error| Failure::io("read", source, &error))?;
            let mut file = fs::File::create_new(path).map_err(failed)?;
            std::io::copy(&mut from, &mut file).and_then(|_| file.sync_all()).map_err(failed)?;
            let bytes = file.metadata().map_err(failed)?.len();
            let sha256 = zoo_datasets::fetch::sha256_file(path).map_err(failed)?;
            Ok(PackedFile { bytes, sha256 })
        }
    }
}
