//! A picture in memory.

use super::error::ShapeError;
use super::shape::{Window, checked_bytes};

/// A picture of 8-bit channels: rows from top to bottom, pixels from left to right, the channels of
/// a pixel next to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    height: usize,
    width: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Picture {
    /// A picture from its bytes, [height, width, channels].
    ///
    /// # Errors
    /// [`ShapeError::Size`] or [`ShapeError::Bytes`].
    pub fn new(height: usize, width: usize, channels: usize, bytes: Vec<u8>) -> Result<Self, ShapeError> {
        let expected = checked_bytes(height, width, channels)?;
        if bytes.len() != expected {
            return Err(ShapeError::Bytes { expected, actual: bytes.len() });
        }
        Ok(Self { height, width, channels, bytes })
    }

    /// A picture whose sizes the caller has checked.
    pub(crate) fn of_checked(height: usize, width: usize, channels: usize, bytes: Vec<u8>) -> Self {
        debug_assert_eq!(checked_bytes(height, width, channels), Ok(bytes.len()));
        Self { height, width, channels, bytes }
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Number of pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of channels: 1 (grey), 3 (RGB), 2 or 4 (with alpha).
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// All bytes, [height, width, channels].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The rows, each of width x channels bytes.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.width * self.channels)
    }

    /// The pixels within `window`. Pixels outside the picture are 0, as in Pillow's `Image.crop`.
    pub fn crop(&self, window: Window) -> Self {
        let Window { top, left, height, width } = window;
        let mut bytes = vec![0; height * width * self.channels];
        // Columns of the window that lie in the picture.
        let first = left.clamp(0, self.width as i64);
        let end = (left + width as i64).clamp(first, self.width as i64);
        if first < end {
            let offset = (first - left) as usize * self.channels;
            let (first, end) = (first as usize, end as usize);
            for (y, row) in (top..).zip(bytes.chunks_exact_mut(width * self.channels)) {
                if let Some(y) = usize::try_from(y).ok().filter(|y| *y < self.height) {
                    let start = (y * self.width + first) * self.channels;
                    let source = &self.bytes[start..start + (end - first) * self.channels];
                    row[offset..offset + source.len()].copy_from_slice(source);
                }
            }
        }
        Self { height, width, channels: self.channels, bytes }
    }

    /// The picture mirrored horizontally.
    pub fn flipped(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for row in self.rows() {
            bytes.extend(row.chunks_exact(self.channels).rev().flatten());
        }
        Self { bytes, ..*self }
    }

    /// The picture with each pixel repeated `times` in both directions.
    pub fn enlarged(&self, times: usize) -> Self {
        let times = times.max(1);
        let mut bytes = Vec::with_capacity(self.bytes.len() * times * times);
        for row in self.rows() {
            let wide: Vec<u8> =
                row.chunks_exact(self.channels).flat_map(|pixel| pixel.repeat(times)).collect();
            (0..times).for_each(|_| bytes.extend_from_slice(&wide));
        }
        Self { height: self.height * times, width: self.width * times, bytes, ..*self }
    }

    /// The picture in RGB: grey is repeated, alpha is dropped, as in Pillow's `convert("RGB")`.
    pub fn to_rgb(&self) -> Self {
        let bytes = match self.channels {
            1 | 2 => self.bytes.chunks_exact(self.channels).flat_map(|pixel| [pixel[0]; 3]).collect(),
            3 => self.bytes.clone(),
            _ => self.bytes.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        };
        Self { channels: 3, bytes, ..*self }
    }

    /// The picture in grey, as in Pillow's `convert("L")`: ITU-R 601-2 luma in integers; alpha is
    /// dropped.
    pub fn to_grey(&self) -> Self {
        let luma = |pixel: &[u8]| match *pixel {
            [red, green, blue, ..] => {
                let [red, green, blue] = [red, green, blue].map(u32::from);
                ((red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16) as u8
            }
            [grey, ..] => grey,
            [] => 0,
        };
        let bytes = self.bytes.chunks_exact(self.channels).map(luma).collect();
        Self { channels: 1, bytes, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_must_match_the_bytes() {
        assert!(Picture::new(2, 3, 1, vec![0; 6]).is_ok());
        assert_eq!(Picture::new(2, 3, 1, vec![0; 5]), Err(ShapeError::Bytes { expected: 6, actual: 5 }));
        for (height, width, channels) in
            [(0, 3, 1), (3, 0, 1), (1, 1, 0), (1, 1, 5), (usize::MAX, 2, 1), (1 << 20, 1 << 20, 3)]
        {
            let error = Picture::new(height, width, channels, Vec::new()).unwrap_err();
            assert!(matches!(error, ShapeError::Size { .. }), "{error}");
        }
    }

    #[test]
    fn grey_and_alpha_become_rgb() {
        let picture = |channels, bytes: &[u8]| Picture::new(1, 2, channels, bytes.to_vec()).unwrap();
        assert_eq!(picture(1, &[7, 9]).to_rgb(), picture(3, &[7, 7, 7, 9, 9, 9]));
        assert_eq!(picture(2, &[7, 0, 9, 255]).to_rgb(), picture(3, &[7, 7, 7, 9, 9, 9]));
        assert_eq!(picture(4, &[1, 2, 3, 0, 4, 5, 6, 0]).to_rgb(), picture(3, &[1, 2, 3, 4, 5, 6]));
        assert_eq!(picture(2, &[7, 0, 9, 255]).to_grey(), picture(1, &[7, 9]));
    }

    proptest! {
        #[test]
        fn a_crop_holds_the_pixels_under_it(
            height in 1_usize..9, width in 1_usize..9, channels in 1_usize..5,
            top in -12_i64..12, left in -12_i64..12, crop_height in 1_usize..9, crop_width in 1_usize..9,
        ) {
            let bytes: Vec<u8> = (0..height * width * channels).map(|n| (n % 250 + 1) as u8).collect();
            let picture = Picture::new(height, width, channels, bytes).unwrap();
            let crop = picture.crop(Window::new(top, left, crop_height, crop_width).unwrap());
            prop_assert_eq!((crop.height(), crop.width(), crop.channels()), (crop_height, crop_width, channels));
            for y in 0..crop_height {
                for x in 0..crop_width {
                    for c in 0..channels {
                        let (from_y, from_x) = (top + y as i64, left + x as i64);
                        let inside = (0..height as i64).contains(&from_y) && (0..width as i64).contains(&from_x);
                        let expected = if inside {
                            picture.bytes()[(from_y as usize * width + from_x as usize) * channels + c]
                        } else {
                            0
                        };
                        prop_assert_eq!(crop.bytes()[(y * crop_width + x) * channels + c], expected);
                    }
                }
            }
        }

        #[test]
        fn a_picture_flipped_twice_is_itself(height in 1_usize..5, width in 1_usize..9, channels in 1_usize..5) {
            let bytes: Vec<u8> = (0..height * width * channels).map(|n| n as u8).collect();
            let picture = Picture::new(height, width, channels, bytes).unwrap();
            let flipped = picture.flipped();
            prop_assert_eq!(&flipped.bytes()[..channels], &picture.bytes()[(width - 1) * channels..width * channels]);
            prop_assert_eq!(flipped.flipped(), picture);
        }
    }
}
