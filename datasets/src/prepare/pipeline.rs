//! One line of raw text to token ids, and a hypothesis back to text.

use std::sync::Arc;

use rayon::prelude::*;
use zoo_recipes::{DataSpec, NormalizeStep, ReaderSpec, TokenizerSpec};

use super::error::PrepareError;
use super::pieces::Pieces;
use crate::text::bpe::{Codes, Encoder, undo};
use crate::text::moses::Normalizer;
use crate::text::vocabulary::Vocabulary;

/// The text treatment of a recipe, before any vocabulary.
#[derive(Debug)]
pub(super) struct Treatment {
    pub source: Normalizer,
    /// One for each target language.
    pub targets: Vec<Normalizer>,
    /// The text is in sub-words from the start.
    pub subwords: bool,
}

/// The `normalize` steps of a tokenizer; SentencePiece normalises by itself.
fn steps(tokenizer: &TokenizerSpec) -> &[NormalizeStep] {
    match tokenizer {
        TokenizerSpec::Words { normalize, .. }
        | TokenizerSpec::SubwordNmt { normalize, .. }
        | TokenizerSpec::Characters { normalize, .. } => normalize,
        TokenizerSpec::SentencePiece { .. }
        | TokenizerSpec::Lexicon { .. }
        | TokenizerSpec::Symbols { .. } => &[],
    }
}

impl Treatment {
    /// The tokenizer's steps, or others in their place.
    pub fn of(data: &DataSpec, others: Option<&[NormalizeStep]>) -> Result<Self, PrepareError> {
        let steps = others.unwrap_or_else(|| steps(&data.tokenizer));
        let targets = data.reader.targets();
        let (source, targets) = match &data.reader {
            ReaderSpec::ParallelText { source, .. } => (source.as_str(), targets),
            // Generated symbols are of no language.
            _ => ("", vec![""; targets.len()]),
        };
        let subwords = matches!(data.tokenizer, TokenizerSpec::Words { subwords: true, .. });
        let targets = targets.into_iter().map(|target| Normalizer::new(steps, target));
        let targets = targets.collect::<Result<_, _>>()?;
        Ok(Self { source: Normalizer::new(steps, source)?, targets, subwords })
    }
}

/// How normalised text becomes tokens.
#[derive(Debug)]
pub(super) enum Segmenter {
    /// White space separates them.
    Words,
    /// subword-nmt.
    SubwordNmt { codes: Codes, encoder: Encoder },
    /// The very same model for both sides, or one each.
    SentencePiece { source: Arc<Pieces>, target: Arc<Pieces> },
}

impl Segmenter {
    pub fn subword_nmt(codes: Codes) -> Self {
        Self::SubwordNmt { encoder: Encoder::new(&codes), codes }
    }
}

/// Everything that turns raw lines into ids and ids into text, learnt on the training split.
#[derive(Debug)]
pub struct TextPipeline {
    pub(super) treatment: Treatment,
    pub(super) segmenter: Segmenter,
    /// Merges, where the tokenizer is subword-nmt's.
    pub codes: Option<Codes>,
    /// Vocabulary of the source.
    pub source: Arc<Vocabulary>,
    /// Vocabulary of the target languages together; the very same where there is one for both sides.
    pub target: Arc<Vocabulary>,
    /// Source sequences begin with the begin token.
    pub begin_in_source: bool,
    /// Target sequences begin with the begin token.
    pub begin_in_target: bool,
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Source,
    Target,
}

impl TextPipeline {
    pub(super) fn new(
        treatment: Treatment,
        segmenter: Segmenter,
        (source, target): (Arc<Vocabulary>, Arc<Vocabulary>),
        (begin_in_source, begin_in_target): (bool, bool),
    ) -> Self {
        let codes = match &segmenter {
            Segmenter::SubwordNmt { codes, .. } => Some(codes.clone()),
            _ => None,
        };
        Self { treatment, segmenter, codes, source, target, begin_in_source, begin_in_target }
    }

    /// As [`PrepareOptions::begins_before_target`](super::PrepareOptions::begins_before_target).
    pub fn begins_before_target(&self) -> bool {
        self.begin_in_source && !self.begin_in_target
    }

    /// Whether one vocabulary serves both sides.
    pub fn joined(&self) -> bool {
        Arc::ptr_eq(&self.source, &self.target)
    }

    /// A raw source line as ids, special tokens included, not cut.
    pub fn encode_source(&self, line: &str) -> Vec<u32> {
        let normalized = self.treatment.source.line(line);
        let ids = match &self.segmenter {
            Segmenter::Words => self.source.ids(&normalized),
            Segmenter::SubwordNmt { encoder, .. } => self.source.ids(&encoder.line(&normalized)),
            Segmenter::SentencePiece { source, .. } => source.rows(&normalized),
        };
        with_specials(&ids, &self.source, self.begin_in_source, None).0
    }

    fn vocabulary(&self, side: Side) -> &Vocabulary {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// Normalised source lines as ids without special tokens, and as text in tokens. On all threads; each result depends
    /// on its own line only.
    pub(super) fn tokens_source(&self, lines: &[String]) -> Vec<(Vec<u32>, String)> {
        self.tokens(lines, Side::Source)
    }

    /// Normalised target lines; see [`Self::tokens_source`].
    pub(super) fn tokens_target(&self, lines: &[String]) -> Vec<(Vec<u32>, String)> {
        self.tokens(lines, Side::Target)
    }

    fn tokens(&self, lines: &[String], side: Side) -> Vec<(Vec<u32>, String)> {
        let vocabulary = self.vocabulary(side);
        let numbered = |text: String| (vocabulary.ids(&text), text);
        let pieces = match (&self.segmenter, side) {
            (Segmenter::Words, _) => return lines.par_iter().map(|line| numbered(line.clone())).collect(),
            (Segmenter::SubwordNmt { encoder, .. }, _) => {
                return encoder.lines(lines).into_par_iter().map(numbered).collect();
            }
            (Segmenter::SentencePiece { source, .. }, Side::Source) => source,
            (Segmenter::SentencePiece { target, .. }, Side::Target) => target,
        };
        pieces.lines(lines)
    }

    /// A hypothesis as text: up to the first end token, special tokens removed, sub-words joined. An unknown token is
    /// `<unk>`, with SentencePiece the model's sign for it.
    pub fn undo(&self, ids: &[u32]) -> String {
        match &self.segmenter {
            Segmenter::Words if self.treatment.subwords => undo(&self.target.text(ids)),
            Segmenter::Words => self.target.text(ids),
            Segmenter::SubwordNmt { .. } => undo(&self.target.text(ids)),
            Segmenter::SentencePiece { target, .. } => target.undo(ids),
        }
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
