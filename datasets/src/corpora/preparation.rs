//! How a corpus was prepared for published scores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zoo_recipes::NormalizeStep;
use zoo_recipes::tasks::translation::TextTokenizerSpec;

/// Steps of a published script on the text of a corpus, in addition to the recipe's tokenizer.
///
/// The order is: `normalize` (or the recipe's steps, for a split that it does not name), `clean`,
/// `shuffle`, then the recipe's sub-words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// The script, with its commit if known.
    pub source: String,
    /// The script's tokenizer. `md5` refers to text in its tokens.
    pub tokenizer: TextTokenizerSpec,
    /// Steps for single splits that replace those of the tokenizer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub normalize: BTreeMap<String, Vec<NormalizeStep>>,
    /// Which pairs are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<CleanSpec>,
    /// Seed of the shuffle of the training pairs. If absent, they stay in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<u64>,
    /// MD5 of the prepared text in tokens, one example per line, by split and language. With `raw.`
    /// before the language, the MD5 of the text as it is read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub md5: BTreeMap<String, BTreeMap<String, String>>,
}

/// Moses' `clean-corpus-n.perl`, and a filter of characters.
///
/// White space becomes single spaces. `|` is removed, unless the split's first pair has one. A pair
/// is dropped if a side has too few or too many words, if a word has more than 1,000 characters, or
/// if one side has more than nine times the other's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanSpec {
    /// The splits to clean.
    pub splits: Vec<String>,
    /// Minimum number of words per side.
    pub min_words: u32,
    /// Maximum number of words per side.
    pub max_words: u32,
    /// Drop pairs with a character beyond Latin-1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latin1: bool,
}

impl Preparation {
    /// Whether `tokenizer` produces the same tokens as the preparation's own tokenizer. Their
    /// numbering (special tokens, padding, omitted rows) may differ.
    pub fn makes_the_tokens_of(&self, tokenizer: &TextTokenizerSpec) -> bool {
        use TextTokenizerSpec::{SentencePiece, SubwordNmt, Words};
        match (&self.tokenizer, tokenizer) {
            (Words { normalize: own, .. }, Words { normalize: other, .. }) => own == other,
            (
                SubwordNmt { merges: own, normalize: own_steps, .. },
                SubwordNmt { merges: other, normalize: other_steps, .. },
            ) => own == other && own_steps == other_steps,
            (SentencePiece { .. }, SentencePiece { .. }) => self.tokenizer == *tokenizer,
            _ => false,
        }
    }

    /// Checks the preparation for a corpus whose splits satisfy `has_split`. Returns what is wrong.
    pub(super) fn check(
        &self,
        has_split: impl Fn(&str) -> bool,
        has_language: impl Fn(&str, &str) -> bool,
    ) -> Result<(), String> {
        if self.source.trim().is_empty() {
            return Err("`preparation.source` is empty; say whose preparation it is".into());
        }
        let cleaned = self.clean.iter().flat_map(|clean| &clean.splits);
        if let Some(split) =
            cleaned.chain(self.normalize.keys()).chain(self.md5.keys()).find(|s| !has_split(s))
        {
            return Err(format!("`preparation` names split {split:?}, which does not exist"));
        }
        if let Some(clean) = &self.clean
            && (clean.min_words == 0 || clean.min_words > clean.max_words)
        {
            let (min, max) = (clean.min_words, clean.max_words);
            return Err(format!(
                "`preparation.clean` keeps {min} to {max} words: 1 <= min_words <= max_words"
            ));
        }
        for (split, files) in &self.md5 {
            for (file, md5) in files {
                let language = file.strip_prefix("raw.").unwrap_or(file);
                if !has_language(split, language) {
                    return Err(format!("`preparation.md5.{split}` names {file:?}, which does not exist"));
                }
                if !crate::fetch::is_hex(md5, 32) {
                    return Err(format!(
                        "`preparation.md5.{split}`: {md5:?} is not 32 lower-case hexadecimal digits"
                    ));
                }
            }
        }
        Ok(())
    }
}
