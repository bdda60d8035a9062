//! Pictures of any size as bytes of the size that a model reads.

use std::path::Path;

use zoo_recipes::tasks::image_classification::{PictureDataSpec, PictureSizeSpec, PixelDivisor, PixelSpec};

use super::error::PictureDataError;
use crate::image::{Filter, Normalization, Picture, PixelScale, Pixels, ShapeError, decode, resize};

/// The pixels of one file as the model reads them, `[height, width, channels]`.
///
/// # Errors
/// The file gives no picture.
pub fn read_picture(file: &Path, data: &PictureDataSpec) -> Result<Vec<f32>, PictureDataError> {
    let picture = fitted(decode(file)?, data.picture)?;
    let mut numbers = Vec::with_capacity(picture.bytes().len());
    pixels(&data.pixels)?.append_bytes(picture.bytes(), picture.channels(), &mut numbers)?;
    Ok(numbers)
}

/// The picture in the model's channels, resized (bilinear, as Pillow does) if its size is another.
pub(super) fn fitted(picture: Picture, size: PictureSizeSpec) -> Result<Picture, ShapeError> {
    let (height, width) = (size.height as usize, size.width as usize);
    let picture = match (size.channels, picture.channels()) {
        (1, 1) | (3, 3) => picture,
        (1, _) => picture.to_grey(),
        _ => picture.to_rgb(),
    };
    match (picture.height(), picture.width()) == (height, width) {
        true => Ok(picture),
        false => resize(&picture, height, width, Filter::Bilinear),
    }
}

/// Bytes as numbers, as the recipe says.
pub(super) fn pixels(spec: &PixelSpec) -> Result<Pixels, ShapeError> {
    let scale = match spec.divisor {
        PixelDivisor::By255 => PixelScale::Unit,
        PixelDivisor::By256 => PixelScale::Caffe,
        PixelDivisor::None => PixelScale::Bytes,
    };
    let channels = spec.mean.len().max(spec.deviation.len());
    let numbers = |values: &[f64], absent: f32| match values.is_empty() {
        true => vec![absent; channels],
        false => values.iter().map(|value| *value as f32).collect(),
    };
    let normalization =
        Normalization { mean: numbers(&spec.mean, 0.0), deviation: numbers(&spec.deviation, 1.0) };
    Pixels::new(scale, (channels > 0).then_some(&normalization))
}
