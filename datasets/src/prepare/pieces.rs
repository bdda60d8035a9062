//! A SentencePiece model as a tokenizer of a recipe: its pieces as rows of a vocabulary.

use std::path::Path;
use std::sync::Arc;

use zoo_recipes::Specials;

use super::error::PrepareError;
use crate::text::sentencepiece::SentencePiece;
use crate::text::vocabulary::{SpecialIds, Vocabulary};

/// A model and the rows of its pieces: the special tokens where the recipe has them, then all other pieces in the
/// model's order. A model whose special pieces stand like the recipe's keeps its own ids.
#[derive(Debug)]
pub struct Pieces {
    model: SentencePiece,
    vocabulary: Arc<Vocabulary>,
    /// Row of each piece.
    rows: Vec<u32>,
    /// Piece of each row; `None` for special tokens that the model does not have.
    ids: Vec<Option<u32>>,
}

impl Pieces {
    /// `pieces` is how many rows the recipe says that there are; `file` is only for messages.
    ///
    /// # Errors
    /// The model has another number.
    pub(super) fn new(
        model: SentencePiece,
        layout: Specials,
        pieces: u32,
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
        if ids.len() != pieces as usize {
            return Err(PrepareError::Pieces { file: file.into(), found: ids.len(), expected: pieces });
        }
        let vocabulary = Arc::new(Vocabulary::from_pieces(layout, words));
        Ok(Self { model, vocabulary, rows, ids })
    }

    /// The model itself.
    pub fn model(&self) -> &SentencePiece {
        &self.model
    }

    /// The rows.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The rows of a line, without special tokens.
    pub fn rows(&self, line: &str) -> Vec<u32> {
        let unknown = self.vocabulary.specials().unknown;
        let row = |id: u32| self.rows.get(id as usize).copied().unwrap_or(unknown);
        self.model.ids(line).into_iter().map(row).collect()
    }

    /// The rows of a line, and the line in pieces with spaces between them, unknown text as it is.
    pub(super) fn rows_and_text(&self, line: &str) -> (Vec<u32>, String) {
        let rows = self.rows(line);
        let text = if rows.contains(&self.vocabulary.specials().unknown) {
            self.model.pieces(line).join(" ")
        } else {
            rows.iter().map(|&row| self.vocabulary.symbol(row)).collect::<Vec<_>>().join(" ")
        };
        (rows, text)
    }

    /// A hypothesis as text: up to its first end token, begin and pad left out, an unknown piece as the model's sign for
    /// it.
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
