//! The text treatment of the Moses toolkit, compatible with its scripts: lower-casing, punctuation,
//! tokenisation and detokenisation.
//!
//! Multi30k's published `lc.norm.tok` files are its raw files after lower-casing, punctuation
//! normalisation and tokenisation, in this order.

mod detokenizer;
mod punctuation;
mod tokenizer;

use rayon::prelude::*;
use regex::Regex;
use zoo_recipes::NormalizeStep;

pub use detokenizer::Detokenizer;
pub use punctuation::PunctuationNormalizer;
pub use tokenizer::Tokenizer;

use super::TextError;

/// The languages with a list of words that end in a full stop.
const KNOWN: &str = "en, de, fr";

/// A supported language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `en`
    English,
    /// `de`
    German,
    /// `fr`
    French,
}

impl Language {
    /// The language of a two-letter code.
    pub fn from_code(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "de" => Some(Self::German),
            "fr" => Some(Self::French),
            _ => None,
        }
    }
}

/// Lower case, character by character as in Perl's `lc` (without a rule for a final sigma).
pub fn lowercase(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).collect()
}

#[derive(Debug)]
enum Step {
    Lowercase,
    Punctuation(PunctuationNormalizer),
    Tokenize(Tokenizer),
    NonPrinting(Regex),
    Apostrophes,
}

/// The `normalize` steps of a recipe for one side.
#[derive(Debug)]
pub struct Normalizer {
    steps: Vec<Step>,
}

impl Normalizer {
    /// The steps in their order, with the rules of `language`: a code such as `de`, which only
    /// Moses steps use.
    pub fn new(steps: &[NormalizeStep], language: &str) -> Result<Self, TextError> {
        let rules = |step| {
            Language::from_code(language).ok_or_else(|| TextError::Language {
                step,
                language: language.to_string(),
                known: KNOWN,
            })
        };
        let steps = steps
            .iter()
            .map(|step| {
                Ok(match step {
                    NormalizeStep::Lowercase => Step::Lowercase,
                    NormalizeStep::MosesPunctuation => {
                        Step::Punctuation(PunctuationNormalizer::new(rules("moses-punctuation")?))
                    }
                    NormalizeStep::MosesTokenize => {
                        Step::Tokenize(Tokenizer::new(rules("moses-tokenize")?, false))
                    }
                    NormalizeStep::MosesTokenizeAggressive => {
                        Step::Tokenize(Tokenizer::new(rules("moses-tokenize-aggressive")?, true))
                    }
                    NormalizeStep::MosesTokenizeAggressive2018 => {
                        let rules = rules("moses-tokenize-aggressive-2018")?;
                        Step::Tokenize(Tokenizer::new(rules, true).splitting_last_words())
                    }
                    NormalizeStep::RemoveNonPrinting => {
                        Step::NonPrinting(Regex::new(r"\p{C}").expect("the pattern is a constant"))
                    }
                    NormalizeStep::StraightApostrophes => Step::Apostrophes,
                })
            })
            .collect::<Result<_, TextError>>()?;
        Ok(Self { steps })
    }

    /// Normalises one line, without its line feed.
    pub fn line(&self, line: &str) -> String {
        let mut text = line.to_string();
        for step in &self.steps {
            text = match step {
                Step::Lowercase => lowercase(&text),
                Step::Punctuation(normalizer) => normalizer.line(&text),
                Step::Tokenize(tokenizer) => tokenizer.line(&text),
                Step::NonPrinting(other) => other.replace_all(&text, " ").into_owned(),
                Step::Apostrophes => text.replace('’', "'"),
            };
        }
        text
    }

    /// Normalises many lines, on all threads. Each result depends on its own line only.
    pub fn lines<S: AsRef<str> + Sync>(&self, lines: &[S]) -> Vec<String> {
        lines.par_iter().map(|line| self.line(line.as_ref())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_made_in_the_order_given() {
        let steps = [NormalizeStep::Lowercase, NormalizeStep::MosesPunctuation, NormalizeStep::MosesTokenize];
        let normalizer = Normalizer::new(&steps, "de").unwrap();
        assert_eq!(normalizer.line("Er sagt: „Über alles“."), "er sagt : &quot; über alles &quot; .");
        assert_eq!(Normalizer::new(&[], "xx").unwrap().line("Ä  b"), "Ä  b");
    }

    #[test]
    fn a_language_without_rules_is_an_error_only_where_rules_are_needed() {
        assert!(Normalizer::new(&[NormalizeStep::Lowercase], "xx").is_ok());
        let error = Normalizer::new(&[NormalizeStep::MosesTokenize], "xx").unwrap_err().to_string();
        assert!(
            error.contains("moses-tokenize") && error.contains("`xx`") && error.contains("hint:"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_printed_becomes_a_space_and_curly_apostrophes_straight() {
        let step = |step, line: &str| Normalizer::new(&[step], "en").unwrap().line(line);
        assert_eq!(
            step(NormalizeStep::RemoveNonPrinting, "a\u{ad}b\tc\u{200b}d\u{7f} \u{e000}é€"),
            "a b c d   é€"
        );
        assert_eq!(step(NormalizeStep::StraightApostrophes, "it’s ‘so’"), "it's ‘so'");
        assert_eq!(
            step(NormalizeStep::MosesTokenizeAggressive2018, "the U.S. and well-known etc."),
            "the U.S. and well @-@ known etc ."
        );
        assert_eq!(step(NormalizeStep::MosesTokenizeAggressive, "So am I."), "So am I.");
        assert_eq!(step(NormalizeStep::MosesTokenizeAggressive2018, "So am I."), "So am I .");
    }

    #[test]
    fn lower_case_has_no_rule_for_a_final_sigma() {
        assert_eq!(lowercase("ΣΟΦΟΣ ÄÖ Abc"), "σοφοσ äö abc");
        assert_eq!(lowercase("ABC"), "abc");
    }
}
