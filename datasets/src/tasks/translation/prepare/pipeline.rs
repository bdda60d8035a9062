//! Converts raw lines to token ids, and hypotheses back to text.

use std::sync::Arc;

use rayon::prelude::*;
use zoo_recipes::NormalizeStep;
use zoo_recipes::TextTokenizerSpec;
use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec};

use super::error::PrepareError;
use super::pieces::Pieces;
use super::surroundings::{CODES, model_file, vocabulary_file};
use crate::text::bpe::{Codes, Encoder, undo};
use crate::text::moses::Normalizer;
use crate::text::vocabulary::Vocabulary;

/// The recipe's treatment of text before the vocabulary.
#[derive(Debug)]
pub(super) struct Treatment {
    pub source: Normalizer,
    /// One normalizer per target language.
    pub targets: Vec<Normalizer>,
    /// Whether the input text is already in sub-words.
    pub subwords: bool,
}

impl Treatment {
    /// The treatment with the tokenizer's steps, or with `others` in their place.
    pub fn of(data: &TextDataSpec, others: Option<&[NormalizeStep]>) -> Result<Self, PrepareError> {
        let steps = others.unwrap_or_else(|| data.tokenizer.normalize());
        let targets = data.reader.targets();
        let (source, targets) = match &data.reader {
            TextReaderSpec::ParallelText { source, .. } => (source.as_str(), targets),
            // Generated symbols do not belong to a language.
            TextReaderSpec::Reversal(_) => ("", vec![""; targets.len()]),
        };
        let subwords = matches!(data.tokenizer, TextTokenizerSpec::Words { subwords: true, .. });
        let targets = targets.into_iter().map(|target| Normalizer::new(steps, target));
        let targets = targets.collect::<Result<_, _>>()?;
        Ok(Self { source: Normalizer::new(steps, source)?, targets, subwords })
    }
}

/// How normalised text is split into tokens.
#[derive(Debug)]
pub(super) enum Segmenter {
    /// Tokens are separated by white space.
    Words,
    /// Sub-words of subword-nmt.
    SubwordNmt { codes: Codes, encoder: Encoder },
    /// Pieces of SentencePiece: one shared model for both sides, or one per side.
    SentencePiece { source: Arc<Pieces>, target: Arc<Pieces> },
}

impl Segmenter {
    pub fn subword_nmt(codes: Codes) -> Self {
        Self::SubwordNmt { encoder: Encoder::new(&codes), codes }
    }
}

/// Converts raw lines to ids and ids to text; learnt on the training split.
#[derive(Debug)]
pub struct TextPipeline {
    pub(super) treatment: Treatment,
    pub(super) segmenter: Segmenter,
    /// Merges, if the tokenizer is subword-nmt's.
    pub codes: Option<Codes>,
    /// Vocabulary of the source.
    pub source: Arc<Vocabulary>,
    /// Vocabulary of all target languages together. The same object as `source` if both sides share
    /// one.
    pub target: Arc<Vocabulary>,
    /// Whether source sequences begin with the begin token.
    pub begin_in_source: bool,
    /// Whether target sequences begin with the begin token.
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

    /// Whether both sides share one vocabulary.
    pub fn joined(&self) -> bool {
        Arc::ptr_eq(&self.source, &self.target)
    }

    /// Name and content of the files that the pipeline is read from: merges and vocabularies, or
    /// models of SentencePiece.
    pub(super) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let joined = self.joined();
        let mut files = Vec::new();
        if let Some(codes) = &self.codes {
            files.push((CODES.to_owned(), codes.to_text().into_bytes()));
        }
        let of_sides = match &self.segmenter {
            Segmenter::SentencePiece { source, target } => [("source", source), ("target", target)]
                .map(|(side, pieces)| (model_file(joined, side), pieces.model().bytes().to_vec())),
            _ => [("source", &self.source), ("target", &self.target)]
                .map(|(side, words)| (vocabulary_file(joined, side), words.to_file_text().into_bytes())),
        };
        files.extend(of_sides.into_iter().take(if joined { 1 } else { 2 }));
        files
    }

    /// Converts a raw source line to ids, with special tokens and without truncation.
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

    /// Converts normalised source lines to ids without special tokens, and to text in tokens. Uses
    /// all threads; each result depends on its own line only.
    pub(super) fn tokens_source(&self, lines: &[String]) -> Vec<(Vec<u32>, String)> {
        self.tokens(lines, Side::Source)
    }

    /// Converts normalised target lines; see [`Self::tokens_source`].
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

    /// Converts a hypothesis to text: up to the first end token, special tokens removed, sub-words
    /// joined. An unknown token becomes `<unk>`, or with SentencePiece the model's sign for unknown
    /// text.
    pub fn undo(&self, ids: &[u32]) -> String {
        match &self.segmenter {
            Segmenter::Words if self.treatment.subwords => undo(&self.target.text(ids)),
            Segmenter::Words => self.target.text(ids),
            Segmenter::SubwordNmt { .. } => undo(&self.target.text(ids)),
            Segmenter::SentencePiece { target, .. } => target.undo(ids),
        }
    }
}

/// [begin] + ids + [end]. With a limit, the ids are truncated to leave room for the special tokens.
/// Also returns whether ids were truncated.
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
