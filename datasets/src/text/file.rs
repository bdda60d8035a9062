//! Reading text files.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use zoo_recipes::untrusted::open;

use super::TextError;

/// Opens a text file. Decompresses it if its first two bytes are those of gzip.
///
/// # Errors
/// The file cannot be opened, or is not a regular file.
pub fn open_text(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut head = [0; 2];
    let mut file = open(path)?;
    let mut filled = 0;
    while filled < 2 {
        match file.read(&mut head[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    let input = BufReader::with_capacity(1 << 16, open(path)?);
    Ok(if head == [0x1f, 0x8b] {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input)))
    } else {
        Box::new(input)
    })
}

/// Converts bytes to text. If they are not UTF-8, the error names the line.
pub(crate) fn decode_utf8(bytes: Vec<u8>, file: &Path) -> Result<String, TextError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        not_utf8(file, line, before.iter().rev().take_while(|&&b| b != b'\n').count())
    })
}

/// The error for a line of which only the first `good` bytes are valid UTF-8.
pub(crate) fn not_utf8(file: &Path, line: usize, good: usize) -> TextError {
    TextError::malformed(
        file,
        line,
        format!("not UTF-8 at byte {} of the line", good + 1),
        "convert the file to UTF-8, e.g. with iconv",
    )
}
