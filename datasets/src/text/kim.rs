//! Words as the code of Kim's "Convolutional Neural Networks for Sentence Classification" cuts
//! them, in the lower-case form of harvardnlp/sent-conv-torch (`clean_str` of `preprocess.py`).

use std::collections::HashMap;

/// What gets a space in front, in this order. Letters are lower-case: `N'T` is not split.
const ENDINGS: [&[u8]; 6] = [b"'s", b"'ve", b"n't", b"'re", b"'d", b"'ll"];
/// Marks that are words of their own.
const MARKS: &[u8] = b",!()?";

/// Lower-case words of a text. Bytes other than ASCII letters, digits and ``(),!?'` `` become
/// spaces.
pub fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let kept = |byte: &u8| match byte {
        b'\'' | b'`' => *byte,
        byte if byte.is_ascii_alphanumeric() || MARKS.contains(byte) => *byte,
        _ => b' ',
    };
    let mut text: Vec<u8> = text.iter().map(kept).collect();
    for ending in ENDINGS {
        text = spaced(&text, ending);
    }
    let mut parts = Vec::with_capacity(text.len() + 8);
    for byte in text {
        match MARKS.contains(&byte) {
            true => parts.extend([b' ', byte, b' ']),
            false => parts.push(byte),
        }
    }
    let words = parts.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    words.map(<[u8]>::to_ascii_lowercase).collect()
}

/// The text with a space in front of each `ending`.
fn spaced(text: &[u8], ending: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len() + 8);
    let mut rest = text;
    while !rest.is_empty() {
        let length = if rest.starts_with(ending) {
            found.push(b' ');
            ending.len()
        } else {
            1
        };
        let (here, after) = rest.split_at(length);
        found.extend_from_slice(here);
        rest = after;
    }
    found
}

/// Numbers of words, from 1 on, in the order of their appearance; 0 is padding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordNumbers {
    words: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl WordNumbers {
    /// Words in their order.
    pub fn of_words(words: Vec<Vec<u8>>) -> Self {
        let numbers = words.iter().cloned().zip(1..).collect();
        Self { words, numbers }
    }

    /// The words in their order.
    pub fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// The word of a number; `None` for padding.
    pub fn word(&self, number: u32) -> Option<&[u8]> {
        self.words.get(number.checked_sub(1)? as usize).map(Vec::as_slice)
    }

    /// Adds the words of a text that are new.
    pub fn add(&mut self, words: &[Vec<u8>]) {
        for word in words {
            if !self.numbers.contains_key(word) {
                self.words.push(word.clone());
                self.numbers.insert(word.clone(), self.words.len() as u32);
            }
        }
    }

    /// Numbers of a text; words that were not added are left out.
    pub fn numbers(&self, words: &[Vec<u8>]) -> Vec<u32> {
        words.iter().filter_map(|word| self.numbers.get(word).copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> String {
        String::from_utf8(words(text.as_bytes()).join(&b' ')).unwrap()
    }

    #[test]
    fn endings_and_marks_are_words() {
        assert_eq!(cut("It's what they've, they'll & we'd"), "it 's what they 've , they 'll we 'd");
        assert_eq!(cut("Don't! (we're) ok?"), "do n't ! ( we 're ) ok ?");
        assert_eq!(cut("DON'T a-b ``q''"), "don't a b ``q''", "capital endings are not split");
        assert_eq!(cut("caf\u{e9} $5.10"), "caf 5 10");
    }

    #[test]
    fn numbers_follow_the_first_appearance() {
        let mut numbers = WordNumbers::default();
        numbers.add(&words(b"b a b"));
        numbers.add(&words(b"a c"));
        assert_eq!(numbers.words().concat(), b"bac");
        assert_eq!(numbers.numbers(&words(b"c d b")), [3, 1]);
    }
}
