//! Two files of equal line count, line i of one being the translation of line i of the other; plain or `.gz`.

use std::path::{Path, PathBuf};

use super::SplitText;
use super::reversal::ReversalError;
use super::stream::{OwnLines, PairReader};
use crate::corpora::CorpusError;
use crate::text::TextError;

/// What to do with a pair of which one side is empty or blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyLines {
    /// Leave it out and count it: training.
    Skip,
    /// Keep it: evaluation, where every line counts.
    Keep,
}

/// What can go wrong with parallel text.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be read or is not text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A file has no line.
    #[error("{}: the file is empty\nhint: check the path and that the download or export was complete", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// The two sides do not have the same number of lines.
    #[error("{}:{line}: the file ends here, but {} has {other_lines} lines\nhint: line i of one file must be the translation of line i of the other", file.display(), other.display())]
    LineCounts {
        /// The shorter file.
        file: PathBuf,
        /// Its last line.
        line: usize,
        /// The longer file.
        other: PathBuf,
        /// Lines of the longer file.
        other_lines: usize,
    },
    /// A corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A split cannot be generated.
    #[error(transparent)]
    Reversal(#[from] ReversalError),
    /// Nothing says where a split is.
    #[error("no text for the split `{split}`: {problem}\nhint: {hint}")]
    NoText {
        /// The split.
        split: String,
        /// What is missing.
        problem: String,
        /// What to do next.
        hint: &'static str,
    },
}

/// All lines of a text file, plain or, by its first bytes, gzip. Line feeds and carriage returns before them are taken
/// off; only a line feed ends a line.
pub fn read_lines(file: &Path) -> Result<Vec<String>, ReadError> {
    let mut reader = OwnLines::open(file)?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line()? {
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(ReadError::Empty { file: file.to_path_buf() });
    }
    Ok(lines)
}

/// Reads both sides of a split.
pub fn read(source: &Path, target: &Path, empty: EmptyLines) -> Result<SplitText, ReadError> {
    PairReader::open(source, target, empty)?.read_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let file = folder.join(name);
        std::fs::write(&file, bytes).unwrap();
        file
    }

    #[test]
    fn pairs_are_read_plain_and_gzipped() {
        let folder = tempfile::tempdir().unwrap();
        let source = written(folder.path(), "a.en", "one\r\ntwo\u{2028}2\n".as_bytes());
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all("eins\nzwei".as_bytes()).unwrap();
        let target = written(folder.path(), "a.de.gz", &gz.finish().unwrap());
        let pairs = read(&source, &target, EmptyLines::Skip).unwrap();
        assert_eq!(pairs.source, ["one", "two\u{2028}2"]);
        assert_eq!(pairs.target, ["eins", "zwei"]);
        assert_eq!((pairs.len(), pairs.skipped_empty), (2, 0));
    }

    #[test]
    fn empty_lines_are_skipped_and_counted_in_training_and_kept_in_evaluation() {
        let folder = tempfile::tempdir().unwrap();
        let source = written(folder.path(), "s", b"a\n\nc\nd\n");
        let target = written(folder.path(), "t", b"A\nB\n \nD\n");
        let train = read(&source, &target, EmptyLines::Skip).unwrap();
        assert_eq!(
            (train.source, train.target, train.skipped_empty),
            (vec!["a".into(), "d".into()], vec!["A".into(), "D".into()], 2)
        );
        let eval = read(&source, &target, EmptyLines::Keep).unwrap();
        assert_eq!((eval.len(), eval.skipped_empty), (4, 0));
    }

    #[test]
    fn errors_name_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let three = written(folder.path(), "three", b"a\nb\nc\n");
        let two = written(folder.path(), "two", b"a\nb\n");
        let none = written(folder.path(), "none", b"");
        let bad = written(folder.path(), "bad", b"a\nb\xff\n");
        let message = |s: &Path, t: &Path| read(s, t, EmptyLines::Keep).unwrap_err().to_string();
        for text in [message(&three, &two), message(&two, &three)] {
            assert!(
                text.contains("two:2: ") && text.contains("three has 3 lines") && text.contains("hint:"),
                "{text}"
            );
        }
        assert!(message(&none, &two).contains("none: the file is empty"));
        assert!(message(&two, &bad).contains("bad:2: not UTF-8 at byte 2"));
        assert!(message(&two, Path::new("missing.de")).starts_with("missing.de: "));
    }

    #[test]
    fn a_broken_gzip_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&vec![b'x'; 5000]).unwrap();
        let mut bytes = gz.finish().unwrap();
        bytes.truncate(bytes.len() - 9);
        let file = written(folder.path(), "broken.gz", &bytes);
        assert!(read_lines(&file).unwrap_err().to_string().contains("broken.gz"));
    }
}
