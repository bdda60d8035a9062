//! Words as Keras's IMDB data set and its `text_to_word_sequence` cut them, on bytes.

use std::collections::HashMap;

/// Number that starts a text.
pub const START: u32 = 1;
/// Number of a word that is too rare.
pub const RARE: u32 = 2;
/// What is added to the rank of a word, which counts from 1.
const OFFSET: u32 = 3;

/// Lower-case words of a text. The 31 ASCII punctuation marks other than `'`, tabs and line feeds
/// become spaces; text is split on spaces.
pub fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let parts = text.split(|byte| match byte {
        b'\'' => false,
        b' ' | b'\t' | b'\n' => true,
        mark => mark.is_ascii_punctuation(),
    });
    parts.filter(|word| !word.is_empty()).map(<[u8]>::to_ascii_lowercase).collect()
}

/// Ranks of the words of the training texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordRanks {
    words: Vec<Vec<u8>>,
    ranks: HashMap<Vec<u8>, u32>,
}

impl WordRanks {
    /// Ranks words by falling count. Of words with the same count, the first one in the texts comes
    /// first.
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t [Vec<u8>]>) -> Self {
        let mut counts: HashMap<&[u8], (u64, usize)> = HashMap::new();
        for word in texts.into_iter().flatten() {
            let first = counts.len();
            counts.entry(word).or_insert((0, first)).0 += 1;
        }
        let mut order: Vec<_> = counts.into_iter().collect();
        order.sort_unstable_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
        Self::of_words(order.into_iter().map(|(word, _)| word.to_vec()).collect())
    }

    /// Words by rank.
    pub fn of_words(words: Vec<Vec<u8>>) -> Self {
        let ranks = words.iter().cloned().zip(1..).collect();
        Self { words, ranks }
    }

    /// The words by rank.
    pub fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// The word of a number: `...` for [`RARE`]; `None` for other numbers without a word.
    pub fn word(&self, number: u32) -> Option<&[u8]> {
        match number {
            RARE => Some(b"..."),
            _ => self.words.get(number.checked_sub(OFFSET + 1)? as usize).map(Vec::as_slice),
        }
    }

    /// Numbers of a text: [`START`], then the words. Numbers from `limit` on become [`RARE`]; words
    /// without a rank are left out.
    pub fn numbers(&self, words: &[Vec<u8>], limit: u32) -> Vec<u32> {
        let number = |word: &Vec<u8>| {
            let number = self.ranks.get(word)?.saturating_add(OFFSET);
            Some(if number < limit { number } else { RARE })
        };
        [START].into_iter().chain(words.iter().filter_map(number)).collect()
    }
}

/// Numbers of pairs of neighbours, in the order of their appearance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bigrams {
    first: u32,
    pairs: Vec<[u32; 2]>,
    numbers: HashMap<[u32; 2], u32>,
}

impl Bigrams {
    /// The pairs of the training texts. The first one gets the number `first`.
    pub fn new<'t>(first: u32, texts: impl IntoIterator<Item = &'t [u32]>) -> Self {
        let mut found = Self { first, ..Self::default() };
        for pair in texts.into_iter().flat_map(pairs) {
            let next = found.end();
            if let std::collections::hash_map::Entry::Vacant(entry) = found.numbers.entry(pair) {
                entry.insert(next);
                found.pairs.push(pair);
            }
        }
        found
    }

    /// Pairs by number. The first one has the number `first`.
    pub fn of_pairs(first: u32, pairs: Vec<[u32; 2]>) -> Self {
        let numbers = pairs.iter().copied().zip(first..).collect();
        Self { first, pairs, numbers }
    }

    /// The pairs by number.
    pub fn pairs(&self) -> &[[u32; 2]] {
        &self.pairs
    }

    /// The smallest number that no pair has.
    pub fn end(&self) -> u32 {
        self.first.saturating_add(self.pairs.len() as u32)
    }

    /// Appends the numbers of the known pairs of a text.
    pub fn append(&self, text: &mut Vec<u32>) {
        let more: Vec<u32> = pairs(text).filter_map(|pair| self.numbers.get(&pair).copied()).collect();
        text.extend(more);
    }
}

fn pairs(text: &[u32]) -> impl Iterator<Item = [u32; 2]> + '_ {
    text.windows(2).map(|pair| [pair[0], pair[1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        words(text.as_bytes()).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn marks_become_spaces_and_apostrophes_stay() {
        assert_eq!(cut("It's <br />GOOD,\tnot-bad!\n'x'"), ["it's", "br", "good", "not", "bad", "'x'"]);
        assert_eq!(cut("a\rb"), ["a\rb"], "only spaces, tabs and line feeds separate");
        assert_eq!(cut("CAFÉ"), ["cafÉ"], "bytes above 127 keep their case");
        assert_eq!(cut("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~"), Vec::<String>::new());
    }

    #[test]
    fn numbers_are_ranks_from_four_on() {
        let texts = [words(b"b a b"), words(b"c a b d")];
        let ranks = WordRanks::new(texts.iter().map(Vec::as_slice));
        assert_eq!(ranks.words().concat(), b"bacd");
        // `e` was never seen; 6 and 7 are at the limit or above.
        assert_eq!(ranks.numbers(&words(b"d e a b c"), 6), [START, RARE, 5, 4, RARE]);
        assert_eq!(ranks.numbers(&words(b"d"), 8), [START, 7]);
    }

    #[test]
    fn known_pairs_are_appended() {
        let bigrams = Bigrams::new(10, [[1, 4, 5].as_slice(), &[1, 4, 4]]);
        assert_eq!((bigrams.pairs(), bigrams.end()), ([[1, 4], [4, 5], [4, 4]].as_slice(), 13));
        let mut text = vec![1, 5, 4, 5];
        bigrams.append(&mut text);
        assert_eq!(text, [1, 5, 4, 5, 11]);
    }
}
