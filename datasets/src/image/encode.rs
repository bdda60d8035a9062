//! Writes pictures as PNG.

use super::error::ShapeError;
use super::picture::Picture;

/// Encodes a picture as the bytes of a PNG file.
///
/// # Errors
/// [`ShapeError::Size`] for a picture that PNG cannot hold.
pub fn encode_png(picture: &Picture) -> Result<Vec<u8>, ShapeError> {
    let (height, width, channels) = (picture.height(), picture.width(), picture.channels());
    let size = ShapeError::Size { height, width, channels, limit: super::LARGEST_PIXELS };
    let (Ok(columns), Ok(rows)) = (u32::try_from(width), u32::try_from(height)) else { return Err(size) };
    let colour = match channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, columns, rows);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(picture.bytes())?;
        writer.finish()
    });
    match written {
        Ok(()) => Ok(bytes),
        Err(_) => Err(size),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::image::decode_bytes;

    #[test]
    fn what_is_written_is_read_again() {
        for channels in [1, 3] {
            let bytes: Vec<u8> = (0..2 * 3 * channels).map(|i| (i * 37) as u8).collect();
            let picture = Picture::new(2, 3, channels, bytes).unwrap();
            let file = encode_png(&picture).unwrap();
            assert_eq!(decode_bytes(&file, Path::new("a.png")).unwrap(), picture, "{channels} channels");
        }
    }
}
