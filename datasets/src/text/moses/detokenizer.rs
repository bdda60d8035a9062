//! Detokenisation as in Moses' `detokenizer.perl`, for the languages that the tokenizer supports.
//!
//! It is not an exact inverse of the tokenizer. The tokenizer puts spaces on both sides of a
//! quotation mark; the detokenizer counts quotation marks to decide which of the two to remove.

use std::collections::HashMap;

use regex::Regex;

use super::Language;

/// Escapes of the tokenizer, including older ones, in the script's order. `&amp;` is the last, so
/// `&amp;lt;` gives `&lt;`.
const ESCAPES: [(&str, &str); 11] = [
    ("&bar;", "|"),
    ("&#124;", "|"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&bra;", "["),
    ("&ket;", "]"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&amp;", "&"),
];

/// The detokenizer of one language.
#[derive(Debug)]
pub struct Detokenizer {
    language: Language,
    /// Currency signs and opening brackets; the next word follows without a space.
    opening: Regex,
    contraction: Regex,
    letter_or_digit_last: Regex,
    elision: Regex,
    letter_first: Regex,
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

impl Detokenizer {
    /// The detokenizer of `language`.
    pub fn new(language: Language) -> Self {
        Self {
            language,
            opening: compiled(r"^[\p{Sc}(\[{¿¡]+$"),
            contraction: compiled(r"^'\p{Alphabetic}"),
            letter_or_digit_last: compiled(r"[\p{Alphabetic}\p{Nd}]$"),
            elision: compiled(r"\p{Alphabetic}'$"),
            letter_first: compiled(r"^\p{Alphabetic}"),
        }
    }

    /// Converts one line of tokens, without its line feed, to text.
    pub fn line(&self, line: &str) -> String {
        if line.len() > 2 && line.starts_with('<') && line.ends_with('>') {
            return line.to_owned();
        }
        let mut text = format!(" {line} ").replace(" @-@ ", "-");
        for (escape, character) in ESCAPES {
            if text.contains(escape) {
                text = text.replace(escape, character);
            }
        }
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let mut out = String::with_capacity(text.len());
        let mut space = " ";
        // Number of quotation marks of each spelling so far.
        let mut quotes: HashMap<&str, u32> = HashMap::new();
        for (at, &word) in words.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| words[at]);
            let next = words.get(at + 1).copied();
            if word.starts_with(is_cjk) {
                if !before.is_some_and(|before| before.ends_with(is_cjk)) {
                    out.push_str(space);
                }
                out.push_str(word);
                space = " ";
            } else if self.opening.is_match(word) {
                out.push_str(space);
                out.push_str(word);
                space = "";
            } else if word.chars().all(|c| ",.?!:;\\%}])".contains(c)) {
                // A plain space, although the script's comment calls it a no-break space.
                if self.language == Language::French && matches!(word, "?" | "!" | ":" | ";" | "\\" | "%") {
                    out.push(' ');
                }
                out.push_str(word);
                space = " ";
            } else if self.language == Language::English
                && self.contraction.is_match(word)
                && before.is_some_and(|before| self.letter_or_digit_last.is_match(before))
            {
                out.push_str(word);
                space = " ";
            } else if self.language == Language::French
                && self.elision.is_match(word)
                && next.is_some_and(|next| self.letter_first.is_match(next))
            {
                out.push_str(space);
                out.push_str(word);
                space = "";
            } else if word.chars().all(|c| "'\"„“`".contains(c)) {
                let spelling = if word.chars().all(|c| "„“".contains(c)) { "\"" } else { word };
                let seen = quotes.entry(spelling).or_default();
                let possessive = self.language == Language::English
                    && word == "'"
                    && before.is_some_and(|before| before.ends_with('s'));
                if *seen % 2 == 1 {
                    out.push_str(word);
                    space = " ";
                    *seen += 1;
                } else if possessive {
                    out.push_str(word);
                    space = " ";
                } else {
                    out.push_str(space);
                    out.push_str(word);
                    space = "";
                    *seen += 1;
                }
            } else {
                out.push_str(space);
                out.push_str(word);
                space = " ";
            }
        }
        out.strip_prefix(' ').map(str::to_owned).unwrap_or(out)
    }
}

/// Chinese, Japanese and Korean characters, which are written without spaces between them.
fn is_cjk(c: char) -> bool {
    matches!(
        u32::from(c),
        0x1100..=0x11FF
            | 0x2E80..=0xA4CF
            | 0xA840..=0xA87F
            | 0xAC00..=0xD7AF
            | 0xF900..=0xFAFF
            | 0xFE30..=0xFE4F
            | 0xFF65..=0xFFDC
            | 0x20000..=0x2FFFF
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The expected lines are from sacremoses 0.2.0, a port of the script.
    #[test]
    fn lines_come_out_as_the_script_writes_them() {
        for (language, tokens, expected) in [
            (Language::German, "Das ist ein Test .", "Das ist ein Test."),
            (
                Language::German,
                "&quot; Das &quot; , sagte er , &quot; ist wahr . &quot;",
                "\"Das\", sagte er, \"ist wahr.\"",
            ),
            (Language::German, "die EU @-@ weite Regelung", "die EU-weite Regelung"),
            (Language::German, "Er hat 10 % ( rund 5 € ) bezahlt !", "Er hat 10% (rund 5 €) bezahlt!"),
            (Language::German, "&apos; so &apos; und &quot; so &quot;", "'so' und \"so\""),
            (Language::German, "A &amp; B &lt; C &gt; D &#124; E &#91; F &#93;", "A & B < C > D | E [F]"),
            (Language::German, "&amp;lt;", "&lt;"),
            (Language::German, "„ Ja “ , sagte sie .", "„Ja“, sagte sie."),
            (Language::German, "Was ? ! Nein ; doch : ja", "Was?! Nein; doch: ja"),
            (Language::German, "$ 5 und £ 3 , ¿ que ?", "$5 und £3, ¿que?"),
            (Language::German, "3 @-@ 4 @-@ 5", "3-4-5"),
            (Language::German, "z. B. das 1. Mal", "z. B. das 1. Mal"),
            (Language::German, "中文 字符 und mehr", "中文字符 und mehr"),
            (Language::German, "", ""),
            (Language::German, "das Land &apos;s Beste", "das Land 's Beste"),
            (Language::German, "er sagte : &quot; Gut &quot; .", "er sagte: \"Gut\"."),
            (Language::German, "( [ { a } ] )", "([{a}])"),
            (Language::German, "wie &apos;s geht", "wie 's geht"),
            (Language::German, "ein ` Zitat `", "ein `Zitat`"),
            (Language::German, "a @-@", "a-"),
            (Language::German, "@-@ b", "-b"),
            (Language::German, "viele   Leerzeichen hier", "viele Leerzeichen hier"),
            (Language::German, "... und dann ...", "... und dann..."),
            (Language::German, "&quot;", "\""),
            (Language::English, "I do n&apos;t know , he &apos;s here .", "I do n't know, he's here."),
            (Language::English, "the Jones &apos; house", "the Jones' house"),
            (Language::English, "&quot; Well @-@ known , &quot; she said .", "\"Well-known,\" she said."),
            (Language::English, "rock &apos;n &apos; roll", "rock'n 'roll"),
            (Language::English, "it &apos;s 5 % off !", "it's 5% off!"),
            (
                Language::English,
                "the boys &apos; toys and &apos; quotes &apos;",
                "the boys' toys and 'quotes'",
            ),
            (Language::French, "l&apos; homme et l&apos; eau", "l'homme et l'eau"),
            (Language::French, "il a dit : &quot; non &quot; .", "il a dit : \"non\"."),
            (Language::French, "d&apos; 5", "d' 5"),
        ] {
            assert_eq!(Detokenizer::new(language).line(tokens), expected, "{language:?} {tokens:?}");
        }
    }

    /// Unlike the port, the script does not join a contraction that follows neither a letter nor a
    /// digit.
    #[test]
    fn an_apostrophe_is_joined_to_what_can_be_contracted() {
        let english = Detokenizer::new(Language::English);
        assert_eq!(english.line("he &apos;s ( &apos;tis )"), "he's ('tis)");
        assert_eq!(english.line("- &apos;tis"), "- 'tis");
    }

    #[test]
    fn a_line_that_is_one_tag_is_left_alone() {
        let german = Detokenizer::new(Language::German);
        assert_eq!(german.line("<a &amp; b .>"), "<a &amp; b .>");
        assert_eq!(german.line("<a> &amp; b ."), "<a> & b.");
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic_and_no_word_is_lost(line in "\\PC{0,40}") {
            for language in [Language::English, Language::German, Language::French] {
                let kept = |text: &str| text.chars().filter(|c| *c != ' ').count();
                let out = Detokenizer::new(language).line(&line);
                let tag = line.starts_with('<') && line.ends_with('>');
                prop_assert!(tag || !out.contains("  ") && !out.starts_with(' '), "{out:?}");
                if !line.contains('&') && !line.contains("@-@") {
                    prop_assert_eq!(kept(&out), kept(&line));
                }
            }
        }
    }
}
