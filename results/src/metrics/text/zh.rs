//! The `zh` tokenizer: single Chinese characters become tokens; everything else follows the
//! punctuation rules of mteval-v13a.

use std::sync::LazyLock;

use regex::Regex;

/// Ranges, bounds included, that sacreBLEU 2.6 treats as Chinese characters. Two of them were meant
/// to be above U+FFFF but are written with four digits. As a result, U+2001 to U+2A6D (punctuation,
/// arrows, mathematics) count and nothing above U+FFFF does. This is kept, because the signature
/// `tok:zh` stands for it.
const RANGES: [(char, char); 14] = [
    ('\u{2001}', '\u{2a6d}'),
    ('\u{2e80}', '\u{2fdf}'),
    ('\u{2ff0}', '\u{303f}'),
    ('\u{3100}', '\u{312f}'),
    ('\u{31a0}', '\u{31bf}'),
    ('\u{31c0}', '\u{31ef}'),
    ('\u{3200}', '\u{4db5}'),
    ('\u{4e00}', '\u{9fbb}'),
    ('\u{f900}', '\u{fa2d}'),
    ('\u{fa30}', '\u{fa6a}'),
    ('\u{fa70}', '\u{fad9}'),
    ('\u{fe10}', '\u{fe1f}'),
    ('\u{fe30}', '\u{fe4f}'),
    ('\u{ff00}', '\u{ffef}'),
];

/// The four rules, in order: separate ASCII symbols; separate full stop and comma unless after a
/// digit; the same unless before a digit; separate a dash after a digit.
static RULES: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
    let rule = |pattern: &str| Regex::new(pattern).expect("a constant pattern");
    [
        (rule(r"[ -&(-+/:-@\[-`{-~]"), " $0 "),
        (rule(r"([^0-9])([.,])"), "$1 $2 "),
        (rule(r"([.,])([^0-9])"), " $1 $2"),
        (rule(r"([0-9])-"), "$1 - "),
    ]
});

/// Tokens separated by single spaces.
pub(super) fn tokenise(line: &str) -> String {
    let mut text = String::with_capacity(line.len() * 2);
    for c in line.trim().chars() {
        if RANGES.iter().any(|(first, last)| (*first..=*last).contains(&c)) {
            text.extend([' ', c, ' ']);
        } else {
            text.push(c);
        }
    }
    for (pattern, replacement) in RULES.iter() {
        if let std::borrow::Cow::Owned(changed) = pattern.replace_all(&text, *replacement) {
            text = changed;
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::tokenise;

    #[test]
    fn characters_and_western_words() {
        assert_eq!(tokenise("我爱NLP, 3.14-5!"), "我 爱 NLP , 3.14 - 5 !");
        // Without the spaces that 13a adds around a line, a full stop at the edge of a line has a
        // neighbour on one side only.
        assert_eq!(tokenise("a."), "a .");
        assert_eq!(tokenise(".a"), ". a");
        assert_eq!(tokenise("a – b"), "a – b");
        assert_eq!(tokenise("1–2"), "1 – 2");
        assert_eq!(tokenise("a\u{20000}b"), "a\u{20000}b");
    }
}
