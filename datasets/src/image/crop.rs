//! Crops of pictures: torchvision's `CenterCrop`, `RandomCrop` and `RandomResizedCrop`.
//!
//! Source: torchvision, `transforms/transforms.py` and `transforms/functional.py`. For the same
//! uniform numbers, sizes and positions equal torchvision's. The numbers come from [`RandomStream`]
//! and are FP64; torchvision's are FP32.

use super::error::ShapeError;
use super::picture::Picture;
use super::resize::{Filter, resize};
use super::shape::{Window, checked_bytes};
use crate::random::RandomStream;

/// A crop of the middle of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CenterCrop(Window);

impl CenterCrop {
    /// A crop of this size.
    ///
    /// # Errors
    /// [`ShapeError::Size`].
    pub fn new(height: usize, width: usize) -> Result<Self, ShapeError> {
        Window::new(0, 0, height, width).map(Self)
    }

    /// The window for a picture of this size. A picture with a shorter side is padded with 0 along
    /// that side; the smaller half of the padding comes first.
    pub fn window(&self, height: usize, width: usize) -> Window {
        let start = |whole: usize, part: usize| match whole.checked_sub(part) {
            Some(rest) => half_to_even(rest as i64),
            None => -((part - whole) as i64 / 2),
        };
        Window { top: start(height, self.0.height), left: start(width, self.0.width), ..self.0 }
    }

    /// Crops the middle of `picture`.
    pub fn apply(&self, picture: &Picture) -> Picture {
        picture.crop(self.window(picture.height(), picture.width()))
    }
}

/// Half of a non-negative number, rounded to the even neighbour as in Python's `round`.
fn half_to_even(number: i64) -> i64 {
    let half = number / 2;
    half + (number & half & 1)
}

/// A window of fixed size at a random position in a picture padded with 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomCrop {
    window: Window,
    padding: usize,
}

impl RandomCrop {
    /// A crop of this size. The picture is first padded with `padding` pixels of 0 on every side.
    ///
    /// # Errors
    /// [`ShapeError::Size`].
    pub fn new(height: usize, width: usize, padding: usize) -> Result<Self, ShapeError> {
        checked_bytes(padding.max(1), 1, 1)?;
        Ok(Self { window: Window::new(0, 0, height, width)?, padding })
    }

    /// Draws a window for a picture of this size: first its row, then its column.
    ///
    /// # Errors
    /// [`ShapeError::Crop`] if the padded picture is smaller than the crop.
    pub fn window(
        &self,
        height: usize,
        width: usize,
        stream: &mut RandomStream,
    ) -> Result<Window, ShapeError> {
        let padded = (height + 2 * self.padding, width + 2 * self.padding);
        let crop = self.window.size();
        if padded.0 < crop.0 || padded.1 < crop.1 {
            return Err(ShapeError::Crop { crop, padded });
        }
        let mut start = |rest: usize| {
            let places = u32::try_from(rest + 1).unwrap_or(u32::MAX);
            i64::from(stream.below(places)) - self.padding as i64
        };
        Ok(Window { top: start(padded.0 - crop.0), left: start(padded.1 - crop.1), ..self.window })
    }
}

/// A window of random area and aspect ratio, which is then resized to a fixed size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomResizedCrop {
    height: usize,
    width: usize,
    scale: (f64, f64),
    ratio: (f64, f64),
    filter: Filter,
}

impl RandomResizedCrop {
    /// A crop whose windows have an area drawn uniformly from `scale` (as a share of the picture's
    /// area), and a ratio of width to height drawn from `ratio`, uniformly in its logarithm.
    /// torchvision's defaults are (0.08, 1) and (3/4, 4/3).
    ///
    /// # Errors
    /// [`ShapeError::Size`], or [`ShapeError::Range`] for a range whose ends are not positive or
    /// not in order.
    pub fn new(
        height: usize,
        width: usize,
        scale: (f64, f64),
        ratio: (f64, f64),
        filter: Filter,
    ) -> Result<Self, ShapeError> {
        checked_bytes(height, width, 4)?;
        for (name, (low, high)) in [("scale", scale), ("ratio", ratio)] {
            if !(low > 0.0 && low <= high && high.is_finite()) {
                return Err(ShapeError::Range { name, low, high });
            }
        }
        Ok(Self { height, width, scale, ratio, filter })
    }

