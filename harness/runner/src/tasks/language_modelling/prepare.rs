//! Preparation of a recipe's text.

use std::path::Path;
use std::sync::Arc;

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::tasks::language_modelling::{
    LanguageDataError, PreparedLanguage, fetched_names, own_lines, own_stamps, prepare_language,
};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::language_modelling::LanguageDataSpec;
use zoo_results::exit::Exit;

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::folder::{Run, VOCABULARY};

/// Fetches and reads the text of all splits: the vocabulary depends on them. `base` is the folder
/// that the recipe's paths are relative to.
///
/// # Errors
/// The data cannot be obtained, or it is damaged.
pub fn prepare(ctx: &Context, data: &LanguageDataSpec, base: &Path) -> Result<Arc<PreparedLanguage>> {
    let splits = fetched_names(data);
    let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
    let definition = data.corpus_to_fetch().map(CorpusDefinition::find).transpose()?;
    let fetch = |definition: &CorpusDefinition| {
        definition.fetch_splits(&splits, &ctx.data_home(), &ctx.fetch_options())
    };
    let fetched = definition.as_ref().map(fetch).transpose();
    ctx.progress.end_stage();
    ctx.progress.stage("read text");
    let prepared = prepare_language(data, fetched?.as_ref(), base);
    ctx.progress.end_stage();
    Ok(Arc::new(prepared.map_err(failure)?))
}

/// Units that a run kept.
///
/// # Errors
/// The kept file is missing or was changed. A text that changed since would number the units in
/// another way, so it is not read instead.
pub fn of_run(data: &LanguageDataSpec, run: &Run) -> Result<Arc<PreparedLanguage>> {
    let folder = run.folder.join(VOCABULARY);
    let kept = PreparedLanguage::kept(data, &folder).map_err(failure)?.ok_or_else(|| {
        Failure::new(Exit::Damaged, format!("{} has no units", folder.display()))
            .hint("restore it, or remove the run's folder and train again")
    })?;
    Ok(Arc::new(kept))
}

/// Compares the vocabulary that a run kept with its digests.
///
/// # Errors
/// A kept file is missing or was changed.
pub fn check_vocabulary(data: &LanguageDataSpec, run: &Run) -> Result<()> {
    PreparedLanguage::kept(data, &run.folder.join(VOCABULARY)).map(drop).map_err(failure)
}

/// Number of training lines in the files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_examples(data: &LanguageDataSpec, base: &Path) -> Result<Option<usize>> {
    own_lines(data, base).map_err(failure)
}

/// Path and hash of the files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_files(data: &LanguageDataSpec, base: &Path) -> Result<Vec<(String, String)>> {
    own_stamps(data, base).map_err(failure)
}

/// What is wrong with the text, as a failure of the command.
pub fn failure(error: LanguageDataError) -> Failure {
    let exit = match error {
        LanguageDataError::Kept { .. } => Exit::Damaged,
        _ => Exit::Data,
    };
    Failure::new(exit, error.to_string())
}
