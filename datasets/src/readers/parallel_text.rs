//! Two files with equal numbers of lines, plain or `.gz`. Line i of one is the translation of line
//! i of the other.

use std::path::{Path, PathBuf};

use super::SplitText;
use super::reversal::ReversalError;
use super::stream::{OwnLines, PairReader};
use crate::corpora::CorpusError;
use crate::text::TextError;

/// What to do with a pair that has an empty or blank side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyLines {
    /// Skip the pair and count it; for training.
    Skip,
    /// Keep the pair; for evaluation, where every line counts.
    Keep,
}

/// Errors of reading parallel text.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be read or is not text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A file has no lines.
    #[error("{}: the file is empty\nhint: check the path and that the download or export was complete", file.display())]
    Empty {
        /// Path of the file.
        file: PathBuf,
    },
    /// The two sides have different numbers of lines.
    #[error("{}:{line}: the file ends here, but {} has {other_lines} lines\nhint: line i of one file must be the translation of line i of the other", file.display(), other.display())]
    LineCounts {
        /// Path of the shorter file.
        file: PathBuf,
        /// Number of the shorter file's last line.
        line: usize,
        /// Path of the longer file.
        other: PathBuf,
        /// Number of lines of the longer file.
        other_lines: usize,
    },
    /// A corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A split cannot be generated.
    #[error(transparent)]
    Reversal(#[from] ReversalError),
    /// The source of a split's text is not specified.
    #[error("no text for the split `{split}`: {problem}\nhint: {hint}")]
    NoText {
        /// Name of the split.
        split: String,
        /// What is missing.
        problem: String,
        /// Hint for the user.
        hint: &'static str,
    },
}

/// All lines of a text file, plain or gzip (recognised by its first bytes). Line feeds, and
/// carriage returns before them, are removed. Only a line feed ends a line.
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
