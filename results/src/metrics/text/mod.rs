//! Metrics on lines of text.
//!
//! BLEU and chrF use the `sacrebleu-rs` crate, which reproduces Python sacreBLEU 2.6.0 to the last
//! bit, but ignores unknown options and panics on streams of different lengths. This module
//! validates all inputs first, and adds what the crate lacks: the `zh` tokenizer, fractional add-k,
//! and Python's four separators that Rust does not treat as white space.
//! TER is implemented here. Its values equal the crate's, whose memory grows with the square of a
//! line's length. `limits` bounds the cost of one line. Word and character error rates are in the
//! folder `edit`.

pub mod bleu;
pub mod chrf;
pub mod exact_match;
pub(super) mod limits;
mod ngrams;
pub mod options;
pub mod sentence_report;
pub mod ter;
mod tercom;
pub mod tokenised_bleu;
mod zh;

use std::borrow::Cow;

pub use options::{
    BleuOptions, Case, ChrfOptions, Compounds, ExactMatchOptions, Smoothing, TerOptions, TokenisedBleu,
    TokenisedBleuOptions, Tokenizer,
};

use super::error::ScoreError;

/// Checks that all streams have the same number of lines: one hypothesis per line, and one
/// reference per line and stream.
pub(crate) fn check_streams<S: AsRef<[String]>>(
    hypotheses: &[String],
    references: &[S],
) -> Result<(), ScoreError> {
    if hypotheses.is_empty() {
        return Err(ScoreError::NoHypotheses);
    }
    if references.is_empty() {
        return Err(ScoreError::NoReferences);
    }
    for (i, stream) in references.iter().enumerate() {
        let stream = stream.as_ref();
        if stream.len() != hypotheses.len() {
            return Err(ScoreError::LengthMismatch {
                stream: i + 1,
                hypotheses: hypotheses.len(),
                references: stream.len(),
            });
        }
    }
    Ok(())
}

/// White space as in Python's `str.split`: Unicode white space, and the separators U+001C to
/// U+001F.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || is_separator(c)
}

fn is_separator(c: char) -> bool {
    ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The text with U+001C to U+001F replaced by spaces.
pub(crate) fn separators_to_spaces(text: &str) -> Cow<'_, str> {
    if text.contains(is_separator) {
        Cow::Owned(text.replace(is_separator, " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// A line in the form that BLEU counts: lower-cased if requested, without trailing white space,
/// tokens separated by white space.
pub(crate) fn tokenise(line: &str, case: Case, tokenizer: Tokenizer) -> String {
    let line = separators_to_spaces(line);
    let line = match case {
        Case::Lower => Cow::Owned(line.to_lowercase()),
        Case::Mixed => line,
    };
    let line = line.trim_end();
    match tokenizer {
        Tokenizer::V13a => sacrebleu_rs::tokenize_13a(line),
        Tokenizer::Intl => sacrebleu_rs::tokenize_intl(line),
        Tokenizer::Char => sacrebleu_rs::tokenize_char(line),
        Tokenizer::None => line.to_string(),
        Tokenizer::Zh => zh::tokenise(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_end_words_as_they_do_in_python() {
        for c in ['\u{1c}', '\u{1d}', '\u{1e}', '\u{1f}'] {
            assert!(!c.is_whitespace() && is_space(c));
            assert_eq!(tokenise(&format!("a{c}b{c}"), Case::Mixed, Tokenizer::None), "a b");
            assert_eq!(tokenise(&format!("a{c}b{c}"), Case::Mixed, Tokenizer::V13a), "a b");
        }
        assert!(!is_space('\u{1b}') && !is_space('\u{200b}') && is_space('\u{a0}') && is_space('\u{85}'));
    }

    #[test]
    fn uneven_streams_are_refused() {
        let two = vec!["a".to_string(), "b".to_string()];
        let one = vec!["a".to_string()];
        assert_eq!(check_streams(&[], &[Vec::new()]), Err(ScoreError::NoHypotheses));
        assert_eq!(check_streams::<Vec<String>>(&two, &[]), Err(ScoreError::NoReferences));
        let e = check_streams(&two, &[two.clone(), one.clone()]).unwrap_err().to_string();
        assert!(e.starts_with("reference stream 2 has 1 lines, the hypotheses have 2"), "{e}");
        assert!(check_streams(&one, std::slice::from_ref(&two)).is_err());
        check_streams(&two, std::slice::from_ref(&two)).unwrap();
    }
}
