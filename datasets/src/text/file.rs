//! Text as it lies on disk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// Opens a text, gunzipping it if its first two bytes are gzip's.
///
/// # Errors
/// It cannot be opened.
pub fn open_text(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut head = [0; 2];
    let mut file = File::open(path)?;
    let mut filled = 0;
    while filled < 2 {
        match file.read(&mut head[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    let input = BufReader::with_capacity(1 << 16, File::open(path)?);
    Ok(if head == [0x1f, 0x8b] {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input)))
    } else {
        Box::new(input)
    })
}
