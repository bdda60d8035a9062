//! Text as it lies on disk.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use zoo_recipes::untrusted::open;

/// Opens a text, gunzipping it if its first two bytes are gzip's.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
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
