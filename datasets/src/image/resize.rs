//! Resizing that equals Pillow's `Image.resize` bit for bit.
//!
//! Source: Pillow, `src/libImaging/Resample.c`. Both filters are antialiased: when a picture
//! shrinks, the filter widens with the scale. Weights are computed in FP64 and rounded to 22
//! fractional bits; each pass rounds to 8 bits. The width is resized before the height, as in every
//! Pillow up to 12, with which published results were made. Pillow 13 exchanges the passes if the
//! height shrinks much more than the width; numbers then differ by one, or with bicubic by up to 8
//! where the first pass clips. `fast_image_resize` follows the same source with weights of 16 bits,
//! so it cannot be equal bit for bit.

use super::error::ShapeError;
use super::picture::Picture;
use super::shape::checked_bytes;

/// Number of fractional bits of a weight.
const PRECISION: u32 = 32 - 8 - 2;

/// Interpolation filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Pillow's `BILINEAR`: a triangle of radius 1.
    Bilinear,
    /// Pillow's `BICUBIC`: Keys's cubic with a = -0.5, radius 2.
    Bicubic,
}

impl Filter {
    fn radius(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        const A: f64 = -0.5;
        let x = x.abs();
        match self {
            Self::Bilinear if x < 1.0 => 1.0 - x,
            Self::Bicubic if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            Self::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
            _ => 0.0,
        }
    }
}

/// The weights of one output pixel, for the source pixels from `first` on.
struct Weights {
    first: usize,
    weights: Vec<i32>,
}

/// The weights of all output pixels along one side, from `source` pixels to `target`.
fn weights(source: usize, target: usize, filter: Filter) -> Vec<Weights> {
    let scale = source as f64 / target as f64;
    let widened = scale.max(1.0);
    let support = filter.radius() * widened;
    let of = |at: usize| {
        let center = (at as f64 + 0.5) * scale;
        // A cast of a negative number gives 0, like the comparison in Pillow's source.
        let first = (center - support + 0.5) as usize;
        let end = ((center + support + 0.5) as usize).min(source);
        let exact: Vec<f64> =
            (first..end).map(|from| filter.weight((from as f64 - center + 0.5) * (1.0 / widened))).collect();
        let sum: f64 = exact.iter().sum();
        let rounded = |weight: f64| {
            let weight = if sum == 0.0 { weight } else { weight / sum } * f64::from(1 << PRECISION);
            (weight + 0.5_f64.copysign(weight)) as i32
        };
        Weights { first, weights: exact.into_iter().map(rounded).collect() }
    };
    (0..target).map(of).collect()
}

fn clipped(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Resizes one row.
fn row<const CHANNELS: usize>(source: &[u8], target: &mut [u8], weights: &[Weights]) {
    let (source, _) = source.as_chunks::<CHANNELS>();
    let (target, _) = target.as_chunks_mut::<CHANNELS>();
    for (target, Weights { first, weights }) in target.iter_mut().zip(weights) {
        let mut sums = [1 << (PRECISION - 1); CHANNELS];
        for (pixel, weight) in source[*first..].iter().zip(weights) {
            for (sum, channel) in sums.iter_mut().zip(pixel) {
                *sum += i32::from(*channel) * weight;
            }
        }
        *target = sums.map(clipped);
    }
}

/// Resizes the picture to `height` rows of `width` pixels. The channels are resized separately;
/// unlike in Pillow, alpha does not weight the others.
///
/// # Errors
/// [`ShapeError::Size`].
pub fn resize(picture: &Picture, height: usize, width: usize, filter: Filter) -> Result<Picture, ShapeError> {
    let channels = picture.channels();
    let bytes = checked_bytes(height, width, channels)?;
    // Between the passes the picture has its own height and the new width.
    let between = checked_bytes(picture.height(), width, channels)?;
    let narrowed = if width == picture.width() {
        picture.bytes().to_vec()
    } else {
        let weights = weights(picture.width(), width, filter);
        let one_row = match channels {
            1 => row::<1>,
            2 => row::<2>,
            3 => row::<3>,
            _ => row::<4>,
        };
        let mut narrowed = vec![0; between];
        for (source, target) in picture.rows().zip(narrowed.chunks_exact_mut(width * channels)) {
            one_row(source, target, &weights);
        }
        narrowed
    };
    if height == picture.height() {
        return Picture::new(height, width, channels, narrowed);
    }
    let mut resized = Vec::with_capacity(bytes);
    let mut sums = vec![0; width * channels];
    for Weights { first, weights } in weights(picture.height(), height, filter) {
        sums.fill(1 << (PRECISION - 1));
        for (source, weight) in narrowed.chunks_exact(sums.len()).skip(first).zip(weights) {
            for (sum, channel) in sums.iter_mut().zip(source) {
                *sum += i32::from(*channel) * weight;
            }
        }
        resized.extend(sums.iter().map(|sum| clipped(*sum)));
    }
    Picture::new(height, width, channels, resized)
}

/// Resizes the picture so that its shorter side has `side` pixels, as torchvision's `Resize(side)`.
/// The longer side is truncated to whole pixels.
///
/// # Errors
/// [`ShapeError::Size`].
pub fn resize_shorter_side(picture: &Picture, side: usize, filter: Filter) -> Result<Picture, ShapeError> {
    let (height, width) = (picture.height(), picture.width());
    let longer = side.saturating_mul(height.max(width)) / height.min(width);
    let (height, width) = if width <= height { (longer, side) } else { (side, longer) };
    resize(picture, height, width, filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_one_colour_keeps_it() {
        let picture = Picture::new(7, 5, 3, [200, 0, 255].repeat(35)).unwrap();
        for filter in [Filter::Bilinear, Filter::Bicubic] {
            for (height, width) in [(1, 1), (3, 11), (7, 5), (20, 2)] {
                let resized = resize(&picture, height, width, filter).unwrap();
                assert_eq!(
                    resized.bytes(),
                    [200, 0, 255].repeat(height * width),
                    "{filter:?} {height} {width}"
                );
            }
        }
    }

    #[test]
    fn no_size_of_zero_and_no_endless_size_is_made() {
        let picture = Picture::new(1, 1, 1, vec![0]).unwrap();
        assert!(resize(&picture, 0, 1, Filter::Bilinear).is_err());
        assert!(resize(&picture, 1 << 16, 1 << 16, Filter::Bilinear).is_err());
        let line = Picture::new(1, 30_000, 1, vec![0; 30_000]).unwrap();
        assert!(resize_shorter_side(&line, 30_000, Filter::Bilinear).is_err());
        assert!(resize_shorter_side(&line, usize::MAX, Filter::Bilinear).is_err());
    }
}
