//! Preparation of a recipe's texts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::tasks::text_classification::{
    KnownWords, LabelledTextError, PreparedTexts, own_stamps, own_texts, prepare_texts,
};
use zoo_recipes::tasks::text_classification::{LabelledDataSpec, LabelledTokenizerSpec};
use zoo_recipes::{DataBlock, ListedTask};
use zoo_results::exit::Exit;

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::folder::{Run, VOCABULARY};

/// Fetches and reads the texts of all splits: the training texts number the words of all others.
/// `base` is the folder that the recipe's paths are relative to.
///
/// # Errors
/// The data cannot be obtained, or it is damaged.
pub fn prepare(ctx: &Context, data: &LabelledDataSpec, base: &Path) -> Result<Arc<PreparedTexts>> {
    let known = known(ctx, data)?;
    let held_out = data.held_out.as_ref().map(|part| part.split.as_str());
    // A cross-validation makes all of its splits of the training texts.
    let of_corpus = |split: &&str| data.folds.is_none() && Some(*split) != held_out;
    let evaluated = data.eval.values().map(|set| set.split.as_str());
    let splits: BTreeSet<&str> = evaluated.filter(of_corpus).chain([data.training()]).collect();
    let splits: Vec<&str> = splits.into_iter().collect();
    let definition = data.corpus_to_fetch().map(CorpusDefinition::find).transpose()?;
    let fetch = |definition: &CorpusDefinition| {
        definition.fetch_splits(&splits, &ctx.data_home(), &ctx.fetch_options())
    };
    let fetched = definition.as_ref().map(fetch).transpose();
    ctx.progress.end_stage();
    ctx.progress.stage("read texts");
    let prepared = prepare_texts(data, fetched?.as_ref(), base, known);
    ctx.progress.end_stage();
    let prepared = prepared.map_err(failure)?;
    // Before the training, not after it.
    data.eval.keys().try_for_each(|set| prepared.eval_set(set, data).map(|_| ())).map_err(failure)?;
    Ok(Arc::new(prepared))
}

/// The words of the language model whose run the context names, if the tokenizer reads such words.
///
/// # Errors
/// The run kept no words, or they were changed.
fn known(ctx: &Context, data: &LabelledDataSpec) -> Result<Option<KnownWords>> {
    let (LabelledTokenizerSpec::LanguageModel { .. }, Some(folder)) = (&data.tokenizer, &ctx.source) else {
        return Ok(None);
    };
    let (run, recipe) = Run::open(folder)?;
    // A classifier keeps the words of its language model.
    if zoo_recipes::TextClassification::of(&recipe).is_some() {
        return Ok(of_run(data, &run)?.vocabulary.known().cloned());
    }
    let kept = KnownWords::of_run(&data.tokenizer, &run.folder.join(VOCABULARY)).map_err(failure)?;
    let missing = || {
        Failure::new(Exit::Data, format!("the run {} kept no words", run.folder.display()))
            .hint("remove that folder and train its recipe again, or name another run with --init-from RUN")
    };
    kept.ok_or_else(missing).map(Some)
}

/// The texts with their labels for a comparison of labels: how words are numbered does not matter.
///
/// # Errors
/// As for [`prepare`].
pub fn labelled(ctx: &Context, data: &LabelledDataSpec, base: &Path) -> Result<Arc<PreparedTexts>> {
    prepare(ctx, &LabelledDataSpec { tokenizer: LabelledTokenizerSpec::Kim {}, ..data.clone() }, base)
}

/// Words and classes that a run kept.
///
/// # Errors
/// The kept files are missing or were changed. Texts that changed since would number the words in
/// another way, so they are not read instead.
pub fn of_run(data: &LabelledDataSpec, run: &Run) -> Result<Arc<PreparedTexts>> {
    let folder = run.folder.join(VOCABULARY);
    let kept = PreparedTexts::kept(data, &folder).map_err(failure)?.ok_or_else(|| {
        Failure::new(Exit::Damaged, format!("{} has no words and classes", folder.display()))
            .hint("restore it, or remove the run's folder and train again")
    })?;
    Ok(Arc::new(kept))
}

/// Compares the vocabulary that a run kept with its digests.
///
/// # Errors
/// A kept file is missing or was changed.
pub fn check_vocabulary(data: &LabelledDataSpec, run: &Run) -> Result<()> {
    PreparedTexts::kept(data, &run.folder.join(VOCABULARY)).map(drop).map_err(failure)
}

/// Number of training texts in the files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_examples(data: &LabelledDataSpec, base: &Path) -> Result<Option<usize>> {
    own_texts(data, base).map_err(failure)
}

/// Path and hash of the files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_files(data: &LabelledDataSpec, base: &Path) -> Result<Vec<(String, String)>> {
    own_stamps(data, base).map_err(failure)
}

/// What is wrong with the texts, as a failure of the command.
pub fn failure(error: LabelledTextError) -> Failure {
    let exit = match error {
        LabelledTextError::Kept { .. } => Exit::Damaged,
        _ => Exit::Data,
    };
    Failure::new(exit, error.to_string())
}
