//! Two files with equal numbers of lines, plain or `.gz`. Line i of one is the translation of line
//! i of the other.

use std::path::Path;

use super::SplitText;
use super::error::ReadError;
use super::stream::{EmptyLines, OwnLines, PairReader};

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
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

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
