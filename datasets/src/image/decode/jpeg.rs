//! JPEG, decoded by the crate `zune-jpeg`, which the crate `image` uses as well.
//!
//! Three options were compared: `image` (with only `png` and `jpeg`), `png` with `zune-jpeg`, and
//! `jpeg-decoder`. `image` decodes with the same two crates and adds colour management (`moxcms`,
//! `pxfm`: 360 more lines with `unsafe`), which training never uses. `png` was already a
//! dependency. Without its feature `x86`, `zune-jpeg` compiles no intrinsics, and its results are
//! the same bits.
//!
//! No decoder in Rust equals libjpeg-turbo bit for bit. The comparison used JPEGs of three
//! subsamplings and two qualities, baseline and progressive, and photographs. `zune-jpeg` differs
//! from Pillow (libjpeg-turbo) by at most 4 of 255, with a mean of 0.4 for 4:2:0 and 0.02 for
//! 4:4:4; `jpeg-decoder` by at most 4, with means of 0.12 and 0.08. `zune-jpeg` was chosen because
//! `image` 0.25 decodes with it, too. `tests/interface/pictures.rs` has the bounds.

use std::path::Path;

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::{ZByteIoError, ZCursor};
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{check_size, whole};
use crate::image::error::PictureError;
use crate::image::picture::Picture;

/// Maximum number of scans of a progressive picture; encoders write about ten. Each scan visits
/// every block, even if it has little data.
const MOST_SCANS: usize = 100;

/// Decodes a grey or colour JPEG, baseline or progressive. The memory is at most that of the
/// picture plus, for a progressive picture, twice as much for its coefficients.
pub(super) fn decode(bytes: &[u8], file: &Path) -> Result<Picture, PictureError> {
    let truncated = |what: &str| PictureError::Truncated { file: file.into(), what: what.into() };
    let error = |error: DecodeErrors| match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(ZByteIoError::NotEnoughBytes(..)) => {
            truncated("it ends within the pixels")
        }
        DecodeErrors::Unsupported(scheme) => {
            PictureError::Unsupported { file: file.into(), what: format!("JPEG: {scheme:?}") }
        }
        other => PictureError::Corrupt { file: file.into(), what: other.to_string().trim_end().into() },
    };
    // The decoder accepts a file without its last marker, so look for it here. The data of a scan
    // cannot contain this marker, because FF is followed by 00 there.
    let last = |marker: u8| bytes.windows(2).rposition(|pair| pair == [0xff, marker]);
    if last(0xd9) < last(0xda) {
        return Err(truncated("the marker of its end is missing"));
    }
    let options = DecoderOptions::new_safe()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_max_scans(MOST_SCANS);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(error)?;
    let Some(info) = decoder.info() else { return Err(truncated("it has no header")) };
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    check_size(height, width, file)?;
    let (channels, colours) = match info.components {
        1 => (1, ColorSpace::Luma),
        3 => (3, ColorSpace::RGB),
        components => {
            let what = format!("JPEG of {components} components (CMYK)");
            return Err(PictureError::Unsupported { file: file.into(), what });
        }
    };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let mut pixels = vec![0; height * width * channels];
    decoder.decode_into(&mut pixels).map_err(error)?;
    whole(height, width, channels, pixels, file)
}
