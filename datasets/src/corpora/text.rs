//! Lines of text files: plain, gzipped, or in the SGML of the WMT test sets.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::definition::TextFormat;
use super::error::CorpusError;
use crate::text::open_text;

/// A file with lines of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of its lines.
    pub format: TextFormat,
}

/// The lines of several files in order, without their line feeds. Nothing else is changed: a
/// carriage return or a Unicode line separator is a character of its line.
pub struct Lines {
    files: VecDeque<TextFile>,
    open: Option<Open>,
}

struct Open {
    file: TextFile,
    reader: Box<dyn BufRead + Send>,
    line: u64,
    /// A segment of [`TextFormat::MosesSgm`] that has started but not ended.
    begun: String,
}

/// Reads `files` in order. Each file is opened when it is reached.
pub fn read_lines(files: &[TextFile]) -> Lines {
    Lines { files: files.iter().cloned().collect(), open: None }
}

impl Lines {
    fn advance(&mut self) -> Result<Option<String>, CorpusError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(file) = self.files.pop_front() else { return Ok(None) };
                let reader = open_text(&file.path).map_err(|e| text_error(&file.path, 0, &e))?;
                self.open = Some(Open { file, reader, line: 0, begun: String::new() });
                continue;
            };
            let mut bytes = Vec::new();
            open.line += 1;
            let read = open.reader.read_until(b'\n', &mut bytes);
            let n = read.map_err(|e| text_error(&open.file.path, open.line, &e))?;
            if n == 0 {
                if !open.begun.is_empty() {
                    return Err(endless_segment(open));
                }
                self.open = None;
                continue;
            }
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            let line = String::from_utf8(bytes).map_err(|e| CorpusError::Text {
                path: open.file.path.clone(),
                line: open.line,
                reason: format!("it is not UTF-8 from byte {} on", e.utf8_error().valid_up_to() + 1),
            })?;
            match open.file.format {
                TextFormat::Lines => return Ok(Some(line)),
                TextFormat::Sgm => {
                    if let Some(segment) = segment_of(&line) {
                        return Ok(Some(segment));
                    }
                }
                TextFormat::MosesSgm => {
                    open.begun.push_str(&line);
                    match moses_segment(&open.begun) {
                        Segment::Whole(segment) => {
                            open.begun.clear();
                            return Ok(Some(segment));
                        }
                        Segment::Begun if open.begun.len() > LONGEST_SEGMENT => {
                            return Err(endless_segment(open));
                        }
                        Segment::Begun => {}
                        Segment::None => open.begun.clear(),
                    }
                }
            }
        }
    }
}

impl Iterator for Lines {
    type Item = Result<String, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if let Some(Err(_)) = next {
            // Lines after an error are not reliable.
            self.files.clear();
            self.open = None;
        }
        next
    }
}

fn text_error(path: &Path, line: u64, error: &io::Error) -> CorpusError {
    CorpusError::Text { path: path.into(), line, reason: error.to_string() }
}

/// The text of a line `<seg …>text</seg>`; `None` for any other line.
fn segment_of(line: &str) -> Option<String> {
    if !line.starts_with("<seg ") {
        return None;
    }
    // The text is from the first `>` to the last `</seg>`. Text after `</seg>` is kept, and a line
    // without both tags is kept whole.
    let inner = line.find('>').and_then(|start| {
        let end = line.rfind("</seg>").filter(|end| *end > start)?;
        Some(format!("{}{}", &line[start + 1..end], &line[end + 6..]))
    });
    let text = inner.as_deref().unwrap_or(line);
    let words: Vec<&str> = text.split(is_space).filter(|w| !w.is_empty()).collect();
    Some(words.join(" "))
}

fn endless_segment(open: &Open) -> CorpusError {
    CorpusError::Text { path: open.file.path.clone(), line: open.line, reason: "a <seg> does not end".into() }
}

/// Maximum number of bytes of a segment, more than any sentence has. A segment is searched again
/// with each of its lines.
const LONGEST_SEGMENT: usize = 1 << 16;

/// Part of a segment in a line and the lines before it.
enum Segment {
    None,
    Begun,
    Whole(String),
}

