//! Vocabularies: the ids of tokens.
//!
//! Order of the rows:
//!
//! 1. The four special tokens, in the order of the layout.
//! 2. The words by count, the most frequent first. Words with equal counts are in the order of
//!    their code points (as in fairseq's dictionary: sorted by symbol, then stably by count).
//! 3. `madeupword0000` and so on with count 0, up to the requested multiple, as in fairseq.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};
use zoo_recipes::tasks::translation::Specials;

use super::TextError;
use crate::temporary::write_whole;

const HEADER: &str = "#zoo-vocabulary 1";

/// Ids of the special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecialIds {
    /// Padding of the rows of a batch.
    pub pad: u32,
    /// Beginning of a sequence.
    pub begin: u32,
    /// End of a sequence.
    pub end: u32,
    /// Any token that is not in the vocabulary.
    pub unknown: u32,
}

impl SpecialIds {
    /// The ids of a layout.
    pub fn of(layout: Specials) -> Self {
        match layout {
            Specials::Openseq2seq => Self { pad: 0, end: 1, begin: 2, unknown: 3 },
            Specials::Fairseq => Self { begin: 0, pad: 1, end: 2, unknown: 3 },
            Specials::Gnmt => Self { pad: 0, unknown: 1, begin: 2, end: 3 },
        }
    }

    /// Number of special tokens; words begin at this id.
    pub const COUNT: u32 = 4;

    /// The text of the special token with this id; `None` for any other id.
    pub fn symbol(&self, id: u32) -> Option<&'static str> {
        [(self.pad, "<pad>"), (self.begin, "<s>"), (self.end, "</s>"), (self.unknown, "<unk>")]
            .into_iter()
            .find_map(|(special, symbol)| (special == id).then_some(symbol))
    }
}

fn is_special(symbol: &str) -> bool {
    matches!(symbol, "<pad>" | "<s>" | "</s>" | "<unk>")
}

