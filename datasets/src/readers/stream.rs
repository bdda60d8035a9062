//! Reads pairs of lines one chunk at a time; only the requested pairs are in memory.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::SplitText;
use super::error::ReadError;
use crate::corpora::{CorpusError, Lines};
use crate::text::{TextError, open_text};

/// What to do with a pair that has an empty or blank side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyLines {
    /// Skip the pair and count it; for training.
    Skip,
    /// Keep the pair; for evaluation, where every line counts.
    Keep,
}

/// Reads the pairs of a split in order.
pub struct PairReader {
    source: Side,
    target: Side,
    empty: EmptyLines,
    /// Number of pairs skipped because one side was empty.
    skipped: u64,
    /// Name of the split, and its expected number of lines.
    due: Option<(String, u64)>,
    /// Maximum number of pairs to read.
    most: Option<u64>,
    done: bool,
}

struct Side {
    lines: LineSource,
    /// Path for messages: the file in which the lines end.
    file: PathBuf,
    language: String,
    read: u64,
}

/// Source of the lines of one side.
pub(crate) enum LineSource {
    /// The files of a corpus.
    Corpus(Lines),
    /// A user's file.
    Own(OwnLines),
    /// Lines that are already in memory.
    Memory(std::vec::IntoIter<String>),
}

impl Side {
    fn next(&mut self) -> Result<Option<String>, ReadError> {
        let line = match &mut self.lines {
            LineSource::Corpus(lines) => lines.next().transpose()?,
            LineSource::Own(lines) => lines.next_line()?,
            LineSource::Memory(lines) => lines.next(),
        };
        self.read += u64::from(line.is_some());
        Ok(line)
    }
}

impl PairReader {
    /// Reads both sides. Each side is (source of its lines, its last file, its language).
    pub(crate) fn new(
        source: (LineSource, PathBuf, String),
        target: (LineSource, PathBuf, String),
        empty: EmptyLines,
        due: Option<(String, u64)>,
    ) -> Self {
        let side = |(lines, file, language)| Side { lines, file, language, read: 0 };
        Self { source: side(source), target: side(target), empty, skipped: 0, due, most: None, done: false }
    }

    /// Reads two of the user's files.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub fn open(source: &Path, target: &Path, empty: EmptyLines) -> Result<Self, ReadError> {
        let side = |file: &Path| -> Result<_, ReadError> {
            Ok((LineSource::Own(OwnLines::open(file)?), file.to_path_buf(), String::new()))
        };
        Ok(Self::new(side(source)?, side(target)?, empty, None))
    }

    /// Limits the reader to the first `most` pairs, including skipped ones. `None`: all pairs.
    pub(crate) fn first(self, most: Option<usize>) -> Self {
        Self { most: most.map(|most| most as u64), ..self }
    }

    /// A reader of pairs that are already in memory. It skips no pairs.
    pub fn of(text: SplitText) -> Self {
        let side = |lines: Vec<String>| {
            (LineSource::Memory(lines.into_iter()), PathBuf::from("the given text"), String::new())
        };
        let mut reader = Self::new(side(text.source), side(text.target), EmptyLines::Keep, None);
        reader.skipped = text.skipped_empty;
        reader
    }

    /// Reads at most `pairs` more pairs. Returns `None` after the last.
    ///
    /// # Errors
    /// A line cannot be read, a side ends before the other, a side is empty, or a side does not
    /// have the expected number of lines.
    pub fn next_chunk(&mut self, pairs: usize) -> Result<Option<SplitText>, ReadError> {
        let mut chunk = SplitText::default();
        let most = self.most.unwrap_or(u64::MAX);
        while !self.done && self.source.read < most && chunk.len() < pairs {
            match (self.source.next()?, self.target.next()?) {
                (Some(source), Some(target)) => {
                    let empty = source.trim().is_empty() || target.trim().is_empty();
                    if self.empty == EmptyLines::Skip && empty {
                        self.skipped += 1;
                        chunk.skipped_empty += 1;
                    } else {
                        chunk.source.push(source);
                        chunk.target.push(target);
                    }
                }
                (None, None) => {
                    self.done = true;
                    self.check_end()?;
                }
                (Some(_), None) => return Err(uneven(&mut self.source, &self.target)?),
                (None, Some(_)) => return Err(uneven(&mut self.target, &self.source)?),
            }
        }
        Ok((!chunk.is_empty() || chunk.skipped_empty > 0).then_some(chunk))
    }

    /// Number of pairs skipped so far because one side was empty.
    pub fn skipped_empty(&self) -> u64 {
        self.skipped
    }

    /// Reads all pairs.
    ///
    /// # Errors
    /// As [`Self::next_chunk`].
    pub fn read_all(mut self) -> Result<SplitText, ReadError> {
        let mut all = SplitText::default();
        while let Some(chunk) = self.next_chunk(1 << 16)? {
            all.source.extend(chunk.source);
            all.target.extend(chunk.target);
        }
        all.skipped_empty = self.skipped;
        Ok(all)
    }

    fn check_end(&self) -> Result<(), ReadError> {
        if let Some((split, expected)) = &self.due
            && self.source.read != *expected
        {
            return Err(ReadError::Corpus(CorpusError::LineCount {
                split: split.clone(),
                language: self.source.language.clone(),
                expected: *expected,
                actual: self.source.read,
            }));
        }
        let in_memory = matches!(self.source.lines, LineSource::Memory(_));
        if self.source.read == 0 && !in_memory {
            return Err(ReadError::Empty { file: self.source.file.clone() });
        }
        Ok(())
    }
}

/// The error for sides of unequal length. The longer side has been read one line further, and is
/// read to its end here to report its length.
fn uneven(long: &mut Side, short: &Side) -> Result<ReadError, ReadError> {
    while long.next()?.is_some() {}
    if short.read == 0 {
        return Ok(ReadError::Empty { file: short.file.clone() });
    }
    Ok(ReadError::LineCounts {
        file: short.file.clone(),
        line: short.read as usize,
        other: long.file.clone(),
        other_lines: long.read as usize,
    })
}

/// The lines of a user's file, plain or gzip (recognised by its first bytes). Line feeds, carriage
/// returns before them and a byte order mark at the beginning are removed. Only a line feed ends a
/// line.
pub(crate) struct OwnLines {
    reader: Box<dyn BufRead + Send>,
    file: PathBuf,
    line: usize,
}

impl OwnLines {
    pub(super) fn open(file: &Path) -> Result<Self, TextError> {
        let reader = open_text(file).map_err(|e| TextError::io(file, e))?;
        Ok(Self { reader, file: file.to_path_buf(), line: 0 })
    }

    /// The next line; `None` after the last.
    pub(super) fn next_line(&mut self) -> Result<Option<String>, TextError> {
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes).map_err(|e| TextError::io(&self.file, e))?;
        self.line += 1;
        if self.line == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
            if bytes.is_empty() {
                return Ok(None);
            }
        }
        if read == 0 {
            return Ok(None);
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        match String::from_utf8(bytes) {
            Ok(line) => Ok(Some(line)),
            Err(e) => Err(crate::text::not_utf8(&self.file, self.line, e.utf8_error().valid_up_to())),
        }
    }
}
