//! PNG, decoded by the crate `png`, which verifies every checksum.

use std::io::{Cursor, ErrorKind};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};

use super::{check_size, whole};
use crate::image::error::PictureError;
use crate::image::picture::Picture;

/// Memory limit of the decoder for chunks and rows, besides the picture.
const OTHER_MEMORY: usize = 64 << 20;

/// Decodes a PNG of at most 8 bits per channel: grey of 1 to 8 bits, palettes, RGB, with or without
/// alpha. Of an animation, only the first frame is decoded.
pub(super) fn decode(bytes: &[u8], file: &Path) -> Result<Picture, PictureError> {
    let error = |error: DecodingError| match error {
        DecodingError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => {
            PictureError::Truncated { file: file.into(), what: "it ends within the pixels".into() }
        }
        DecodingError::LimitsExceeded => PictureError::TooLarge {
            file: file.into(),
            what: "its chunks need more memory than a picture's may".into(),
            limit: OTHER_MEMORY as u64,
        },
        other => PictureError::Corrupt { file: file.into(), what: other.to_string() },
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: OTHER_MEMORY });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder.read_header_info().map_err(error)?;
    let (height, width, depth) = (header.height as usize, header.width as usize, header.bit_depth);
    check_size(height, width, file)?;
    if depth == BitDepth::Sixteen {
        return Err(PictureError::Unsupported { file: file.into(), what: "PNG of 16 bits a channel".into() });
    }
    let mut reader = decoder.read_info().map_err(error)?;
    let stored = match reader.output_color_type().0 {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgba => 4,
        ColorType::Rgb | ColorType::Indexed => 3,
    };
    let mut pixels = vec![0; height * width * stored];
    let frame = reader.next_frame(&mut pixels).map_err(error)?;
    if (frame.height as usize, frame.width as usize) != (height, width) {
        let what = format!("its first frame has {} x {} pixels", frame.width, frame.height);
        return Err(PictureError::Corrupt { file: file.into(), what });
    }
    let picture = whole(height, width, stored, pixels, file)?;
    Ok(match stored {
        2 => picture.to_grey(),
        4 => picture.to_rgb(),
        _ => picture,
    })
}