/// Words and their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    layout: Specials,
    /// Words from id 4 on, with their counts.
    words: Vec<(String, u64)>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// Counts the white-space separated tokens of `lines`. Text that spells a special token is not
    /// counted.
    pub fn from_lines<S: AsRef<str>>(
        lines: impl IntoIterator<Item = S>,
        layout: Specials,
        pad_to: u32,
    ) -> Self {
        Self::from_most_frequent(lines, layout, pad_to, None)
    }

    /// [`Vocabulary::from_lines`] with a limit: see [`Vocabulary::from_counts`].
    pub fn from_most_frequent<S: AsRef<str>>(
        lines: impl IntoIterator<Item = S>,
        layout: Specials,
        pad_to: u32,
        max_rows: Option<u32>,
    ) -> Self {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for line in lines {
            for token in line.as_ref().split_whitespace().filter(|t| !is_special(t)) {
                match counts.get_mut(token) {
                    Some(count) => *count += 1,
                    None => {
                        counts.insert(token.to_string(), 1);
                    }
                }
            }
        }
        Self::from_counts(counts, layout, pad_to, max_rows)
    }

    /// A vocabulary of words with their counts. `max_rows` limits the rows of words and special
    /// tokens together; padding is added afterwards. Text that spells a special token is left out.
    pub fn from_counts(
        counts: BTreeMap<String, u64>,
        layout: Specials,
        pad_to: u32,
        max_rows: Option<u32>,
    ) -> Self {
        let mut words: Vec<(String, u64)> =
            counts.into_iter().filter(|(word, _)| !is_special(word)).collect();
        words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if let Some(rows) = max_rows {
            words.truncate(rows.saturating_sub(SpecialIds::COUNT) as usize);
        }
        let known: HashSet<String> = words.iter().map(|(word, _)| word.clone()).collect();
        let made_up = (0..).map(|n| format!("madeupword{n:04}")).filter(|word| !known.contains(word));
        let rows = (words.len() + SpecialIds::COUNT as usize).next_multiple_of(pad_to.max(1) as usize);
        let missing = rows - words.len() - SpecialIds::COUNT as usize;
        words.extend(made_up.take(missing).map(|word| (word, 0)));
        Self::from_words(layout, words)
    }

    /// A vocabulary of the pieces of a sub-word model, in its order and without its special tokens.
    /// The pieces have no counts.
    pub fn from_pieces(layout: Specials, pieces: Vec<String>) -> Self {
        Self::from_words(layout, pieces.into_iter().map(|piece| (piece, 0)).collect())
    }

    fn from_words(layout: Specials, words: Vec<(String, u64)>) -> Self {
        let ids = words.iter().zip(SpecialIds::COUNT..).map(|((word, _), id)| (word.clone(), id)).collect();
        Self { layout, words, ids }
    }

    /// Number of rows, special tokens and padding included.
    pub fn len(&self) -> usize {
        self.words.len() + SpecialIds::COUNT as usize
    }

    /// Always false, because the special tokens are always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Positions of the special tokens.
    pub fn layout(&self) -> Specials {
        self.layout
    }

    /// Ids of the special tokens.
    pub fn specials(&self) -> SpecialIds {
        SpecialIds::of(self.layout)
    }

    /// The id of a word; the unknown token's if the word is not in the vocabulary. Text that spells
    /// a special token is unknown.
    pub fn id(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or(self.specials().unknown)
    }

    /// The ids of a line's white-space separated tokens, without special tokens.
    pub fn ids(&self, line: &str) -> Vec<u32> {
        line.split_whitespace().map(|token| self.id(token)).collect()
    }

    /// The text of the token with this id; `<unk>` for an id beyond the vocabulary.
    pub fn symbol(&self, id: u32) -> &str {
        if let Some(symbol) = self.specials().symbol(id) {
            return symbol;
        }
        self.words.get((id - SpecialIds::COUNT) as usize).map_or("<unk>", |(word, _)| word)
    }

    /// The count of the word with this id; 0 for special tokens.
    pub fn count(&self, id: u32) -> u64 {
        id.checked_sub(SpecialIds::COUNT)
            .and_then(|row| self.words.get(row as usize))
            .map_or(0, |(_, count)| *count)
    }

    /// Converts a hypothesis to text: up to the first end token, without begin and pad tokens, and
    /// with `<unk>` for an unknown token.
    pub fn text(&self, ids: &[u32]) -> String {
        let specials = self.specials();
        let mut out = String::new();
        for &id in ids.iter().take_while(|&&id| id != specials.end) {
            if id != specials.begin && id != specials.pad {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(self.symbol(id));
            }
        }
        out
    }

    /// The contents of the vocabulary's file: a header with the layout, then a line `word count`
    /// for each row from id 4 on.
    pub fn to_file_text(&self) -> String {
        let layout = match self.layout {
            Specials::Openseq2seq => "openseq2seq",
            Specials::Fairseq => "fairseq",
            Specials::Gnmt => "gnmt",
        };
        let mut text = format!("{HEADER} specials={layout}\n");
        for (word, count) in &self.words {
            writeln!(text, "{word} {count}").expect("writing to a string cannot fail");
        }
        text
    }

    /// Parses the output of [`Self::to_file_text`]. `file` is used in messages only.
    pub fn parse(text: &str, file: &Path) -> Result<Self, TextError> {
        let again = "the file is damaged; prepare the data again";
        let malformed = |line: usize, problem: String| TextError::malformed(file, line, problem, again);
        let mut lines = text.split_terminator('\n').enumerate();
        let first = lines.next().map_or("", |(_, line)| line);
        let layout = match first.strip_prefix(HEADER).map(str::trim_start) {
            Some("specials=openseq2seq") => Specials::Openseq2seq,
            Some("specials=fairseq") => Specials::Fairseq,
            Some("specials=gnmt") => Specials::Gnmt,
            _ => return Err(malformed(1, format!("expected `{HEADER} specials=...`, found `{first}`"))),
        };
        let mut words = Vec::new();
        let mut seen = HashSet::new();
        for (index, line) in lines {
            let (word, count) = line
                .rsplit_once(' ')
                .and_then(|(word, count)| Some((word, count.parse().ok()?)))
                .filter(|(word, _)| !word.is_empty() && !word.contains(char::is_whitespace))
                .ok_or_else(|| malformed(index + 1, format!("expected `word count`, found `{line}`")))?;
            if is_special(word) || !seen.insert(word) {
                return Err(malformed(index + 1, format!("`{word}` is in the vocabulary already")));
            }
            words.push((word.to_string(), count));
        }
        Ok(Self::from_words(layout, words))
    }

    /// Reads a vocabulary file.
    pub fn load(file: &Path) -> Result<Self, TextError> {
        let bytes = zoo_recipes::untrusted::read(file).map_err(|e| TextError::io(file, e))?;
        Self::parse(&crate::text::decode_utf8(bytes, file)?, file)
    }

    /// Writes a vocabulary file, replacing an existing one.
    pub fn save(&self, file: &Path) -> Result<(), TextError> {
        write_whole(file, self.to_file_text().as_bytes()).map_err(|e| TextError::io(file, e))
    }

    /// SHA-256 of the file's text, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        hex::encode(Sha256::digest(self.to_file_text().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_sorted_by_count_and_then_by_code_point() {
        let vocabulary = Vocabulary::from_lines(["b a ä", "b a Z c@@"], Specials::Fairseq, 1);
        let words: Vec<&str> = (4..vocabulary.len() as u32).map(|id| vocabulary.symbol(id)).collect();
        assert_eq!(words, ["a", "b", "Z", "c@@", "ä"]);
        assert_eq!((vocabulary.count(4), vocabulary.count(6), vocabulary.count(0)), (2, 1, 0));
    }

    #[test]
    fn special_tokens_stand_where_the_layout_says() {
        let fairseq = Vocabulary::from_lines(["a"], Specials::Fairseq, 1);
        assert_eq!([0, 1, 2, 3, 4].map(|id| fairseq.symbol(id)), ["<s>", "<pad>", "</s>", "<unk>", "a"]);
        let openseq2seq = Vocabulary::from_lines(["a"], Specials::Openseq2seq, 1);
        assert_eq!([0, 1, 2, 3, 4].map(|id| openseq2seq.symbol(id)), ["<pad>", "</s>", "<s>", "<unk>", "a"]);
        let gnmt = Vocabulary::from_lines(["a"], Specials::Gnmt, 1);
        assert_eq!([0, 1, 2, 3, 4].map(|id| gnmt.symbol(id)), ["<pad>", "<unk>", "<s>", "</s>", "a"]);
        assert_eq!(Vocabulary::parse(&gnmt.to_file_text(), Path::new("v")).unwrap(), gnmt);
        assert_ne!(fairseq.fingerprint(), openseq2seq.fingerprint());
    }

    #[test]
    fn the_number_of_rows_is_padded_with_made_up_words() {
        let vocabulary = Vocabulary::from_lines(["a b madeupword0000"], Specials::Fairseq, 8);
        assert_eq!(vocabulary.len(), 8);
        assert_eq!(vocabulary.symbol(7), "madeupword0001");
        assert_eq!(vocabulary.count(7), 0);
        assert_eq!(Vocabulary::from_lines(["a b c d"], Specials::Fairseq, 8).len(), 8);
        assert_eq!(Vocabulary::from_lines(["a b c d"], Specials::Fairseq, 0).len(), 8);
    }

    #[test]
    fn the_rarest_words_are_left_out_where_rows_are_limited() {
        let counts = [("a", 3), ("b", 1), ("c", 2), ("</s>", 9)].map(|(word, n)| (word.to_string(), n));
        let vocabulary = Vocabulary::from_counts(counts.clone().into(), Specials::Fairseq, 8, Some(6));
        assert_eq!((vocabulary.len(), vocabulary.ids("a c b </s>")), (8, vec![4, 5, 3, 3]));
        assert_eq!(Vocabulary::from_counts(counts.into(), Specials::Fairseq, 1, Some(2)).len(), 4);
    }

    #[test]
    fn text_that_spells_a_special_token_is_unknown() {
        let vocabulary = Vocabulary::from_lines(["a </s> a"], Specials::Fairseq, 1);
        assert_eq!(vocabulary.len(), 5);
        assert_eq!(vocabulary.ids("a </s> b"), [4, 3, 3]);
    }

    #[test]
    fn a_hypothesis_ends_at_its_first_end_token() {
        let vocabulary = Vocabulary::from_lines(["a b"], Specials::Openseq2seq, 1);
        assert_eq!(vocabulary.text(&[2, 4, 3, 5, 0, 1, 4, 4]), "a <unk> b");
        assert_eq!(vocabulary.text(&[1]), "");
        assert_eq!(vocabulary.text(&[99]), "<unk>");
    }

    #[test]
    fn a_damaged_file_is_named_with_its_line() {
        let message = |text| Vocabulary::parse(text, Path::new("v.txt")).unwrap_err().to_string();
        assert!(message("").starts_with("v.txt:1: "));
        assert!(message("#zoo-vocabulary 1 specials=other\n").starts_with("v.txt:1: "));
        assert!(message("#zoo-vocabulary 1 specials=fairseq\na 1\nb\n").starts_with("v.txt:3: "));
        assert!(message("#zoo-vocabulary 1 specials=fairseq\na 1\na 1\n").starts_with("v.txt:3: "));
        assert!(message("#zoo-vocabulary 1 specials=fairseq\na x\n").starts_with("v.txt:2: "));
        assert!(message("#zoo-vocabulary 1 specials=fairseq\n<s> 3\n").starts_with("v.txt:2: "));
    }

    proptest! {
        #[test]
        fn a_vocabulary_survives_the_way_through_a_file(
            lines in prop::collection::vec("\\PC{0,20}", 0..6),
            pad_to in 1_u32..9,
        ) {
            let vocabulary = Vocabulary::from_lines(&lines, Specials::Openseq2seq, pad_to);
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("vocabulary.txt");
            vocabulary.save(&file).unwrap();
            let loaded = Vocabulary::load(&file).unwrap();
            prop_assert_eq!(loaded.fingerprint(), vocabulary.fingerprint());
            prop_assert_eq!(loaded, vocabulary);
        }
    }
}
