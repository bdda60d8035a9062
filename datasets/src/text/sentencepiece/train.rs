//! Learning a BPE model as SentencePiece does.
//!
//! This follows SentencePiece's BPE trainer with its defaults, except for a character coverage of
//! 1:
//!
//! - Text is normalised by `nmt_nfkc`, and spaces are written as `▁` before words.
//! - A piece has at most 16 characters, `▁` only at its beginning, and letters of one script.
//!   Digits and signs together count as one script.
//! - The most frequent pair repeatedly becomes a piece. Among equally frequent pairs it is the
//!   shorter, then the one that sorts first. A piece that was already made from another pair is
//!   skipped.
//! - All single characters follow, the most frequent first.
//!
//! docs/data.md says where the result may differ.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sentencepiece_rust::SentencePieceProcessor;
use unicode_script::{Script, UnicodeScript};

use super::SentencePiece;
use super::proto::ModelText;
use crate::text::bpe::words_of;
use crate::text::counts::WordCounts;
use crate::text::merges::{self, Pair, Rule, Words};
use crate::text::vocabulary::SpecialIds;

/// Marks the beginning of a word.
const SPACE: char = '\u{2581}';
/// A character that SentencePiece reserves for itself.
const RESERVED: char = '\u{2585}';
/// Maximum length in bytes of a line to learn from: SentencePiece's `max_sentence_length`.
const LONGEST_LINE: usize = 4192;
/// Maximum length of a piece in characters: SentencePiece's `max_sentencepiece_length`.
const LONGEST_PIECE: usize = 16;

/// Why a model could not be learnt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainerError {
    /// The text has more different characters than there are pieces.
    #[error(
        "{characters} different characters and the special tokens do not fit into {pieces} pieces\nhint: raise data.tokenizer.pieces to more than {}", .characters + 4
    )]
    TooFew {
        /// Requested number of pieces.
        pieces: u32,
        /// Number of different characters in the text.
        characters: usize,
    },
    /// The text does not have enough pairs to merge.
    #[error(
        "the text gives {found} pieces, not the {pieces} asked for\nhint: lower data.tokenizer.pieces to {found} or give more text"
    )]
    TooMany {
        /// Requested number of pieces.
        pieces: u32,
        /// Number of pieces that the text gives.
        found: usize,
    },
}

/// Whether SentencePiece learns from this line. It skips lines longer than 4,192 bytes, and lines
/// with a character that it reserves for itself.
pub fn learns_from(line: &str) -> bool {
    line.len() <= LONGEST_LINE && !line.contains(RESERVED)
}

/// Learns a model of `pieces` pieces, including the four special ones at `specials`, from lines of
/// raw text.
///
/// # Errors
/// There are fewer pieces than characters, or more pieces than the text gives.
pub fn learn<S: AsRef<str>>(
    lines: impl IntoIterator<Item = S>,
    pieces: u32,
    specials: SpecialIds,
) -> Result<SentencePiece, TrainerError> {
    let mut counts = WordCounts::default();
    for line in lines {
        let line = line.as_ref();
        words_of(line).filter(|_| learns_from(line)).for_each(|word| counts.add(word, 1));
    }
    learn_from_counts(counts, pieces, specials)
}

/// [`learn`] from counted raw words, separated by ASCII spaces. None of the normalisation rules
/// cross an ASCII space, so words are normalised separately. The counts are dropped before the
/// merges are learnt.
///
/// # Errors
/// As [`learn`].
pub fn learn_from_counts(
    counts: WordCounts,
    pieces: u32,
    specials: SpecialIds,
) -> Result<SentencePiece, TrainerError> {
    // A model without pieces normalises text and returns it as unknown.
    let bytes = ModelText { pieces: &[], specials }.to_bytes();
    let normalizer = SentencePieceProcessor::from_bytes(&bytes).expect("we wrote it ourselves");
    // Characters are numbered in the order of their first occurrence; renumbered below in the
    // alphabet's order.
    let mut ids: HashMap<char, u32> = HashMap::new();
    let mut characters: Vec<(char, u64)> = Vec::new();
    let letters = counts.iter().map(|(word, _)| 1 + word.chars().count()).sum();
    let mut words = Words::with_capacity(counts.len(), letters);
    let mut symbols = Vec::new();
    for (word, count) in counts.iter() {
        let text = normalizer.encode_pieces(word).unwrap_or_default().concat();
        // One word may become several after normalisation.
        let mut begun = false;
        for character in text.chars().filter(|c| !matches!(c, '\0' | ' ' | '\t')) {
            if character == SPACE && begun {
                words.push(symbols.drain(..), count);
            }
            begun = true;
            let id = *ids.entry(character).or_insert_with(|| {
                characters.push((character, 0));
                characters.len() as u32 - 1
            });
            characters[id as usize].1 += count;
            symbols.push(id);
        }
        words.push(symbols.drain(..), count);
    }
    drop(counts);
    let fixed = characters.len() + SpecialIds::COUNT as usize;
    let merges = (pieces as usize)
        .checked_sub(fixed)
        .ok_or(TrainerError::TooFew { pieces, characters: characters.len() })?;
    let mut rule = Manner::new(characters.iter().map(|(character, _)| *character));
    merges::learn(words, &mut rule, merges);
    if rule.learnt.len() < merges {
        return Err(TrainerError::TooMany { pieces, found: rule.learnt.len() + fixed });
    }
    characters.sort_by_key(|(character, count)| (std::cmp::Reverse(*count), *character));
    let mut list = rule.learnt;
    list.extend(characters.into_iter().map(|(character, _)| character.to_string()));
    let bytes = ModelText { pieces: &list, specials }.to_bytes();
    let model = SentencePiece::parse(bytes, Path::new("the learnt model"));
    Ok(model.expect("we wrote it ourselves"))
}

