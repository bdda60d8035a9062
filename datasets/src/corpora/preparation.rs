//! How a corpus was prepared by those who published scores on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zoo_recipes::{NormalizeStep, TokenizerSpec};

/// What a published script does with the text of a corpus, beside what the recipe's tokenizer says.
///
/// In this order: `normalize` (the recipe's steps where a split is not named here), `clean`, `shuffle`; then the
/// recipe's sub-words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// The script, with its commit where that is known.
    pub source: String,
    /// The tokenizer that it uses. `md5` is about text in its tokens.
    pub tokenizer: TokenizerSpec,
    /// Steps for single splits that differ from the tokenizer's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub normalize: BTreeMap<String, Vec<NormalizeStep>>,
    /// Which pairs are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<CleanSpec>,
    /// Seed of the order that the training pairs are put into; absent: they stay as they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<u64>,
    /// MD5 of the prepared text in tokens, one line each, by split and language; `raw.` before the language: of the
    /// text as it is read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub md5: BTreeMap<String, BTreeMap<String, String>>,
}

/// Moses' `clean-corpus-n.perl`, and a filter of characters.
///
/// White space becomes single spaces; `|` is taken out, unless the first pair of the split has one; pairs are left out
/// of which a side has too few or too many words, or a word of more than 1,000 characters, or more than nine times the
/// other's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanSpec {
    /// The splits it is for.
    pub splits: Vec<String>,
    /// Fewest words of a side.
    pub min_words: u32,
    /// Most words of a side.
    pub max_words: u32,
    /// Leave out pairs with a character beyond Latin-1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latin1: bool,
}

impl Preparation {
    /// Whether `tokenizer` makes the same tokens of a text as the preparation's own. How they are numbered (special
    /// tokens, padding, rows that are left out) does not matter.
    pub fn makes_the_tokens_of(&self, tokenizer: &TokenizerSpec) -> bool {
        use TokenizerSpec::{SentencePiece, SubwordNmt, Words};
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

    /// What cannot be right about it, for a corpus with splits that `has_split` knows.
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
