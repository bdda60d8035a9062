//! What every step of preparing is told: the recipe's folder, the corpus's preparation, whom to tell, and the files' names.

use std::path::Path;

use serde_json::{Value, json};
use zoo_recipes::{DataSpec, TokenizerSpec};

use super::error::PrepareError;
use super::translation::PrepareOptions;
use crate::corpora::Preparation;
use crate::fetch::sha256_file;

/// The file of the learnt merges.
pub(super) const CODES: &str = "codes";

/// The file of a vocabulary: that of both sides, or of `side`.
pub(super) fn vocabulary_file(joined: bool, side: &str) -> String {
    if joined { "vocabulary".into() } else { format!("vocabulary.{side}") }
}

/// The file of a SentencePiece model: that of both sides, or of `side`.
pub(super) fn model_file(joined: bool, side: &str) -> String {
    if joined { "sentencepiece.model".into() } else { format!("sentencepiece.{side}.model") }
}

/// What preparing depends on beside `[data]` and the text.
pub(super) struct Surroundings<'a> {
    /// The folder that the recipe's paths are relative to.
    pub base: &'a Path,
    /// What the corpus's definition says.
    pub preparation: Option<&'a Preparation>,
    /// Told of every step as it begins.
    pub progress: &'a dyn Fn(PrepareStep<'_>),
}

/// A step of preparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrepareStep<'a> {
    /// The text of a split is read, normalised, cleaned, and its words are counted.
    Text(&'a str),
    /// The training pairs are put into a random order.
    Shuffle,
    /// Sub-words and vocabularies are learnt.
    Learn,
    /// A split is written in tokens and ids.
    Encode(&'a str),
    /// What was written is read back.
    Load,
}

impl Surroundings<'_> {
    /// What the prepared ids depend on beside the text itself.
    pub(super) fn settings(&self, data: &DataSpec, options: PrepareOptions) -> Result<Value, PrepareError> {
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
        if let TokenizerSpec::SentencePiece { model: Some(model), .. } = &data.tokenizer {
            let file = self.base.join(model);
            settings["model_sha256"] = json!(sha256_file(&file).map_err(PrepareError::io(&file))?);
        }
        Ok(settings)
    }
}