    /// Draws a window within a picture of this size. Ten draws of area and ratio are tried. If none
    /// fits, the result is the largest window in the middle with an allowed ratio.
    pub fn window(&self, height: usize, width: usize, stream: &mut RandomStream) -> Window {
        let uniform = |(low, high): (f64, f64), stream: &mut RandomStream| low + (high - low) * stream.unit();
        let area = (height * width) as f64;
        let logarithms = (self.ratio.0.ln(), self.ratio.1.ln());
        for _ in 0..10 {
            let area = area * uniform(self.scale, stream);
            let ratio = uniform(logarithms, stream).exp();
            let rounded = |side: f64| side.sqrt().round_ties_even() as usize;
            let (w, h) = (rounded(area * ratio), rounded(area / ratio));
            if (1..=width).contains(&w) && (1..=height).contains(&h) {
                let mut start =
                    |rest: usize| i64::from(stream.below(u32::try_from(rest + 1).unwrap_or(u32::MAX)));
                return Window { top: start(height - h), left: start(width - w), height: h, width: w };
            }
        }
        let own = width as f64 / height as f64;
        let (h, w) = if own < self.ratio.0 {
            ((width as f64 / self.ratio.0).round_ties_even() as usize, width)
        } else if own > self.ratio.1 {
            (height, (height as f64 * self.ratio.1).round_ties_even() as usize)
        } else {
            (height, width)
        };
        // For a very flat picture a side may round to 0 pixels, which torchvision does not handle.
        let (h, w) = (h.clamp(1, height), w.clamp(1, width));
        Window { top: ((height - h) / 2) as i64, left: ((width - w) / 2) as i64, height: h, width: w }
    }

    /// Crops a random window of `picture` and resizes it.
    ///
    /// # Errors
    /// [`ShapeError::Size`] if the picture between the two passes of the resize would be too large.
    pub fn apply(&self, picture: &Picture, stream: &mut RandomStream) -> Result<Picture, ShapeError> {
        let window = self.window(picture.height(), picture.width(), stream);
        resize(&picture.crop(window), self.height, self.width, self.filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_sizes_are_checked() {
        let resized = |scale, ratio| RandomResizedCrop::new(8, 8, scale, ratio, Filter::Bilinear);
        assert!(resized((0.08, 1.0), (0.75, 4.0 / 3.0)).is_ok());
        assert!(resized((0.0, 1.0), (0.75, 1.0)).is_err());
        assert!(resized((0.5, 0.4), (0.75, 1.0)).is_err());
        assert!(resized((0.5, 0.6), (f64::NAN, 1.0)).is_err());
        assert!(resized((0.5, 0.6), (1.0, f64::INFINITY)).is_err());
        assert!(CenterCrop::new(0, 1).is_err());
        assert!(RandomCrop::new(1, 1, usize::MAX).is_err());
        assert!(Window::new(i64::MIN, 0, 1, 1).is_err());
    }

    #[test]
    fn a_crop_larger_than_its_padded_picture_is_refused() {
        let crop = RandomCrop::new(8, 8, 1).unwrap();
        let mut stream = RandomStream::new(1, Purpose::Crop, 0);
        assert!(crop.window(6, 6, &mut stream).is_ok());
        let error = crop.window(6, 5, &mut stream).unwrap_err();
        assert_eq!(error, ShapeError::Crop { crop: (8, 8), padded: (8, 7) });
    }

    proptest! {
        #[test]
        fn random_windows_lie_within_their_picture(
            height in 1_usize..300, width in 1_usize..300, low in 0.001_f64..1.0, span in 0.0_f64..1.0,
            squeeze in 0.1_f64..1.0, stretch in 1.0_f64..10.0, seed: u64,
        ) {
            let mut stream = RandomStream::new(seed, Purpose::Crop, 0);
            let crop = RandomResizedCrop::new(8, 8, (low, low + span), (squeeze, stretch), Filter::Bilinear).unwrap();
            let Window { top, left, height: h, width: w } = crop.window(height, width, &mut stream);
            prop_assert!(top >= 0 && left >= 0 && h > 0 && w > 0);
            prop_assert!(top as usize + h <= height && left as usize + w <= width);
        }

        #[test]
        fn random_crops_lie_within_their_padded_picture(
            height in 1_usize..40, width in 1_usize..40, padding in 0_usize..6, seed: u64,
        ) {
            let mut stream = RandomStream::new(seed, Purpose::Crop, 0);
            let crop = RandomCrop::new(height, width, padding).unwrap();
            let window = crop.window(height, width, &mut stream).unwrap();
            prop_assert!(window.top.unsigned_abs() as usize <= padding);
            prop_assert!(window.left.unsigned_abs() as usize <= padding);
        }
    }
}
