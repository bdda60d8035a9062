//! A SentencePiece model as the tokenizer of a recipe, with its pieces as rows of a vocabulary.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use zoo_recipes::tasks::translation::Specials;

use super::error::PrepareError;
use crate::text::bpe::words_of;
use crate::text::sentencepiece::SentencePiece;
use crate::text::vocabulary::{SpecialIds, Vocabulary};

/// A model and the rows of its pieces: the special tokens at the recipe's positions, then all other
/// pieces in the model's order. A model whose special pieces are at the recipe's positions keeps
/// its own ids.
#[derive(Debug)]
pub struct Pieces {
    model: SentencePiece,
    vocabulary: Arc<Vocabulary>,
    /// Row of each piece.
    rows: Vec<u32>,
    /// Piece of each row; `None` for special tokens that the model does not have.
    ids: Vec<Option<u32>>,
    /// Whether the pieces of a line are those of its words, concatenated.
    by_words: bool,
}

impl Pieces {
    /// `pieces` is the number of rows that the recipe states, if it does. `file` is used in
    /// messages only.
    ///
    /// # Errors
    /// The model has another number of rows.
    pub(super) fn new(
        model: SentencePiece,
        layout: Specials,
        pieces: Option<u32>,
        file: &Path,
    ) -> Result<Self, PrepareError> {
        let own = model.specials();
        let layout_ids = SpecialIds::of(layout);
        let special = |id: u32| {
            [
                (own.pad, layout_ids.pad),
                (own.begin, layout_ids.begin),
                (own.end, layout_ids.end),
                (own.unknown, layout_ids.unknown),
            ]
            .into_iter()
            .find_map(|(piece, row)| (piece == Some(id)).then_some(row))
        };
        let mut ids: Vec<Option<u32>> = vec![None; SpecialIds::COUNT as usize];
        let mut words = Vec::new();
        let mut rows = Vec::with_capacity(model.len());
        for id in 0..model.len() as u32 {
            let row = special(id).unwrap_or_else(|| {
                words.push(model.piece(id).unwrap_or_default().to_string());
                ids.push(None);
                ids.len() as u32 - 1
            });
            ids[row as usize] = Some(id);
            rows.push(row);
        }
        if let Some(expected) = pieces.filter(|pieces| ids.len() != *pieces as usize) {
            return Err(PrepareError::Pieces { file: file.into(), found: ids.len(), expected });
        }
        let vocabulary = Arc::new(Vocabulary::from_pieces(layout, words));
        Ok(Self { model, vocabulary, rows, ids, by_words: false })
    }

    /// Marks a model that was learnt here. None of its pieces and none of its normalisation rules
    /// reach from one word into the next, so each different word needs to be encoded only once.
    pub(super) fn learnt_here(mut self) -> Self {
        self.by_words = true;
        self
    }

    /// The SentencePiece model.
    pub fn model(&self) -> &SentencePiece {
        &self.model
    }

    /// The vocabulary of the rows.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Encodes a line as rows, without special tokens.
    pub fn rows(&self, line: &str) -> Vec<u32> {
        let unknown = self.vocabulary.specials().unknown;
        let row = |id: u32| self.rows.get(id as usize).copied().unwrap_or(unknown);
        self.model.ids(line).into_iter().map(row).collect()
    }

    /// Encodes a line as rows, and as its pieces separated by spaces. Unknown text is kept
    /// unchanged in the pieces.
    pub(super) fn rows_and_text(&self, line: &str) -> (Vec<u32>, String) {
        let rows = self.rows(line);
        let text = if rows.contains(&self.vocabulary.specials().unknown) {
            self.model.pieces(line).join(" ")
        } else {
            rows.iter().map(|&row| self.vocabulary.symbol(row)).collect::<Vec<_>>().join(" ")
        };
        (rows, text)
    }

