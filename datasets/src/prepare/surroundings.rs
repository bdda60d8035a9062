//! Inputs of all preparation steps: the recipe's folder, the corpus's preparation, the progress
//! callback and the file names.

use std::path::Path;

use serde_json::{Value, json};
use zoo_recipes::tasks::translation::{TextDataSpec, TextTokenizerSpec};

use super::error::PrepareError;
use super::translation::PrepareOptions;
use crate::corpora::Preparation;
use crate::fetch::sha256_file;

/// File name of the learnt merges.
pub(super) const CODES: &str = "codes";

/// File name of a vocabulary: the shared one, or that of `side`.
pub(super) fn vocabulary_file(joined: bool, side: &str) -> String {
    if joined { "vocabulary".into() } else { format!("vocabulary.{side}") }
}

/// File name of a SentencePiece model: the shared one, or that of `side`.
pub(super) fn model_file(joined: bool, side: &str) -> String {
    if joined { "sentencepiece.model".into() } else { format!("sentencepiece.{side}.model") }
}

/// Inputs of the preparation besides `[data]` and the text.
pub(super) struct Surroundings<'a> {
    /// The folder that the recipe's paths are relative to.
    pub base: &'a Path,
    /// The preparation in the corpus's definition.
    pub preparation: Option<&'a Preparation>,
    /// Called at the beginning of every step.
    pub progress: &'a dyn Fn(PrepareStep<'_>),
}

/// A step of the preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrepareStep<'a> {
    /// Reads, normalises and cleans the text of this split, and counts its words.
    Text(&'a str),
    /// Shuffles the training pairs.
    Shuffle,
    /// Learns sub-words and vocabularies.
    Learn,
    /// Writes this split as tokens and ids.
    Encode(&'a str),
    /// Loads the written files.
    Load,
}

impl Surroundings<'_> {
    /// Everything on which the prepared ids depend, besides the text itself.
    pub(super) fn settings(
        &self,
        data: &TextDataSpec,
        options: PrepareOptions,
    ) -> Result<Value, PrepareError> {
        let mut settings = json!({
            "reader": data.reader,
            "tokenizer": data.tokenizer,
            "filter": data.filter,
            "begin_token_in_source": data.begin_token_in_source,
            "begin_token_in_target": options.begin_token_in_target,
        });
        if options.begins_before_target(data) {
            settings["begin_token_counts_in_target"] = json!(true);
        }
        if let Some(share) = data.share {
            settings["share"] = json!(share);
        }
        if let Some(preparation) = self.preparation {
            settings["preparation"] = json!(preparation);
        }
        if let TextTokenizerSpec::SentencePiece { model: Some(model), .. } = &data.tokenizer {
            let file = self.base.join(model);
            settings["model_sha256"] = json!(sha256_file(&file).map_err(PrepareError::io(&file))?);
        }
        Ok(settings)
    }
}
