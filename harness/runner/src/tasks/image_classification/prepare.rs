//! Preparation of a recipe's pictures.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::tasks::image_classification::{
    PictureDataError, PreparedPictures, own_pictures, own_stamps, prepare_pictures,
};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::image_classification::PictureDataSpec;
use zoo_results::exit::Exit;

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::data::Sets;

/// Fetches and reads the pictures of all splits, or of the splits of some evaluation sets. `base`
/// is the folder that the recipe's paths are relative to.
///
/// # Errors
/// The data cannot be obtained, or it is damaged.
pub fn prepare(
    ctx: &Context,
    data: &PictureDataSpec,
    base: &Path,
    sets: Sets<'_>,
) -> Result<Arc<PreparedPictures>> {
    let of_set = |name: &str| data.eval_set(name).map(|set| set.split.to_owned());
    let splits: BTreeSet<String> = match sets {
        Sets::All => {
            let evaluated = data.eval_sets().into_iter().filter_map(of_set);
            evaluated.chain([data.training().to_owned()]).collect()
        }
        Sets::Evaluation(names) => names.iter().filter_map(|name| of_set(name)).collect(),
    };
    let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
    let definition = data.corpus_to_fetch().map(CorpusDefinition::find).transpose()?;
    let fetch = |definition: &CorpusDefinition| {
        definition.fetch_splits(&splits, &ctx.data_home(), &ctx.fetch_options())
    };
    let fetched = definition.as_ref().map(fetch).transpose();
    ctx.progress.end_stage();
    ctx.progress.stage("read pictures");
    let prepared = prepare_pictures(data, fetched?.as_ref(), base, &splits);
    ctx.progress.end_stage();
    Ok(Arc::new(prepared.map_err(failure)?))
}

/// Number of training pictures in the files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_examples(data: &PictureDataSpec, base: &Path) -> Result<Option<usize>> {
    own_pictures(data, base).map_err(failure)
}

/// Path and hash of the files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_files(data: &PictureDataSpec, base: &Path) -> Result<Vec<(String, String)>> {
    own_stamps(data, base).map_err(failure)
}

/// What is wrong with the pictures, as a failure of the command.
pub fn failure(error: PictureDataError) -> Failure {
    let exit = match error {
        PictureDataError::Kept { .. } => Exit::Damaged,
        _ => Exit::Data,
    };
    Failure::new(exit, error.to_string())
}
