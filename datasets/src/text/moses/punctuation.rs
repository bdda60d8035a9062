//! Punctuation normalisation as in Moses' `normalize-punctuation.perl`.
//!
//! This follows the version of the script with which Multi30k was made: single quotation marks
//! standing alone become double ones (later versions make them apostrophes). Its character classes
//! are ASCII, because it reads bytes.

use regex::Regex;

use super::Language;

const NO_BREAK_SPACE: char = '\u{a0}';

/// The punctuation rules of one language.
#[derive(Debug)]
pub struct PunctuationNormalizer {
    language: Language,
    bracket_then_mark: Regex,
    digit_percent: Regex,
    quote_in_word: Regex,
    quote_then_stop: Regex,
    stop_then_quote: Regex,
    digits_apart: Regex,
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

impl PunctuationNormalizer {
    /// The rules of `language`.
    pub fn new(language: Language) -> Self {
        Self {
            language,
            bracket_then_mark: compiled(r"\) ([.!:?;,])"),
            digit_percent: compiled(r"([0-9]) %"),
            quote_in_word: compiled(r"([a-zA-Z])[‘’]([a-zA-Z])"),
            quote_then_stop: compiled(r#""([,.]+)"#),
            // The script's line still has its line feed, which is one of the characters that may
            // follow. Here `$` takes its place.
            stop_then_quote: compiled(r#"(\.+)"([ \t\r\n\f\x0b]*[^<]|$)"#),
            digits_apart: compiled(r"([0-9])\x{a0}([0-9])"),
        }
    }

    /// Normalises one line, without its line feed.
    pub fn line(&self, line: &str) -> String {
        let mut text = line.replace('\r', "");
        self.brackets(&mut text);
        if text.contains('%') {
            text = self.digit_percent.replace_all(&text, "${1}%").into_owned();
        }
        exchange(&mut text, &[(" :", ":"), (" ;", ";"), ("`", "'"), ("''", " \" ")]);
        if !text.is_ascii() {
            self.beyond_ascii(&mut text);
        }
        exchange(&mut text, &[("''", "\"")]);
        if !text.is_ascii() {
            exchange(&mut text, &[("…", "...")]);
            guillemets(&mut text);
            pseudo_spaces(&mut text);
        }
        single_spaces(&mut text);
        self.quotes_and_stops(&mut text);
        if text.contains(NO_BREAK_SPACE) {
            let between = match self.language {
                Language::English => "${1}.${2}",
                Language::German | Language::French => "${1},${2}",
            };
            text = self.digits_apart.replace_all(&text, between).into_owned();
        }
        text
    }

    /// Puts a space before an opening and after a closing bracket, and removes those inside and
    /// before punctuation marks.
    fn brackets(&self, text: &mut String) {
        exchange(text, &[("(", " ("), (")", ") ")]);
        single_spaces(text);
        if text.contains(')') {
            *text = self.bracket_then_mark.replace_all(text, ")${1}").into_owned();
        }
        exchange(text, &[("( ", "("), (" )", ")")]);
    }

    fn beyond_ascii(&self, text: &mut String) {
        exchange(text, &[("„", "\""), ("“", "\""), ("”", "\""), ("–", "-"), ("—", " - ")]);
        single_spaces(text);
        exchange(text, &[("´", "'")]);
        if text.contains(['‘', '’']) {
            // The script has one rule per mark, and applies them in this order.
            for mark in ["‘", "’"] {
                if text.contains(mark) {
                    *text = self
                        .quote_in_word
                        .replace_all(text, |found: &regex::Captures<'_>| {
                            if found[0].contains(mark) {
                                format!("{}'{}", &found[1], &found[2])
                            } else {
                                found[0].to_string()
                            }
                        })
                        .into_owned();
                }
            }
        }
        exchange(text, &[("‘", "\""), ("‚", "\""), ("’", "\"")]);
    }

    /// Orders a closing quotation mark and a comma or full stop.
    fn quotes_and_stops(&self, text: &mut String) {
        if !text.contains('"') {
            return;
        }
        match self.language {
            Language::English => *text = self.quote_then_stop.replace_all(text, "${1}\"").into_owned(),
            Language::German | Language::French => {
                exchange(text, &[(",\"", "\",")]);
                *text = self.stop_then_quote.replace_all(text, "\"${1}${2}").into_owned();
            }
        }
    }
}

/// Replaces each first string by its second, one pair after the other.
fn exchange(text: &mut String, pairs: &[(&str, &str)]) {
    for (from, to) in pairs {
        if text.contains(from) {
            *text = text.replace(from, to);
        }
    }
}

fn single_spaces(text: &mut String) {
    while text.contains("  ") {
        *text = text.replace("  ", " ");
    }
}

fn guillemets(text: &mut String) {
    exchange(text, &[(" « ", " \""), ("« ", "\""), ("«", "\""), (" » ", "\" "), (" »", "\""), ("»", "\"")]);
}

/// Removes or normalises the no-break spaces that French and Spanish use before and after signs.
fn pseudo_spaces(text: &mut String) {
    if !text.contains(NO_BREAK_SPACE) {
        return;
    }
    exchange(
        text,
        &[
            ("\u{a0}%", "%"),
            ("nº\u{a0}", "nº "),
            ("\u{a0}:", ":"),
            ("\u{a0}ºC", " ºC"),
            ("\u{a0}cm", " cm"),
            ("\u{a0}?", "?"),
            ("\u{a0}!", "!"),
            ("\u{a0};", ";"),
            (",\u{a0}", ", "),
        ],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(language: Language, line: &str) -> String {
        PunctuationNormalizer::new(language).line(line)
    }

    #[test]
    fn brackets_stand_apart_and_hug_what_they_hold() {
        assert_eq!(normalized(Language::English, "a(b )c ( d) ."), "a (b) c (d).");
        assert_eq!(normalized(Language::English, "50 % a : b ;"), "50% a: b;");
    }

    #[test]
    fn quotation_marks_of_all_kinds_become_ascii_ones() {
        assert_eq!(
            normalized(Language::German, "„a“ – b — ‚c‘ l’a ’tis …"),
            "\"a\" - b - \"c\" l'a \"tis ..."
        );
        assert_eq!(normalized(Language::French, "« a » «b»"), "\"a\" \"b\"");
        assert_eq!(normalized(Language::English, "''a''  b´ `c´´"), " \" a \" b' 'c\"");
    }

    #[test]
    fn english_puts_the_stop_inside_the_quotation_and_german_outside() {
        assert_eq!(normalized(Language::English, "\"a\", \"b\"."), "\"a,\" \"b.\"");
        assert_eq!(normalized(Language::German, "\"a,\" \"b.\""), "\"a\", \"b\".");
        assert_eq!(normalized(Language::German, "\"b...\" und"), "\"b\"... und");
    }

    #[test]
    fn no_break_spaces_go_or_become_what_the_language_writes() {
        assert_eq!(normalized(Language::French, "10\u{a0}000\u{a0}% ?\u{a0}!"), "10,000% ?!");
        assert_eq!(normalized(Language::English, "10\u{a0}000"), "10.000");
    }
}
