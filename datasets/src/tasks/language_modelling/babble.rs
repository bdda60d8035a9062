//! A toy of our own: lines of a Markov chain of two-letter words. After each word, two words are
//! likely and the others are not, so that a model of one word's history is much better than none.

use crate::random::{Purpose, RandomStream};

/// Consonants and vowels of the words: 20 x 5.
const CONSONANTS: &[u8] = b"bcdfghjklmnpqrstvwxz";
const VOWELS: &[u8] = b"aeiou";

/// Words of a line.
const SHORTEST: u32 = 6;
const LONGEST: u32 = 12;

/// Share of words that follow the chain, in 1/16.
const LIKELY: u32 = 14;

/// The lines of numbers `from` to `to` as a text. A line is a function of the seed and its number.
pub(super) fn babble(words: u32, seed: u64, from: u32, to: u32) -> String {
    (from..to).map(|number| line(words.max(2), seed, number)).collect()
}

fn line(words: u32, seed: u64, number: u32) -> String {
    let mut stream = RandomStream::new(seed, Purpose::Examples, u64::from(number));
    let length = SHORTEST + stream.below(LONGEST - SHORTEST + 1);
    let mut word = stream.below(words);
    let mut text = String::new();
    for at in 0..length {
        if at > 0 {
            text.push(' ');
            word = match stream.below(16) {
                draw if draw < LIKELY => (3 * word + 1 + draw % 2) % words,
                _ => stream.below(words),
            };
        }
        let (consonant, vowel) = (word as usize % CONSONANTS.len(), word as usize / CONSONANTS.len());
        text.push(char::from(CONSONANTS[consonant]));
        text.push(char::from(VOWELS[vowel % VOWELS.len()]));
    }
    text.push('\n');
    text
}