    /// [`Self::rows_and_text`] of many lines, on all threads.
    pub(super) fn lines(&self, lines: &[String]) -> Vec<(Vec<u32>, String)> {
        if !self.by_words {
            return lines.par_iter().map(|line| self.rows_and_text(line)).collect();
        }
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut different: Vec<&str> = Vec::new();
        for word in lines.iter().flat_map(|line| words_of(line)) {
            known.entry(word).or_insert_with(|| {
                different.push(word);
                different.len() - 1
            });
        }
        let done: Vec<(Vec<u32>, String)> =
            different.par_iter().map(|word| self.rows_and_text(word)).collect();
        let line = |line: &String| {
            let (mut rows, mut text) = (Vec::new(), String::with_capacity(line.len() * 3 / 2));
            for word in words_of(line) {
                let (of_word, text_of_word) = &done[known[word]];
                // Normalisation removes some words entirely, e.g. a zero-width space.
                if !of_word.is_empty() {
                    rows.extend_from_slice(of_word);
                    text.push_str(if text.is_empty() { "" } else { " " });
                    text.push_str(text_of_word);
                }
            }
            (rows, text)
        };
        lines.par_iter().map(line).collect()
    }

    /// Converts a hypothesis to text: up to the first end token, without begin and pad tokens. An
    /// unknown piece becomes the model's sign for unknown text.
    pub fn undo(&self, rows: &[u32]) -> String {
        let specials = self.vocabulary.specials();
        let unknown = self.model.specials().unknown;
        let ids: Vec<u32> = rows
            .iter()
            .take_while(|&&row| row != specials.end)
            .filter(|&&row| row != specials.begin && row != specials.pad)
            .filter_map(|&row| self.ids.get(row as usize).copied().flatten().or(unknown))
            .collect();
        self.model.text(&ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::sentencepiece::learn;
    use proptest::prelude::*;

    fn pieces() -> Pieces {
        let text = ["the house is old", "das Haus ist alt, die Häuser", "3.141 naïve Straße"];
        let specials = SpecialIds::of(Specials::Openseq2seq);
        let model = learn(text, 48, specials).unwrap();
        Pieces::new(model, Specials::Openseq2seq, Some(48), Path::new("m")).unwrap().learnt_here()
    }

    proptest! {
        #[test]
        fn word_by_word_is_as_line_by_line(
            lines in prop::collection::vec(
                "([a-zäß]{1,8}|[ \u{a0}\u{200b}\u{ad}\u{301}\u{2581}´…½ﬁ☃]{1,3}|\\PC{1,5}| ){0,12}", 1..4),
        ) {
            let pieces = pieces();
            let due: Vec<_> = lines.iter().map(|line| pieces.rows_and_text(line)).collect();
            prop_assert_eq!(pieces.lines(&lines), due);
        }
    }

    #[test]
    fn special_tokens_stand_where_the_recipe_has_them_whatever_the_model_says() {
        let openseq2seq = SpecialIds::of(Specials::Openseq2seq);
        let model = || learn(["the house is old the house"], 24, openseq2seq).unwrap();
        let own = Pieces::new(model(), Specials::Openseq2seq, Some(24), Path::new("m")).unwrap();
        let other = Pieces::new(model(), Specials::Fairseq, Some(24), Path::new("m")).unwrap();
        let line = "the house ☃";
        assert_eq!(own.rows(line), own.model().ids(line), "its own ids");
        let unknown = |pieces: &Pieces| pieces.vocabulary().specials().unknown;
        assert!(own.rows(line).contains(&unknown(&own)) && other.rows(line).contains(&unknown(&other)));
        for pieces in [&own, &other] {
            assert_eq!(pieces.vocabulary().len(), 24);
            let mut ids = pieces.rows("the house");
            ids.push(pieces.vocabulary().specials().end);
            ids.push(7);
            assert_eq!(pieces.undo(&ids), "the house");
        }
        assert!(Pieces::new(model(), Specials::Fairseq, Some(25), Path::new("m")).is_err());
    }
}
