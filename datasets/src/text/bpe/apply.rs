//! Applying merge operations to text, and undoing them.

use std::borrow::Cow;
use std::collections::HashMap;

use rayon::prelude::*;

use super::{Codes, END_OF_WORD, SEPARATOR, words_of};

/// A symbol that does not occur in any merge.
const FOREIGN: u32 = u32::MAX;

/// Encodes text with learnt codes.
#[derive(Debug)]
pub struct Encoder {
    symbols: HashMap<String, u32>,
    /// Pair -> (rank, symbol of the merge).
    merges: HashMap<(u32, u32), (u32, u32)>,
}

impl Encoder {
    /// An encoder with these codes, in their order. If a merge occurs twice, its first position
    /// counts.
    pub fn new(codes: &Codes) -> Self {
        let mut symbols: HashMap<String, u32> = HashMap::new();
        let mut id = |text: &str| {
            let next = symbols.len() as u32;
            *symbols.entry(text.to_string()).or_insert(next)
        };
        let mut merges = HashMap::new();
        for (rank, (left, right)) in codes.merges.iter().enumerate() {
            let pair = (id(left), id(right));
            let made = id(&format!("{left}{right}"));
            merges.entry(pair).or_insert((rank as u32, made));
        }
        Self { symbols, merges }
    }

    /// The parts of one word, without separators; their concatenation is the word.
    pub fn parts<'w>(&self, word: &'w str) -> Vec<&'w str> {
        // (symbol, its end in the word)
        let mut parts: Vec<(u32, usize)> = Vec::with_capacity(word.len());
        let mut text = String::new();
        for (start, character) in word.char_indices() {
            let end = start + character.len_utf8();
            text.clear();
            text.push(character);
            if end == word.len() {
                text.push_str(END_OF_WORD);
            }
            parts.push((self.symbols.get(&text).copied().unwrap_or(FOREIGN), end));
        }
        while let Some((rank, made)) =
            parts.windows(2).filter_map(|p| self.merges.get(&(p[0].0, p[1].0)).copied()).min()
        {
            let mut after = Vec::with_capacity(parts.len());
            let mut at = 0;
            while at < parts.len() {
                let next = parts
                    .get(at + 1)
                    .filter(|next| self.merges.get(&(parts[at].0, next.0)).is_some_and(|&(r, _)| r == rank));
                match next {
                    Some(next) => {
                        after.push((made, next.1));
                        at += 2;
                    }
                    None => {
                        after.push(parts[at]);
                        at += 1;
                    }
                }
            }
            parts = after;
        }
        let mut start = 0;
        parts
            .into_iter()
            .map(|(_, end)| {
                let part = &word[start..end];
                start = end;
                part
            })
            .collect()
    }

    /// Encodes one word with separators, e.g. `viel@@ er`.
    pub fn word(&self, word: &str) -> String {
        self.parts(word).join(&format!("{SEPARATOR} "))
    }

    /// Encodes one line. Words are separated by ASCII spaces, and joined by one space. Spaces at
    /// the ends of the line are kept.
    pub fn line(&self, line: &str) -> String {
        assembled(line, |word| Cow::Owned(self.word(word)))
    }

    /// Encodes many lines; each different word is encoded once. The result does not depend on the
    /// number of threads.
    pub fn lines<S: AsRef<str> + Sync>(&self, lines: &[S]) -> Vec<String> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut different: Vec<&str> = Vec::new();
        for word in lines.iter().flat_map(|l| words_of(l.as_ref())) {
            known.entry(word).or_insert_with(|| {
                different.push(word);
                different.len() - 1
            });
        }
        let encoded: Vec<String> = different.par_iter().map(|w| self.word(w)).collect();
        lines
            .par_iter()
            .map(|line| assembled(line.as_ref(), |word| Cow::Borrowed(encoded[known[word]].as_str())))
            .collect()
    }
}

/// Characters that are trimmed from the ends of a line before it is split into words.
const ENDS: [char; 3] = ['\r', '\n', ' '];

/// Replaces each word of the line by its encoding.
fn assembled<'e>(line: &str, encode: impl Fn(&str) -> Cow<'e, str>) -> String {
    let body = line.trim_start_matches(ENDS);
    let mut out = String::with_capacity(line.len() * 5 / 4);
    out.push_str(&line[..line.len() - body.len()]);
    for (index, word) in words_of(body).enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&encode(word));
    }
    out.push_str(&body[body.trim_end_matches(ENDS).len()..]);
    out
}

/// Joins the parts of words in encoded text. A separator at the end of the line is dropped.
pub fn undo(encoded: &str) -> String {
    let joined = encoded.replace(&format!("{SEPARATOR} "), "");
    joined.strip_suffix(SEPARATOR).unwrap_or(&joined).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::learn;
    use super::*;
    use proptest::prelude::*;

    fn codes(merges: &[(&str, &str)]) -> Codes {
        Codes { merges: merges.iter().map(|(l, r)| (l.to_string(), r.to_string())).collect() }
    }

    #[test]
    fn the_earliest_merge_is_made_first_from_the_left_without_overlap() {
        let encoder = Encoder::new(&codes(&[("b", "c"), ("a", "b"), ("a", "a")]));
        assert_eq!(encoder.word("abcx"), "a@@ bc@@ x");
        assert_eq!(encoder.word("aaax"), "aa@@ a@@ x");
        assert_eq!(encoder.word("aaaax"), "aa@@ aa@@ x");
    }

    #[test]
    fn the_end_of_a_word_is_a_symbol_of_its_own() {
        let encoder = Encoder::new(&codes(&[("a", "b</w>")]));
        assert_eq!(encoder.line("ab abc"), "ab a@@ b@@ c");
        assert_eq!(encoder.word("b"), "b");
    }

    #[test]
    fn letters_that_were_never_seen_stand_alone() {
        let encoder = Encoder::new(&codes(&[("a", "b</w>")]));
        assert_eq!(encoder.word("äüab"), "ä@@ ü@@ ab");
        assert_eq!(encoder.line(""), "");
        assert_eq!(encoder.line("  ab   ab \r\n"), "  ab ab \r\n");
        assert_eq!(encoder.line("  "), "  ");
    }

    #[test]
    fn a_separator_left_at_the_end_is_dropped() {
        assert_eq!(undo("viel@@ er bü@@ sche ."), "vieler büsche .");
        assert_eq!(undo("ein an@@"), "ein an");
        assert_eq!(undo(""), "");
    }

    proptest! {
        #[test]
        fn encoding_is_undone(words in prop::collection::vec("[a-fäß.,&;]{1,8}", 0..20), merges in 0_usize..60) {
            let line = words.join(" ");
            let encoder = Encoder::new(&learn([&line, &line], merges));
            prop_assert_eq!(undo(&encoder.line(&line)), line.clone());
            prop_assert_eq!(encoder.lines(std::slice::from_ref(&line)), vec![encoder.line(&line)]);
        }

        #[test]
        fn the_parts_of_a_word_are_the_word(word in "\\PC{0,12}", merges in 0_usize..30) {
            let encoder = Encoder::new(&learn([&word, &word], merges));
            prop_assert_eq!(encoder.parts(&word).concat(), word);
        }
    }
}
