//! Expands abbreviations of titles and companies to words.

use std::sync::OnceLock;

use regex::Regex;

/// Abbreviations and words of the source, including its spelling `misess`.
const WORDS: [(&str, &str); 18] = [
    ("mrs", "misess"),
    ("mr", "mister"),
    ("dr", "doctor"),
    ("st", "saint"),
    ("co", "company"),
    ("jr", "junior"),
    ("maj", "major"),
    ("gen", "general"),
    ("drs", "doctors"),
    ("rev", "reverend"),
    ("lt", "lieutenant"),
    ("hon", "honorable"),
    ("sgt", "sergeant"),
    ("capt", "captain"),
    ("esq", "esquire"),
    ("ltd", "limited"),
    ("col", "colonel"),
    ("ft", "fort"),
];

/// Replaces every abbreviation with its full stop by its word. The text is in lower case.
pub(super) fn expanded(text: &str) -> String {
    static PATTERN: OnceLock<Regex> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let names: Vec<&str> = WORDS.iter().map(|(short, _)| *short).collect();
        Regex::new(&format!(r"\b({})\.", names.join("|"))).expect("the pattern is a constant")
    });
    let word = |found: &regex::Captures<'_>| {
        let known = WORDS.iter().find(|(short, _)| *short == &found[1]);
        known.map_or_else(|| found[0].to_owned(), |(_, word)| (*word).to_owned())
    };
    pattern.replace_all(text, word).into_owned()
}
