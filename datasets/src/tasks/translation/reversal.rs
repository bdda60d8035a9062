//! OpenSeq2Seq's toy task: a random string of Greek letters, and its reverse.
//!
//! The published generator is unseeded and uses 10 letters and lengths from 5 to 50 inclusive.
//! Here, example `i` of a split is a function of (seed, split, i). The first number of its random
//! stream gives its length, the next ones its symbols.

use zoo_recipes::tasks::translation::{ReversalSpec, ToyLanguage};

use crate::random::{Purpose, RandomStream};
use crate::readers::{ReadError, SplitText};

/// Number of letters of the alphabet, without the final form of sigma.
const LETTERS: u32 = 24;

/// Why a reversal task cannot be generated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("reader `reversal`: {problem}\nhint: {hint}")]
pub struct ReversalError {
    problem: String,
    hint: &'static str,
}

impl From<ReversalError> for ReadError {
    fn from(ReversalError { problem, hint }: ReversalError) -> Self {
        Self::Generated { reader: "reversal", problem, hint }
    }
}

/// The split's part of the stream number, so that the examples of a split do not depend on the size
/// of another split.
fn split_number(split: &str) -> Option<u64> {
    ["train", "valid", "test"].iter().position(|name| *name == split).map(|at| at as u64)
}

/// Symbol `index` (below 24): small Greek letters in the order of the alphabet.
fn symbol(index: u32) -> char {
    // Skips U+03C2, the final sigma.
    let code = 0x3b1 + index + u32::from(index >= 17);
    char::from_u32(code).expect("the small Greek letters are characters")
}

/// Generates a split (`train`, `valid` or `test`) in its target language number `target`.
///
/// # Errors
/// The split does not exist, or the settings are out of range.
pub fn generate(spec: &ReversalSpec, split: &str, target: usize) -> Result<SplitText, ReversalError> {
    let count = match split {
        "train" => spec.train,
        "valid" => spec.valid,
        "test" => spec.test,
        _ => 0,
    };
    let lengths = (spec.min_length, spec.max_length);
    let mut pairs = generate_split(spec.symbols, lengths, count, spec.seed, split)?;
    if let Some(at) = target.checked_sub(1) {
        match spec.further_targets[at] {
            ToyLanguage::Copied => pairs.target = pairs.source.clone(),
        }
    }
    Ok(pairs)
}

fn generate_split(
    symbols: u32,
    (min, max): (u32, u32),
    count: u32,
    seed: u64,
    split: &str,
) -> Result<SplitText, ReversalError> {
    let error = |problem, hint| Err(ReversalError { problem, hint });
    let Some(number) = split_number(split) else {
        return error(format!("there is no split `{split}`"), "the splits are train, valid and test");
    };
    if symbols == 0 || symbols > LETTERS {
        return error(
            format!("symbols = {symbols}"),
            "give 1 to 24 symbols, the letters of the Greek alphabet",
        );
    }
    if min == 0 || min > max || max > 100_000 {
        return error(
            format!("min_length = {min}, max_length = {max}"),
            "lengths are 1 to 100000, the shortest not above the longest",
        );
    }
    let mut pairs = SplitText::default();
    for example in 0..count {
        let mut stream = RandomStream::new(seed, Purpose::Examples, (number << 32) | u64::from(example));
        let length = min + stream.below(max - min + 1);
        let letters: Vec<char> = (0..length).map(|_| symbol(stream.below(symbols))).collect();
        pairs.source.push(spaced(letters.iter()));
        pairs.target.push(spaced(letters.iter().rev()));
    }
    Ok(pairs)
}

fn spaced<'a>(letters: impl Iterator<Item = &'a char>) -> String {
    let mut line = String::new();
    for letter in letters {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push(*letter);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(symbols: u32, lengths: (u32, u32), train: u32, seed: u64) -> ReversalSpec {
        ReversalSpec {
            symbols,
            min_length: lengths.0,
            max_length: lengths.1,
            train,
            valid: 100,
            test: 200,
            seed,
            further_targets: vec![ToyLanguage::Copied],
        }
    }

    fn split(reader: &ReversalSpec, name: &str) -> SplitText {
        generate(reader, name, 0).unwrap()
    }

    #[test]
    fn targets_are_sources_reversed_and_lengths_cover_the_range_evenly() {
        let pairs = split(&reader(10, (5, 50), 10_000, 1), "train");
        let mut lengths = [0_u32; 51];
        let mut letters = std::collections::BTreeSet::new();
        for (source, target) in pairs.source.iter().zip(&pairs.target) {
            let mut words: Vec<&str> = source.split(' ').collect();
            lengths[words.len()] += 1;
            letters.extend(words.iter().map(|w| w.to_string()));
            words.reverse();
            assert_eq!(&words.join(" "), target);
        }
        assert_eq!(pairs.len(), 10_000);
        assert_eq!(letters.into_iter().collect::<String>(), "αβγδεζηθικ");
        // 46 lengths with about 217 examples each; standard deviation 15.
        assert!(lengths[5..=50].iter().all(|&n| n.abs_diff(217) < 75), "{lengths:?}");
    }

    #[test]
    fn splits_and_seeds_are_independent_and_do_not_depend_on_sizes() {
        let small = split(&reader(10, (5, 50), 10, 1), "train");
        let large = split(&reader(10, (5, 50), 50, 1), "train");
        assert_eq!(small.source, large.source[..10]);
        let valid = split(&reader(10, (5, 50), 10, 1), "valid");
        assert_eq!(valid.len(), 100);
        assert_eq!(split(&reader(10, (5, 50), 77, 1), "valid"), valid);
        assert!(small.source.iter().all(|line| !valid.source.contains(line)));
        assert!(split(&reader(10, (5, 50), 10, 2), "train").source != small.source);
    }

    #[test]
    fn the_generated_text_is_fixed_for_ever() {
        let pairs = split(&reader(10, (3, 6), 3, 1), "train");
        assert_eq!(pairs.source, ["ζ δ β κ β γ", "ζ α δ ζ γ β", "η ε ι α η"]);
    }

    #[test]
    fn a_further_language_has_the_same_sources() {
        let reader = reader(10, (3, 6), 20, 1);
        let (reversed, copied) = (split(&reader, "train"), generate(&reader, "train", 1).unwrap());
        assert_eq!((&copied.source, &copied.target), (&reversed.source, &reversed.source));
        assert_ne!(reversed.target, copied.target);
    }

    #[test]
    fn all_24_letters_are_distinct_and_there_is_no_final_sigma() {
        let letters: String = (0..LETTERS).map(symbol).collect();
        assert_eq!(letters, "αβγδεζηθικλμνξοπρστυφχψω");
    }

    #[test]
    fn impossible_tasks_are_errors() {
        let message = |reader: &ReversalSpec, name: &str| generate(reader, name, 0).unwrap_err().to_string();
        assert!(message(&reader(25, (1, 2), 1, 1), "train").contains("symbols = 25"));
        assert!(message(&reader(0, (1, 2), 1, 1), "train").contains("hint:"));
        assert!(message(&reader(2, (3, 2), 1, 1), "train").contains("min_length = 3"));
        assert!(message(&reader(2, (0, 2), 1, 1), "train").contains("min_length = 0"));
        assert!(message(&reader(2, (1, 2), 1, 1), "dev").contains("`dev`"));
    }
}
