//! Decodes PNG and JPEG files to pictures, or returns a typed error.
//!
//! The format is recognised by the file's first bytes, not by its name. Sizes are checked after the
//! header and before the pixels are decoded, so a decompression bomb is refused; the limits are
//! [`LARGEST_FILE`] and [`LARGEST_PIXELS`]. Colour profiles and the EXIF orientation are ignored,
//! as in Pillow's `Image.open`.

mod jpeg;
mod png;

use std::io::Read;
use std::path::Path;

use zoo_recipes::untrusted;

use super::error::PictureError;
use super::picture::Picture;
use super::shape::LARGEST_PIXELS;

/// Maximum length of a file in bytes.
pub const LARGEST_FILE: u64 = 1 << 28;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// Reads a PNG or JPEG file: grey stays one channel, everything else becomes RGB. Alpha is dropped.
///
/// # Errors
/// Why the file gives no picture.
pub fn decode(file: &Path) -> Result<Picture, PictureError> {
    let io_error = |source| PictureError::Io { file: file.into(), source };
    let mut bytes = Vec::new();
    untrusted::open(file)
        .map_err(io_error)?
        .take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(io_error)?;
    if bytes.len() as u64 > LARGEST_FILE {
        let what = "more bytes than a picture's file may have".into();
        return Err(PictureError::TooLarge { file: file.into(), what, limit: LARGEST_FILE });
    }
    decode_bytes(&bytes, file)
}

/// Decodes the contents of a PNG or JPEG file. `file` is used in messages only.
///
/// # Errors
/// Why the bytes give no picture.
pub fn decode_bytes(bytes: &[u8], file: &Path) -> Result<Picture, PictureError> {
    match bytes {
        _ if bytes.starts_with(PNG) => png::decode(bytes, file),
        _ if bytes.starts_with(JPEG) => jpeg::decode(bytes, file),
        [] => Err(PictureError::Truncated { file: file.into(), what: "it is empty".into() }),
        _ => Err(PictureError::Unsupported { file: file.into(), what: "neither PNG nor JPEG".into() }),
    }
}

/// Checks that a picture of this size may be decoded.
fn check_size(height: usize, width: usize, file: &Path) -> Result<(), PictureError> {
    if height == 0 || width == 0 {
        let what = format!("{width} x {height} pixels");
        return Err(PictureError::Corrupt { file: file.into(), what });
    }
    if height.checked_mul(width).is_none_or(|pixels| pixels > LARGEST_PIXELS) {
        let what = format!("{width} x {height} pixels");
        return Err(PictureError::TooLarge { file: file.into(), what, limit: LARGEST_PIXELS as u64 });
    }
    Ok(())
}

/// Makes the decoded picture, and checks that it has the right number of bytes.
fn whole(
    height: usize,
    width: usize,
    channels: usize,
    bytes: Vec<u8>,
    file: &Path,
) -> Result<Picture, PictureError> {
    Picture::new(height, width, channels, bytes)
        .map_err(|error| PictureError::Corrupt { file: file.into(), what: error.to_string() })
}
