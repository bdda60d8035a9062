//! Tokenisation as in Moses' `tokenizer.perl`, with escaping, in the version with which Multi30k
//! was made.

use std::collections::HashMap;

use regex::Regex;

use super::Language;

/// Placeholder for one of several dots in a row. Control characters are removed from the text
/// before.
const DOT_OF_MANY: char = '\u{1}';

/// Conditions under which a full stop after a word does not end the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Always,
    BeforeNumber,
}

/// The tokenizer of one language.
#[derive(Debug)]
pub struct Tokenizer {
    language: Language,
    aggressive: bool,
    split_last: bool,
    prefixes: HashMap<&'static str, Prefix>,
    decimal_digit: Regex,
    comma_after: Regex,
    comma_before: Regex,
    /// Apostrophe rules, in order.
    apostrophes: Vec<(Regex, &'static str)>,
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

impl Tokenizer {
    /// The tokenizer of `language`; `aggressive` splits at hyphens within words (`-a`).
    pub fn new(language: Language, aggressive: bool) -> Self {
        let prefixes = match language {
            Language::English => include_str!("prefixes/en.txt"),
            Language::German => include_str!("prefixes/de.txt"),
            Language::French => include_str!("prefixes/fr.txt"),
        };
        let prefixes = prefixes
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(|line| match line.split_once('\t') {
                Some((word, _)) => (word, Prefix::BeforeNumber),
                None => (line, Prefix::Always),
            })
            .collect();
        let apart = "${1} ' ${2}";
        let rules: &[(&str, &'static str)] = match language {
            Language::English => &[
                (r"(\P{Alphabetic})'(\P{Alphabetic})", apart),
                (r"([^\p{Alphabetic}\p{N}])'(\p{Alphabetic})", apart),
                (r"(\p{Alphabetic})'(\P{Alphabetic})", apart),
                (r"(\p{Alphabetic})'(\p{Alphabetic})", "${1} '${2}"),
                (r"(\p{N})'(s)", "${1} '${2}"),
            ],
            Language::French => &[
                (r"(\P{Alphabetic})'(\P{Alphabetic})", apart),
                (r"(\P{Alphabetic})'(\p{Alphabetic})", apart),
                (r"(\p{Alphabetic})'(\P{Alphabetic})", apart),
                (r"(\p{Alphabetic})'(\p{Alphabetic})", "${1}' ${2}"),
            ],
            Language::German => &[("'", " ' ")],
        };
        Self {
            language,
            aggressive,
            split_last: false,
            prefixes,
            decimal_digit: compiled(r"\p{Nd}"),
            comma_after: compiled(r"(\P{N}),"),
            comma_before: compiled(r",(\P{N})"),
            apostrophes: rules.iter().map(|(pattern, to)| (compiled(pattern), *to)).collect(),
        }
    }

    /// Follows the script since November 2018 (pull request 204): the full stop of a line's last
    /// word is always a separate token.
    pub fn splitting_last_words(mut self) -> Self {
        self.split_last = true;
        self
    }

    /// The language of the rules.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Tokenises one line, without its line feed. Tokens are separated by single spaces. A blank
    /// line is returned unchanged.
    pub fn line(&self, line: &str) -> String {
        if line.chars().all(char::is_whitespace) {
            return line.to_string();
        }
        let text = self.separate_signs(&clean(line));
        let text = if self.aggressive { self.split_hyphens(&text) } else { text };
        let text = mark_runs_of_dots(&text);
        let text = self.separate_commas(text);
        let text = self.separate_apostrophes(text);
        let mut text = self.separate_full_stops(&text);
        // A full stop and an apostrophe at the end. The rule leaves a space after them.
        if let Some(rest) = text.strip_suffix(".'") {
            text = format!("{rest} . ' ");
        }
        escape(&text)
    }

    fn is_alphanumeric(&self, character: char) -> bool {
        if character.is_ascii() {
            return character.is_ascii_alphanumeric();
        }
        character.is_alphabetic()
            || (character.is_numeric() && self.decimal_digit.is_match(character.encode_utf8(&mut [0; 4])))
    }

    /// Puts spaces around everything except letters, digits, spaces and the signs that have their
    /// own rules.
    fn separate_signs(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        for character in text.chars() {
            let stays = matches!(character, ' ' | '.' | '\'' | '`' | ',' | '-');
            if stays || self.is_alphanumeric(character) || character.is_whitespace() {
                out.push(character);
            } else {
                out.extend([' ', character, ' ']);
            }
        }
        out
    }

    fn split_hyphens(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        let mut characters = text.chars().peekable();
        let mut before = ' ';
        while let Some(character) = characters.next() {
            let within = character == '-'
                && self.is_alphanumeric(before)
                && characters.peek().is_some_and(|&next| self.is_alphanumeric(next));
            if within {
                out.push_str(" @-@ ");
            } else {
                out.push(character);
            }
            before = character;
        }
        out
    }

    /// Separates commas, unless there are digits on both sides.
    fn separate_commas(&self, text: String) -> String {
        if !text.contains(',') {
            return text;
        }
        let text = self.comma_after.replace_all(&text, "${1} , ");
        let text = self.comma_before.replace_all(&text, " , ${1}");
        match text.strip_suffix(',') {
            Some(rest) if rest.ends_with(char::is_numeric) => format!("{rest} ,"),
            _ => text.into_owned(),
        }
    }

    fn separate_apostrophes(&self, mut text: String) -> String {
        if text.contains('\'') {
            for (pattern, to) in &self.apostrophes {
                text = pattern.replace_all(&text, *to).into_owned();
            }
        }
        text
    }

    /// Separates the full stop at the end of a word, unless the word or the text after it shows
    /// that it belongs to the word.
    fn separate_full_stops(&self, text: &str) -> String {
        let mut words: Vec<&str> = text.split(char::is_whitespace).collect();
        while words.last() == Some(&"") {
            words.pop();
        }
        let mut out = String::with_capacity(text.len() + 16);
        for (index, word) in words.iter().enumerate() {
            if word.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            match word.strip_suffix('.') {
                Some(stem)
                    if !stem.is_empty() && !self.keeps_full_stop(stem, words.get(index + 1).copied()) =>
                {
                    out.push_str(stem);
                    out.push_str(" .");
                }
                _ => out.push_str(word),
            }
        }
        out
    }

    fn keeps_full_stop(&self, stem: &str, next: Option<&str>) -> bool {
        // The version used for Multi30k also applies its rules to the last word of a line.
        if self.split_last && next.is_none() {
            return false;
        }
        let next = next.unwrap_or("");
        let prefix = self.prefixes.get(stem);
        (stem.contains('.') && stem.chars().any(char::is_alphabetic))
            || prefix == Some(&Prefix::Always)
            || next.starts_with(char::is_lowercase)
            || (prefix == Some(&Prefix::BeforeNumber) && next.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// Replaces runs of white space by single spaces, trims the ends and removes ASCII control
/// characters.
fn clean(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for word in line.split(char::is_whitespace) {
        let start = out.len();
        out.extend(word.chars().filter(|c| *c >= ' '));
        if out.len() > start {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// Makes two or more dots in a row a separate word.
fn mark_runs_of_dots(text: &str) -> String {
    if !text.contains("..") {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '.' || characters.peek() != Some(&'.') {
            out.push(character);
            continue;
        }
        out.extend([' ', DOT_OF_MANY]);
        while characters.next_if_eq(&'.').is_some() {
            out.push(DOT_OF_MANY);
        }
        if characters.peek().is_some() {
            out.push(' ');
        }
    }
    out
}

/// Replaces characters with a meaning in Moses' file formats by entities, and restores the runs of
/// dots.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '|' => out.push_str("&#124;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            '[' => out.push_str("&#91;"),
            ']' => out.push_str("&#93;"),
            DOT_OF_MANY => out.push('.'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn english(line: &str) -> String {
        Tokenizer::new(Language::English, false).line(line)
    }

    #[test]
    fn contractions_split_to_the_right_in_english_and_to_the_left_in_french() {
        assert_eq!(
            english("it's the dogs' 1990's 'a' b"),
            "it &apos;s the dogs &apos; 1990 &apos;s &apos; a &apos; b"
        );
        let french = Tokenizer::new(Language::French, false);
        assert_eq!(french.line("l'homme d'aujourd'hui"), "l&apos; homme d&apos; aujourd&apos; hui");
        let german = Tokenizer::new(Language::German, false);
        assert_eq!(german.line("Peter's 'Haus'"), "Peter &apos; s &apos; Haus &apos;");
    }

    #[test]
    fn an_apostrophe_at_the_end_of_the_line_is_split_only_after_a_full_stop() {
        assert_eq!(english("the dogs'"), "the dogs&apos;");
        assert_eq!(english("the dogs.'"), "the dogs . &apos; ");
    }

    #[test]
    fn full_stops_stay_with_abbreviations_numbers_and_before_lower_case() {
        assert_eq!(
            english("Mr. Smith and Dr. Who. No. 5 is No. Way. e.g. This."),
            "Mr. Smith and Dr. Who . No. 5 is No . Way. e.g. This ."
        );
        assert_eq!(english("a. b Cat."), "a. b Cat .");
        assert_eq!(english("the U.S. The U.S."), "the U.S. The U.S.");
        assert_eq!(Tokenizer::new(Language::German, false).line("Am 3. Mai usw. Am"), "Am 3. Mai usw. Am");
    }

    #[test]
    fn commas_stand_apart_except_between_digits() {
        assert_eq!(english("5,300 a,b 5,a a,5 5,"), "5,300 a , b 5 , a a , 5 5 ,");
        assert_eq!(english("A,B,C,D"), "A , B , C , D");
    }

    #[test]
    fn runs_of_dots_are_one_token() {
        assert_eq!(english("well...yes .. no..."), "well ... yes .. no ...");
        assert_eq!(english("a."), "a .");
        assert_eq!(english("."), ".");
    }

    #[test]
    fn hyphens_are_split_only_when_aggressive() {
        assert_eq!(english("t-shirt -a b- a-b-c"), "t-shirt -a b- a-b-c");
        assert_eq!(
            Tokenizer::new(Language::English, true).line("t-shirt -a b- a-b-c"),
            "t @-@ shirt -a b- a @-@ b @-@ c"
        );
    }

    #[test]
    fn signs_stand_apart_and_are_escaped() {
        assert_eq!(english("(a)&[b]|<c>\"#"), "( a ) &amp; &#91; b &#93; &#124; &lt; c &gt; &quot; #");
        assert_eq!(english("a½b 2²"), "a ½ b 2 ²");
    }

    #[test]
    fn white_space_is_single_and_control_characters_go() {
        assert_eq!(english("  a \t b\u{a0}c\u{3}d \u{7} e "), "a b cd e");
        assert_eq!(english("   "), "   ");
        assert_eq!(english(""), "");
    }
}