/// Finds a segment as Moses does: the text between the first `<seg …>` and the last `</seg>`, in
/// any case.
fn moses_segment(text: &str) -> Segment {
    let lower = text.to_ascii_lowercase();
    // `<seg` and at least one more character before `>`.
    let tag = lower.find("<seg").and_then(|at| Some((at, at + 4 + lower[at + 4..].find('>')?)));
    let Some(end_of_tag) = tag.filter(|(at, end)| *end > at + 4).map(|(_, end)| end + 1) else {
        return Segment::None;
    };
    match lower[end_of_tag..].rfind("</seg>") {
        Some(end) => {
            let inner = &text[end_of_tag..end_of_tag + end];
            let words: Vec<&str> = inner.split(is_ascii_space).filter(|w| !w.is_empty()).collect();
            Segment::Whole(words.join(" "))
        }
        None => Segment::Begun,
    }
}

/// Whether Perl's `\s` matches this character in a byte string.
fn is_ascii_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{b}' | '\u{c}')
}

/// White space as in Python's `\s` and `str.strip`: that of Unicode, and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn lines_of(bytes: &[u8], format: TextFormat) -> Result<Vec<String>, CorpusError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, bytes).unwrap();
        read_lines(&[TextFile { path, format }]).collect()
    }

    #[test]
    fn lines_end_at_line_feeds_only() {
        let text = "a\u{2028}b\r\n\n c \nlast";
        assert_eq!(
            lines_of(text.as_bytes(), TextFormat::Lines).unwrap(),
            ["a\u{2028}b\r", "", " c ", "last"]
        );
        assert!(lines_of(b"", TextFormat::Lines).unwrap().is_empty());
        assert_eq!(lines_of(b"a", TextFormat::Lines).unwrap(), ["a"]);
    }

    #[test]
    fn gzip_is_recognised_and_files_follow_one_another() {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all("eins\nzwei\n".as_bytes()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| TextFile { path: dir.path().join(name), format: TextFormat::Lines };
        std::fs::write(file("a").path, gz.finish().unwrap()).unwrap();
        std::fs::write(file("b").path, "drei").unwrap();
        let lines: Vec<_> = read_lines(&[file("a"), file("b")]).map(Result::unwrap).collect();
        assert_eq!(lines, ["eins", "zwei", "drei"]);
    }

    #[test]
    fn bad_bytes_are_named_with_their_line() {
        let error = lines_of(b"good\nb\xffd\nmore", TextFormat::Lines).unwrap_err().to_string();
        assert!(error.contains("line 2: it is not UTF-8 from byte 2 on"), "{error}");
    }

    #[test]
    fn segments_are_read_as_moses_reads_them() {
        let sgm = "<doc>\n  <SEG id=\"1\"> A  &amp; B\u{a0} c </seg> junk\n<seg id=\"2\">\none\n\ttwo</seg>\n<hl>x</hl>\n\
                   <seg id=\"3\"></seg>\n";
        let lines = lines_of(sgm.as_bytes(), TextFormat::MosesSgm).unwrap();
        // Like the script, this joins lines without a space between them.
        assert_eq!(lines, ["A &amp; B\u{a0} c", "one two", ""]);
        let endless = [b"<seg id=\"1\">".to_vec(), b"word\n".repeat(20_000)].concat();
        let error = lines_of(&endless, TextFormat::MosesSgm).unwrap_err().to_string();
        assert!(error.contains("a <seg> does not end"), "{error}");
        let error = lines_of(b"<seg id=\"1\">a", TextFormat::MosesSgm).unwrap_err().to_string();
        assert!(error.contains("a <seg> does not end"), "{error}");
    }

    #[test]
    fn segments_are_read_as_sacrebleu_reads_them() {
        let sgm = "<srcset setid=\"x\" srclang=\"any\">\n<doc docid=\"1\">\n<p>\n<seg id=\"1\"> A  &amp; B\u{a0}c </seg>\n\
                   <seg id=\"2\">x > y</seg>\r\n <seg id=\"3\">indented: not taken</seg>\n<seg id=\"4\"></seg>\n</doc>\n";
        let lines = lines_of(sgm.as_bytes(), TextFormat::Sgm).unwrap();
        assert_eq!(lines, ["A &amp; B c", "x > y", ""]);
    }
}