/// A symbol: its text, and the properties that decide whether it may grow.
struct Symbol {
    text: String,
    characters: usize,
    begins_word: bool,
    /// Script of its first character that has one; `None` if none has.
    first_script: Option<Script>,
    last_script: Option<Script>,
}

impl Symbol {
    fn new(character: char) -> Self {
        let script = if character == SPACE { None } else { script(character) };
        Self {
            text: character.to_string(),
            characters: 1,
            begins_word: character == SPACE,
            first_script: script,
            last_script: script,
        }
    }
}

/// The script of a character in SentencePiece's classification; `None` for a mark, which takes its
/// neighbour's script.
fn script(character: char) -> Option<Script> {
    match character.script() {
        Script::Inherited => None,
        Script::Hiragana | Script::Katakana => Some(Script::Han),
        Script::Unknown => Some(Script::Common),
        _ if character == '\u{30fc}' => Some(Script::Han),
        script => Some(script),
    }
}

/// SentencePiece's rules for pieces.
struct Manner {
    symbols: Vec<Symbol>,
    /// Texts that are already pieces.
    made: HashSet<String>,
    learnt: Vec<String>,
}

impl Manner {
    fn new(characters: impl Iterator<Item = char>) -> Self {
        Self { symbols: characters.map(Symbol::new).collect(), made: HashSet::new(), learnt: Vec::new() }
    }

    fn text(&self, (left, right): Pair) -> String {
        format!("{}{}", self.symbols[left as usize].text, self.symbols[right as usize].text)
    }
}

/// Order of pairs with equal counts: the shorter first, then the one that sorts first.
type Rank = (u64, std::cmp::Reverse<(usize, String)>);

impl Rule for Manner {
    type Rank = Rank;

    fn least_count(&self) -> u64 {
        1
    }

    fn rank(&self, pair: Pair, count: u64) -> Option<Rank> {
        let (left, right) = (&self.symbols[pair.0 as usize], &self.symbols[pair.1 as usize]);
        let characters = left.characters + right.characters;
        let scripts_differ = match (left.last_script, right.first_script) {
            (Some(left), Some(right)) => left != right,
            _ => false,
        };
        let valid = characters <= LONGEST_PIECE && !right.begins_word && !scripts_differ;
        valid.then(|| (count, std::cmp::Reverse((characters, self.text(pair)))))
    }

    fn accept(&mut self, pair: Pair) -> Option<u32> {
        let text = self.text(pair);
        if !self.made.insert(text.clone()) {
            return None;
        }
        let (left, right) = (&self.symbols[pair.0 as usize], &self.symbols[pair.1 as usize]);
        let symbol = Symbol {
            characters: left.characters + right.characters,
            begins_word: left.begins_word,
            first_script: left.first_script.or(right.first_script),
            last_script: right.last_script.or(left.last_script),
            text: text.clone(),
        };
        self.learnt.push(text);
        let id = u32::try_from(self.symbols.len()).expect("fewer than 2^32 pieces");
        self.symbols.push(symbol);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIALS: SpecialIds = SpecialIds { pad: 0, end: 1, begin: 2, unknown: 3 };

    fn trained(lines: &[&str], pieces: u32) -> Result<SentencePiece, TrainerError> {
        learn(lines, pieces, SPECIALS)
    }

    fn learnt(lines: &[&str], pieces: u32) -> Vec<String> {
        let model = trained(lines, pieces).unwrap();
        (4..model.len() as u32).map(|id| model.piece(id).unwrap().to_string()).collect()
    }

    #[test]
    fn the_most_frequent_pair_comes_first_then_the_shorter_then_the_one_that_sorts_first() {
        // Characters: a, b, c, d and the sign for a space.
        assert_eq!(learnt(&["ab ab ab cd cd"], 11), ["ab", "▁ab", "▁", "a", "b", "c", "d"]);
        // `▁a` and `ab` are equally frequent, and `ab` sorts first.
        assert_eq!(learnt(&["ab cd"], 10)[0], "ab");
    }

    #[test]
    fn a_piece_keeps_to_one_script_and_begins_at_most_one_word() {
        let pieces = learnt(&["a1 a1 a1 a1 aя aя aя a, a, xx xx xx"], 13);
        assert!(pieces.contains(&"▁a".to_string()) && pieces.contains(&"xx".to_string()), "{pieces:?}");
        for piece in &pieces {
            assert!(!piece.contains("a1") && !piece.contains("aя") && !piece.contains("a,"), "{pieces:?}");
            assert!(!piece.chars().skip(1).any(|c| c == SPACE), "{pieces:?}");
        }
    }

    #[test]
    fn lines_that_sentencepiece_leaves_out_are_left_out() {
        assert!(!learns_from(&"x".repeat(4193)) && learns_from(&"x".repeat(4192)));
        assert!(!learns_from("a ▅ b"));
        assert_eq!(learnt(&["ab", "c ▅ c c c"], 8), ["ab", "a", "b", "▁"]);
    }

    #[test]
    fn impossible_numbers_of_pieces_are_errors() {
        assert_eq!(trained(&["abc"], 7).unwrap_err(), TrainerError::TooFew { pieces: 7, characters: 4 });
        let error = trained(&["abc"], 100).unwrap_err();
        assert_eq!(error, TrainerError::TooMany { pieces: 100, found: 11 });
        assert!(error.to_string().contains("hint:"));
        assert_eq!(trained(&["abc"], 11).unwrap().len(), 11);
    }
}
