//! SentencePiece models: existing models, and models learnt here.
//!
//! The crate `sentencepiece-rust` normalises, segments and decodes. Models that it would apply
//! differently from SentencePiece are refused when they are loaded.

mod proto;
mod train;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sentencepiece_rust::{ModelType, PieceType, SentencePieceProcessor};
use zoo_recipes::atomic::write_whole;

use super::TextError;

pub use train::{TrainerError, learn, learn_from_counts, learns_from};

/// Ids of the four special pieces; `None` if a model lacks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpecialPieces {
    /// `<pad>`
    pub pad: Option<u32>,
    /// `<s>`
    pub begin: Option<u32>,
    /// `</s>`
    pub end: Option<u32>,
    /// `<unk>`
    pub unknown: Option<u32>,
}

/// A model: pieces with their ids, and the rules to segment text.
pub struct SentencePiece {
    processor: SentencePieceProcessor,
    bytes: Vec<u8>,
    specials: SpecialPieces,
}

impl std::fmt::Debug for SentencePiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentencePiece").field("pieces", &self.len()).finish_non_exhaustive()
    }
}

impl SentencePiece {
    /// Parses the bytes of a `.model` file. `file` is used in messages only.
    ///
    /// # Errors
    /// The bytes are not a model, or the model has features that would be applied differently from
    /// SentencePiece: word and character models, user-defined and unused pieces.
    pub fn parse(bytes: Vec<u8>, file: &Path) -> Result<Self, TextError> {
        let error = |problem: String, hint: &str| TextError::Model {
            file: PathBuf::from(file),
            problem,
            hint: hint.to_string(),
        };
        let damaged =
            "give the `.model` file of SentencePiece, not the `.vocab` file; fetch or train it again";
        let processor = SentencePieceProcessor::from_bytes(&bytes)
            .map_err(|e| error(format!("it is not a SentencePiece model ({e})"), damaged))?;
        if matches!(processor.model_type(), ModelType::Word | ModelType::Char) {
            return Err(error(
                "it is a word or character model".into(),
                "models of the types unigram and bpe can be used",
            ));
        }
        let vocab = processor.vocab();
        let mut known = HashMap::new();
        for id in 0..vocab.len() as i32 {
            let piece = vocab.id_to_piece(id).unwrap_or("");
            if piece.is_empty() || known.insert(piece, id).is_some() {
                return Err(error(format!("piece {id}, {piece:?}, is empty or there twice"), damaged));
            }
            if matches!(vocab.kind(id), Some(PieceType::UserDefined | PieceType::Unused)) {
                return Err(error(
                    format!("piece {id}, {piece:?}, is user-defined or unused"),
                    "such pieces are not supported; train the model without user_defined_symbols",
                ));
            }
        }
        let specials = SpecialPieces {
            pad: special(vocab, vocab.pad_id, PieceType::Control),
            begin: special(vocab, vocab.bos_id, PieceType::Control),
            end: special(vocab, vocab.eos_id, PieceType::Control),
            unknown: special(vocab, vocab.unk_id, PieceType::Unknown),
        };
        if specials.unknown.is_none() {
            return Err(error("it has no piece for unknown text".into(), damaged));
        }
        Ok(Self { processor, bytes, specials })
    }

    /// Reads a `.model` file.
    ///
    /// # Errors
    /// The file cannot be read, or one of the errors of [`Self::parse`].
    pub fn load(file: &Path) -> Result<Self, TextError> {
        Self::parse(zoo_recipes::untrusted::read(file).map_err(|e| TextError::io(file, e))?, file)
    }

    /// Writes the `.model` file, replacing an existing one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, file: &Path) -> Result<(), TextError> {
        write_whole(file, &self.bytes).map_err(|e| TextError::io(file, e))
    }

    /// The bytes of the `.model` file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of pieces, special ones included.
    pub fn len(&self) -> usize {
        self.processor.piece_size()
    }

    /// Always false, because a model without pieces is not accepted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ids of the special pieces.
    pub fn specials(&self) -> SpecialPieces {
        self.specials
    }

    /// The text of a piece; `None` if `id` is beyond the last piece.
    pub fn piece(&self, id: u32) -> Option<&str> {
        self.processor.id_to_piece(i32::try_from(id).ok()?)
    }

    /// Encodes a line as ids, without special pieces. A run of unknown text is one unknown piece.
    pub fn ids(&self, line: &str) -> Vec<u32> {
        // Models whose type cannot encode are refused when they are loaded.
        let ids = self.processor.encode(line).unwrap_or_default();
        let unknown = self.specials.unknown.unwrap_or_default();
        ids.into_iter().map(|id| u32::try_from(id).unwrap_or(unknown)).collect()
    }

    /// Splits a line into pieces. Unknown text is kept unchanged.
    pub fn pieces(&self, line: &str) -> Vec<String> {
        self.processor.encode_pieces(line).unwrap_or_default()
    }

    /// Converts ids to text. Control pieces are removed, an unknown piece becomes the model's sign
    /// for unknown text (` ⁇ `), and ids beyond the last are ignored.
    pub fn text(&self, ids: &[u32]) -> String {
        let ids: Vec<i32> = ids
            .iter()
            .filter(|&&id| (id as usize) < self.len())
            .filter_map(|&id| i32::try_from(id).ok())
            .collect();
        self.processor.decode(&ids).unwrap_or_default()
    }
}

fn special(vocab: &sentencepiece_rust::Vocab, id: i32, kind: PieceType) -> Option<u32> {
    (vocab.kind(id) == Some(kind)).then(|| u32::try_from(id).ok()).flatten()
}

/// The compiled rules of SentencePiece's `nmt_nfkc`: NFKC, and its treatment of spaces and control
/// characters. They come from the field `precompiled_charsmap` of a model made with SentencePiece
/// 0.2.3 (Copyright Google, Apache License 2.0).
pub(crate) fn nmt_nfkc() -> Vec<u8> {
    use std::io::Read;
    let mut rules = Vec::with_capacity(240_007);
    lzma_rust2::XzReader::new(&include_bytes!("nmt_nfkc.xz")[..], false)
        .read_to_end(&mut rules)
        .expect("the bytes are a constant");
    rules
}
