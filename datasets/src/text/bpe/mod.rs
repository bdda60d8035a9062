//! Byte pair encoding as defined by subword-nmt (Sennrich, Haddow and Birch, 2016; codes version
//! 0.2).
//!
//! A word is the sequence of its characters, with `</w>` appended to the last one. Learning
//! repeatedly merges the most frequent pair of neighbours. Among equally frequent pairs it takes
//! the greatest one as (left, right) strings. Encoding repeatedly applies the earliest learnt merge
//! that occurs in the word. In encoded text, every part of a word except the last ends in `@@`.

mod apply;
mod learn;

use std::fmt::Write as _;
use std::path::Path;

pub use apply::{Encoder, undo};
pub use learn::{learn, learn_from_counts, words_of};

use zoo_recipes::atomic::write_whole;

use super::TextError;

/// Marks the end of a word inside the codes.
pub const END_OF_WORD: &str = "</w>";
/// Appended to every part of a word except the last.
pub const SEPARATOR: &str = "@@";

const HEADER: &str = "#version: 0.2";

/// Merge operations in the order in which they were learnt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Codes {
    /// (left, right) pairs; the first is the most frequent.
    pub merges: Vec<(String, String)>,
}

impl Codes {
    /// Parses codes of version 0.2. `file` is used in messages only.
    pub fn parse(text: &str, file: &Path) -> Result<Self, TextError> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, first)) if first.trim_end() == HEADER => {}
            first => {
                return Err(TextError::malformed(
                    file,
                    1,
                    format!("expected `{HEADER}`, found `{}`", first.map_or("", |(_, l)| l)),
                    "give codes learnt by subword-nmt 0.2 or later; version 0.1 marks ends of words differently",
                ));
            }
        }
        let mut merges = Vec::new();
        for (index, line) in lines {
            let mut parts = line.trim_end_matches(['\r', ' ']).split(' ');
            match (parts.next(), parts.next(), parts.next()) {
                (Some(left), Some(right), None) if !left.is_empty() && !right.is_empty() => {
                    merges.push((left.to_string(), right.to_string()));
                }
                _ => {
                    return Err(TextError::malformed(
                        file,
                        index + 1,
                        format!("a merge is two symbols with one space between them, found `{line}`"),
                        "the file is damaged; learn the codes again",
                    ));
                }
            }
        }
        Ok(Self { merges })
    }

    /// Reads a codes file.
    pub fn load(file: &Path) -> Result<Self, TextError> {
        let bytes = zoo_recipes::untrusted::read(file).map_err(|e| TextError::io(file, e))?;
        Self::parse(&crate::text::decode_utf8(bytes, file)?, file)
    }

    /// The codes in subword-nmt's format, byte for byte.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (left, right) in &self.merges {
            writeln!(text, "{left} {right}").expect("writing to a string cannot fail");
        }
        text
    }

    /// Writes a codes file, replacing an existing one.
    pub fn save(&self, file: &Path) -> Result<(), TextError> {
        write_whole(file, self.to_text().as_bytes()).map_err(|e| TextError::io(file, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_survive_the_way_through_text() {
        let text = "#version: 0.2\ni n\ne n</w>\n";
        let codes = Codes::parse(text, Path::new("codes")).unwrap();
        assert_eq!(codes.merges, [("i".into(), "n".into()), ("e".into(), "n</w>".into())]);
        assert_eq!(codes.to_text(), text);
    }

    #[test]
    fn damaged_codes_are_named_with_file_and_line() {
        let message = |text| Codes::parse(text, Path::new("c.codes")).unwrap_err().to_string();
        assert!(message("#version: 0.2\ni n\nbroken\n").starts_with("c.codes:3: "), "{}", message(""));
        assert!(message("#version: 0.2\na b c\n").starts_with("c.codes:2: "));
        assert!(message("#version: 0.2\n\n").starts_with("c.codes:2: "));
        assert!(message("i n\n").starts_with("c.codes:1: "));
        assert!(message("").starts_with("c.codes:1: "));
    }

    #[test]
    fn codes_survive_the_way_through_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("codes");
        let codes = Codes { merges: vec![("ä".into(), "ß</w>".into())] };
        codes.save(&file).unwrap();
        assert_eq!(Codes::load(&file).unwrap(), codes);
        assert!(Codes::load(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
