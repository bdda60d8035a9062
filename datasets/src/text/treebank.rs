//! Words of a sentence as NLTK's `word_tokenize` cuts them, version 3.4.5: its Treebank tokenizer
//! with its additions for quotes. A text is not cut into sentences before.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// A pattern with what replaces it.
type Rule = (Regex, &'static str);

/// The rules in their order. Python's negative lookahead for an apostrophe before a single letter
/// is a class without the letters of contractions.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules = [
        // Opening quotes.
        ("([«“‘„]|[`]+)", " $1 "),
        ("^\"", "``"),
        ("(``)", " $1 "),
        (r#"([ (\[{<])("|'{2})"#, "$1 `` "),
        (r"(')([\w--[mtsdMTSDſ]])\b", "$1 $2"),
        // Punctuation.
        (r#"([^.])(\.)([\])}>"'»”’ ]*)\s*$"#, "$1 $2 $3 "),
        (r"([:,])([^\d])", " $1 $2"),
        ("([:,])$", " $1 "),
        (r"\.\.\.", " ... "),
        ("[;@#$%&]", " $0 "),
        (r#"([^.])(\.)([\])}>"']*)\s*$"#, "$1 $2$3 "),
        ("[?!]", " $0 "),
        ("([^'])' ", "$1 ' "),
        (r"[\]\[(){}<>]", " $0 "),
        ("--", " -- "),
    ];
    rules.map(|(pattern, by)| rule(pattern, by)).into()
});

/// The rules behind those of [`RULES`], for a text with a space on both sides.
static ENDINGS: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules = [
        // Closing quotes, and contractions.
        ("([»”’])", " $1 "),
        ("\"", " '' "),
        (r"(\S)('')", "$1 $2 "),
        ("([^' ])('[sS]|'[mM]|'[dD]|') ", "$1 $2 "),
        ("([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", "$1 $2 "),
        (r"(?i)\b(can)(not)\b", " $1 $2 "),
        (r"(?i)\b(d)('ye)\b", " $1 $2 "),
        (r"(?i)\b(gim)(me)\b", " $1 $2 "),
        (r"(?i)\b(gon)(na)\b", " $1 $2 "),
        (r"(?i)\b(got)(ta)\b", " $1 $2 "),
        (r"(?i)\b(lem)(me)\b", " $1 $2 "),
        (r"(?i)\b(mor)('n)\b", " $1 $2 "),
        (r"(?i)\b(wan)(na)\s", " $1 $2 "),
        (r"(?i) ('t)(is)\b", " $1 $2 "),
        (r"(?i) ('t)(was)\b", " $1 $2 "),
    ];
    rules.map(|(pattern, by)| rule(pattern, by)).into()
});

/// Words without marks that a rule cuts.
const CUT: [&str; 6] = ["cannot", "gimme", "gonna", "gotta", "lemme", "wanna"];

/// Whether a text is one word that no rule cuts.
fn is_word(text: &str) -> bool {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain && !CUT.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn rule(pattern: &str, by: &'static str) -> Rule {
    (Regex::new(pattern).expect("a pattern of this file"), by)
}

fn changed(text: String, rules: &[Rule]) -> String {
    rules.iter().fold(text, |text, (pattern, by)| match pattern.replace_all(&text, *by) {
        Cow::Borrowed(_) => text,
        Cow::Owned(changed) => changed,
    })
}

/// The words of a text.
pub fn words(text: &str) -> Vec<String> {
    if is_word(text) {
        return vec![text.to_owned()];
    }
    let text = changed(text.to_owned(), &RULES);
    let text = changed(format!(" {text} "), &ENDINGS);
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_word_is_kept_and_six_are_cut() {
        for (text, due) in [("film", "film"), ("GimMe", "Gim Me"), ("wanna", "wan na"), ("can", "can")] {
            assert_eq!(words(text).join(" "), due);
        }
        for word in CUT {
            assert_eq!(words(word).len(), 2, "{word}");
        }
        assert!(!is_word("") && !is_word("it's") && !is_word("a b") && is_word("1984"));
    }

    /// Results of NLTK 3.4.5, written by `tests/reference/review_words.py`.
    #[test]
    fn words_are_those_of_nltk() {
        let cases: Vec<(String, Vec<String>)> = serde_json::from_str::<serde_json::Value>(include_str!(
            "../../../tests/fixtures/review_words.json"
        ))
        .map(|value| serde_json::from_value(value["treebank"].clone()).unwrap())
        .unwrap();
        assert!(cases.len() > 30, "{}", cases.len());
        for (text, due) in cases {
            assert_eq!(words(&text), due, "{text:?}");
        }
    }
}
