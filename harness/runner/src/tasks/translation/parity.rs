//! Parity fixtures of translation models and of their searches.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::precision::Compute;
use zoo_recipes::OptimizerSpec;
use zoo_recipes::TokenSearchSpec;
use zoo_recipes::tasks::translation::{TokenDecoderSpec, TokenLossSpec, TranslationModelSpec};
use zoo_results::exit::Exit;
use zoo_training::align::Alignment;
use zoo_training::tasks::translation::Reference;

use super::Recipe;
use super::kinds::{differences_of, same_loss, same_search};
use crate::error::{Failure, Result};
use crate::task::aligner::{Aligner, Found};
use crate::task::fixtures::FIXTURES;

/// Description of the model in a fixture from another framework.
#[derive(Debug, Deserialize)]
struct Described {
    model: TranslationModelSpec,
    loss: TokenLossSpec,
    /// Present if the fixture has gradients and an update.
    #[serde(default)]
    optimizer: Option<OptimizerSpec>,
    #[serde(default)]
    searches: BTreeMap<String, TokenSearchSpec>,
}

impl Described {
    /// Whether the fixture has an update, the same kinds of model parts and the same loss as the
    /// recipe.
    fn is_like(&self, recipe: &Recipe) -> bool {
        self.optimizer.is_some()
            && differences_of(&recipe.model, &self.model).is_empty()
            && same_loss(&recipe.loss, &self.loss)
    }

    /// Whether the fixture has a search of this kind by a decoder with the same search state.
    fn searches_like(&self, decoder: &TokenDecoderSpec, search: &TokenSearchSpec) -> bool {
        decoder.has_states_of(&self.model.decoder)
            && self.searches.values().any(|other| same_search(search, other))
    }
}

/// Descriptions of the fixtures by file name.
static DESCRIBED: LazyLock<BTreeMap<&'static str, Described>> = LazyLock::new(|| FIXTURES.with("model"));

/// Fixture files that match the recipe's model, and fixture files that match each of its searches.
///
/// # Errors
/// No fixture has the kinds of parts of the model or of a search; the error is a description.
fn files(recipe: &Recipe) -> std::result::Result<(Vec<&'static str>, Vec<&'static str>), String> {
    let with = |like: &dyn Fn(&Described) -> bool| -> Vec<&'static str> {
        DESCRIBED.iter().filter(|(_, described)| like(described)).map(|(file, _)| *file).collect()
    };
    let models = with(&|described| described.is_like(recipe));
    if models.is_empty() {
        return Err("no fixture has these kinds of parts".to_owned());
    }
    let mut of_searches = Vec::new();
    for (name, search) in &recipe.decode {
        let found = with(&|described| described.searches_like(&recipe.model.decoder, search));
        if found.is_empty() {
            return Err(format!("no fixture has a search like decode.{name}"));
        }
        of_searches.extend(found);
    }
    Ok((models, of_searches))
}

/// The first fixture with the same kinds of parts, if the model, the loss and all searches have
/// one.
pub fn parity(recipe: &Recipe) -> Found {
    let (models, _) = files(recipe)?;
    Ok(format!("tests/fixtures/{}", models[0]))
}

/// Recomputes the matching fixtures.
pub fn align(recipe: &Recipe, aligner: &mut Aligner) -> Found {
    let (models, of_searches) = files(recipe)?;
    let mut files = [models, of_searches].concat();
    files.sort_unstable();
    files.dedup();
    let said: std::result::Result<Vec<String>, String> =
        files.into_iter().map(|file| aligner.once(file, |aligner| align_file(file, aligner))).collect();
    // In half precision, a file that has only searches contributes no text.
    let said: Vec<String> = said?.into_iter().filter(|said| !said.is_empty()).collect();
    Ok(format!("{}{}", aligner.products(), said.join("; ")))
}

/// Compares the recipe's model with weights, outputs, gradients and one update from another
/// framework.
///
/// # Errors
/// The file cannot be read, or it describes a model with other kinds of parts.
pub fn align_dump(recipe: &Recipe, file: &Path, device: &Device, compute: Compute) -> Result<Alignment> {
    let reference = Reference::read(file)?;
    let described = &reference.description;
    let mut unlike = differences_of(&recipe.model, &described.model);
    if !same_loss(&recipe.loss, &described.loss) {
        unlike.push("loss".to_owned());
    }
    if !unlike.is_empty() {
        let file = file.display();
        return Err(Failure::new(
            Exit::Usage,
            format!("{file} is not of this recipe's model: {}", unlike.join(", ")),
        )
        .hint("sizes may differ, kinds must match; the metadata key `zoo` describes the model"));
    }
    Ok(reference.align(device, compute)?)
}

fn align_file(file: &str, aligner: &Aligner) -> Found {
    let bytes = aligner.bytes(file)?;
    let reference = Reference::parse(file, &bytes).map_err(|error| error.to_string())?;
    let alignment =
        reference.align(aligner.device(), aligner.compute()).map_err(|error| error.to_string())?;
    if let Some(broken) = alignment.rungs.iter().find(|rung| !rung.holds()) {
        let (name, at) = (&broken.name, &broken.at);
        return Err(format!(
            "{file} on {}: {name} differ by {:.1e}, {:.0e} is allowed, at {at}",
            aligner.device_name(),
            broken.error,
            broken.limit
        ));
    }
    if alignment.rungs.is_empty() {
        return Ok(String::new());
    }
    let tensors: usize = alignment.rungs.iter().map(|rung| rung.tensors).sum();
    Ok(format!("{file}: {} rungs, {tensors} tensors", alignment.rungs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_of_models_are_read() {
        assert!(DESCRIBED.len() >= 4, "{:?}", DESCRIBED.keys());
    }
}
