//! Makes untrusted text safe to print to a terminal.

use std::borrow::Cow;

/// Number of characters that [`shown`] keeps. Of a longer text, it keeps both ends.
const MOST_SHOWN: usize = 200;

/// Untrusted text, such as a name, for one line of a message. Control characters, including line
/// feeds, are escaped, and the middle of a long text is left out.
pub fn shown(text: &str) -> String {
    // Look at the first characters only, because the text may have millions of them.
    if text.chars().nth(MOST_SHOWN).is_none() {
        return one_line(text).into_owned();
    }
    let half = MOST_SHOWN / 2;
    let head = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().nth_back(half - 1).map_or(0, |(at, _)| at);
    let left_out = tail - head;
    format!("{}… ({left_out} bytes left out) …{}", one_line(&text[..head]), one_line(&text[tail..]))
}

/// Untrusted text on one line. Control characters, including line feeds, are escaped.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, false)
}

/// Untrusted text of several lines, without characters that control a terminal. Escapes all control
/// characters except line feed, tab and a carriage return before a line feed, and escapes
/// characters that change the direction of text.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, true)
}

fn escape(text: &str, lines: bool) -> Cow<'_, str> {
    let obeyed = |at: usize, c: char| match c {
        '\n' | '\t' => !lines,
        '\r' => !lines || !text[at + 1..].starts_with('\n'),
        c => c.is_control() || turns_text(c),
    };
    if !text.char_indices().any(|(at, c)| obeyed(at, c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match obeyed(at, c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether the character is one of Unicode's embeddings, overrides and isolates, which display text
/// in a different order.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            shown("a\u{1b}[2J\u{9b}1m\r\nb\tc\u{7f}\u{202e}"),
            r"a\u{1b}[2J\u{9b}1m\r\nb\tc\u{7f}\u{202e}"
        );
        assert_eq!(shown("Größe 大 \\ \"x\""), "Größe 大 \\ \"x\"");
    }

    #[test]
    fn a_text_of_lines_keeps_them() {
        assert_eq!(escaped("a\tb\nc\r\nd\re\u{1b}]0;x\u{7}"), "a\tb\nc\r\nd\\re\\u{1b}]0;x\\u{7}");
        assert!(matches!(escaped("a\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let long = format!("begin{}end", "ä\u{1b}".repeat(5_000_000));
        let text = shown(&long);
        assert!(text.starts_with("begin") && text.ends_with("end"), "{text}");
        assert!(text.chars().count() < 1_000 && text.contains("bytes left out"), "{text}");
        let whole = "x".repeat(MOST_SHOWN);
        assert_eq!(shown(&whole), whole);
    }
}
