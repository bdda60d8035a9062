//! English text as it is read aloud: `english_cleaners` of Keith Ito's Tacotron, which NVIDIA's
//! Tacotron 2 uses.
//!
//! The steps are: conversion to ASCII, lower case, numbers and money in words, abbreviations in
//! words, single spaces for runs of white space. Known differences from the source:
//!
//! - The source turns `£` into `PS` before it applies its rule for pounds, so `£10` becomes
//!   `psten`. Here the rule is applied.
//! - Characters that ASCII letters cannot represent are kept, so that they are later reported as
//!   unknown symbols. The source writes Unidecode's guess or nothing.
//! - Numbers from 10^36 on stay digits. The source fails on them.

mod abbreviations;
mod ascii;
mod numbers;

/// Converts a text to the words that are read aloud.
pub fn clean(text: &str) -> String {
    let text = ascii::folded(text).to_lowercase();
    let text = abbreviations::expanded(&numbers::expanded(&text));
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_whitespace() {
            false => cleaned.push(character),
            true if cleaned.ends_with(' ') => {}
            true => cleaned.push(' '),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::clean;

    #[test]
    fn text_becomes_what_is_read() {
        for (text, read) in [
            ("Dr. Drs. St. Mrs.  Müller’s\tCo.", "doctor doctors saint misess muller's company"),
            ("first. co. Mst. fast.", "first. company mst. fast."),
            ("£1,200 and £5.", "twelve hundred pounds and five pounds."),
            (
                "$20.15, $1.01, $0.50, $3, $.",
                "twenty dollars, fifteen cents, one dollar, one cent, fifty cents, three dollars, $.",
            ),
            ("1.5 of 3,000,000", "one point five of three million"),
            (
                "in 1835, 1905, 1900, 2000, 2005, 2011",
                "in eighteen thirty-five, nineteen oh five, nineteen hundred, two thousand, two thousand five, twenty eleven",
            ),
            ("the 22nd, 101st, 1000th", "the twenty-second, one hundred and first, one thousandth"),
            ("“quoted” — ‘so’…", "\"quoted\" -- 'so'..."),
            (" a \n b ", " a b "),
            ("中", "中"),
        ] {
            assert_eq!(clean(text), read, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cleaned_without_panic(text in "\\PC{0,40}") {
            let _ = clean(&text);
        }

        #[test]
        fn numbers_and_money_never_panic(text in "[$£0-9.,stndrh ]{0,60}") {
            let _ = clean(&text);
        }
    }
}
