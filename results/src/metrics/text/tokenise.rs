//! Lines in the form in which BLEU counts them.

use std::borrow::Cow;

use super::options::Tokenizer;
use super::zh;
use crate::metrics::contract::{Case, separators_to_spaces};

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
            assert_eq!(tokenise(&format!("a{c}b{c}"), Case::Mixed, Tokenizer::None), "a b");
            assert_eq!(tokenise(&format!("a{c}b{c}"), Case::Mixed, Tokenizer::V13a), "a b");
        }
    }
}
