//! Valid sizes of pictures, and rectangles of pixels.

use super::error::ShapeError;

/// Maximum number of pixels of a picture: 256 MiB of RGB. Pillow warns of a decompression bomb from
/// the same number on.
pub const LARGEST_PIXELS: usize = (1 << 30) / 4 / 3;

/// Number of bytes of a picture of this size.
///
/// # Errors
/// [`ShapeError::Size`].
pub(super) fn checked_bytes(height: usize, width: usize, channels: usize) -> Result<usize, ShapeError> {
    let pixels = height.checked_mul(width).filter(|pixels| (1..=LARGEST_PIXELS).contains(pixels));
    match pixels {
        Some(pixels) if (1..=4).contains(&channels) => Ok(pixels * channels),
        _ => Err(ShapeError::Size { height, width, channels, limit: LARGEST_PIXELS }),
    }
}

/// A rectangle of pixels. It may reach beyond a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub(super) top: i64,
    pub(super) left: i64,
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Window {
    /// The window with first row `top` and first column `left`.
    ///
    /// # Errors
    /// [`ShapeError::Size`]; also for a position further away than the longest possible picture.
    pub fn new(top: i64, left: i64, height: usize, width: usize) -> Result<Self, ShapeError> {
        checked_bytes(height, width, 4)?;
        checked_bytes(top.unsigned_abs().max(1) as usize, 1, 1)?;
        checked_bytes(1, left.unsigned_abs().max(1) as usize, 1)?;
        Ok(Self { top, left, height, width })
    }

    /// First row and first column.
    pub fn origin(&self) -> (i64, i64) {
        (self.top, self.left)
    }

    /// Height and width.
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }
}
