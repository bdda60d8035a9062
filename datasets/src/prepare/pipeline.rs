//! One line of raw text to token ids, and a hypothesis back to text.

use std::sync::Arc;

use zoo_recipes::{DataSpec, NormalizeStep, ReaderSpec, TokenizerSpec};

use super::error::PrepareError;
use crate::text::bpe::{Codes, Encoder, undo};
use crate::text::moses::Normalizer;
use crate::text::vocabulary::Vocabulary;

/// The text treatment of a recipe, before any vocabulary.
#[derive(Debug)]
pub(super) struct Treatment {
    pub source: Normalizer,
    pub target: Normalizer,
    /// The text is in sub-words from the start.
    pub subwords: bool,
}

/// The `normalize` steps of a tokenizer, or why it cannot be used.
pub(super) fn steps(tokenizer: &TokenizerSpec) -> Result<&[NormalizeStep], PrepareError> {
    match tokenizer {
        TokenizerSpec::Words { normalize, .. } | TokenizerSpec::SubwordNmt { normalize, .. } => Ok(normalize),
        TokenizerSpec::SentencePiece { .. } => Err(PrepareError::Unavailable {
            what: "the tokenizer `sentence-piece`",
            hint: "use `subword-nmt` or `words`; `zoo judge` judges scores of runs made elsewhere",
        }),
    }
}

impl Treatment {
    pub fn new(data: &DataSpec) -> Result<Self, PrepareError> {
        let steps = steps(&data.tokenizer)?;
        let (source, target) = match &data.reader {
            ReaderSpec::ParallelText { source, target, .. } => (source.as_str(), target.as_str()),
            // Generated symbols are of no language.
            _ => ("", ""),
        };
        let subwords = matches!(data.tokenizer, TokenizerSpec::Words { subwords: true, .. });
        let (source, target) = (Normalizer::new(steps, source)?, Normalizer::new(steps, target)?);
        Ok(Self { source, target, subwords })
    }
}

/// Everything that turns raw lines into ids and ids into text, learnt on the training split.
#[derive(Debug)]
pub struct TextPipeline {
    pub(super) treatment: Treatment,
    /// Merges, where the tokenizer has sub-words.
    pub codes: Option<Codes>,
    encoder: Option<Encoder>,
    /// Vocabulary of the source.
    pub source: Arc<Vocabulary>,
    /// Vocabulary of the target; the very same where there is one for both.
    pub target: Arc<Vocabulary>,
    /// Source sequences begin with the begin token.
    pub begin_in_source: bool,
    /// Target sequences begin with the begin token.
    pub begin_in_target: bool,
}

impl TextPipeline {
    pub(super) fn new(
        treatment: Treatment,
        codes: Option<Codes>,
        (source, target): (Arc<Vocabulary>, Arc<Vocabulary>),
        (begin_in_source, begin_in_target): (bool, bool),
    ) -> Self {
        let encoder = codes.as_ref().map(Encoder::new);
        Self { treatment, codes, encoder, source, target, begin_in_source, begin_in_target }
    }

    /// Whether one vocabulary serves both sides.
    pub fn joined(&self) -> bool {
        Arc::ptr_eq(&self.source, &self.target)
    }

    /// A raw source line as ids, special tokens included, not cut.
    pub fn encode_source(&self, line: &str) -> Vec<u32> {
        self.ids(&self.treatment.source.line(line), &self.source, self.begin_in_source)
    }

    /// A raw target line as ids, special tokens included, not cut.
    pub fn encode_target(&self, line: &str) -> Vec<u32> {
        self.ids(&self.treatment.target.line(line), &self.target, self.begin_in_target)
    }

    fn ids(&self, normalized: &str, vocabulary: &Vocabulary, begin: bool) -> Vec<u32> {
        let ids = match &self.encoder {
            Some(encoder) => vocabulary.ids(&encoder.line(normalized)),
            None => vocabulary.ids(normalized),
        };
        with_specials(&ids, vocabulary, begin, None).0
    }

    /// A hypothesis as text: up to the first end token, special tokens removed, sub-words joined. An unknown token is
    /// `<unk>`.
    pub fn undo(&self, ids: &[u32]) -> String {
        let text = self.target.text(ids);
        if self.codes.is_some() || self.treatment.subwords { undo(&text) } else { text }
    }
}

/// [begin] + ids + [end]; with a limit, as many of the first ids as leave room for the special tokens. Says whether
/// ids were cut.
pub(super) fn with_specials(
    ids: &[u32],
    vocabulary: &Vocabulary,
    begin: bool,
    limit: Option<u32>,
) -> (Vec<u32>, bool) {
    let specials = vocabulary.specials();
    let room = limit.map_or(ids.len(), |limit| (limit as usize).saturating_sub(1 + usize::from(begin)));
    let kept = &ids[..ids.len().min(room)];
    let sequence = begin
        .then_some(specials.begin)
        .into_iter()
        .chain(kept.iter().copied())
        .chain([specials.end])
        .collect();
    (sequence, kept.len() < ids.len())
}
