//! A toy of our own: random words, some of which occur in texts of one class only.

use std::ops::Range;

use crate::corpora::LabelledTexts;
use crate::random::{Purpose, RandomStream};

/// Words that texts of every class have.
const COMMON: u32 = 40;
/// Words that mark a class.
const MARKS: u32 = 5;

/// The texts of some numbers. A text is a function of the seed and its number.
pub(super) fn marked(classes: u32, seed: u64, numbers: Range<u32>) -> LabelledTexts {
    let mut found = LabelledTexts::default();
    for number in numbers {
        let mut stream = RandomStream::new(seed, Purpose::Examples, u64::from(number));
        let class = stream.below(classes);
        let length = 8 + stream.below(9);
        let mark = stream.below(length);
        let mut word = |at: u32| match at == mark {
            true => format!("m{class}x{}", stream.below(MARKS)),
            false => format!("w{}", stream.below(COMMON)),
        };
        let words: Vec<String> = (0..length).map(&mut word).collect();
        found.texts.push(words.join(" ").into_bytes());
        found.labels.push(class);
    }
    found
}
