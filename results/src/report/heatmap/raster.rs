//! Matrices as pixels, and pixels as PNG.

use super::palette::{LEVELS, MISSING, level, palette};
use super::panel::{HeatmapError, Panel};

/// Maximum number of pixels in each direction. In larger matrices, a pixel is the mean of several
/// cells.
const MOST_COLUMNS: usize = 2048;
const MOST_ROWS: usize = 1024;
/// An image of few cells is enlarged to about this width or height.
const ENLARGED: usize = 640;
/// Pixels between panels, before they are enlarged.
const GAP: usize = 2;

/// Pixels as indices of the palette, top row first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raster {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Raster {
    /// The raster of a panel: one pixel per cell, up to the maximum size.
    pub fn of(panel: &Panel<'_>, ends: (f64, f64)) -> Self {
        let (width, height) = (panel.columns.min(MOST_COLUMNS), panel.rows().min(MOST_ROWS));
        let mut pixels = Vec::with_capacity(width * height);
        for y in (0..height).rev() {
            for x in 0..width {
                pixels.push(level(
                    mean(panel, share(x, panel.columns, width), share(y, panel.rows(), height)),
                    ends,
                ));
            }
        }
        Self { width, height, pixels }
    }

    /// All levels, highest at the top.
    pub fn bar() -> Self {
        Self { width: 1, height: LEVELS, pixels: (0..=254).rev().collect() }
    }

    /// Several rasters stacked vertically, left-aligned, all enlarged by the same factor.
    pub fn stacked(rasters: &[Self]) -> Self {
        let width = rasters.iter().map(|one| one.width).max().unwrap_or(0);
        let mut pixels = Vec::new();
        for (at, one) in rasters.iter().enumerate() {
            if at > 0 {
                pixels.resize(pixels.len() + GAP * width, MISSING);
            }
            for row in one.pixels.chunks_exact(one.width) {
                pixels.extend_from_slice(row);
                pixels.resize(pixels.len() + width - one.width, MISSING);
            }
        }
        let height = pixels.len().checked_div(width).unwrap_or(0);
        let times = (ENLARGED / width.max(height).max(1)).max(1);
        let rows = pixels.chunks_exact(width.max(1)).flat_map(|row| std::iter::repeat_n(row, times));
        let pixels = rows.flatten().flat_map(|pixel| std::iter::repeat_n(*pixel, times)).collect();
        Self { width: width * times, height: height * times, pixels }
    }

    /// A PNG with indexed colours.
    pub fn png(&self) -> Result<Vec<u8>, HeatmapError> {
        let mut bytes = Vec::new();
        let size = |length: usize| u32::try_from(length).map_err(|_| HeatmapError::TooLarge);
        let mut encoder = png::Encoder::new(&mut bytes, size(self.width)?, size(self.height)?);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(palette());
        encoder.set_compression(png::Compression::High);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.pixels)?;
            writer.finish()
        });
        written.map_err(|error| HeatmapError::Encoding(error.to_string()))?;
        Ok(bytes)
    }
}

/// The cells that a pixel covers; not empty if there are at most as many pixels as cells.
fn share(pixel: usize, cells: usize, pixels: usize) -> std::ops::Range<usize> {
    pixel * cells / pixels..(pixel + 1) * cells / pixels
}

/// Mean of the cells with values; NaN if there are none.
fn mean(panel: &Panel<'_>, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> f64 {
    let cells = columns.flat_map(|x| rows.clone().map(move |y| (x, y)));
    let numbers = cells.map(|(x, y)| f64::from(panel.cell(x, y))).filter(|value| value.is_finite());
    let (sum, count) = numbers.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads size and pixels back. The decoder checks the signature and the order and CRC of the
    /// chunks.
    fn read(bytes: &[u8]) -> (usize, usize, Vec<u8>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().unwrap();
        assert_eq!(reader.info().palette.as_deref(), Some(palette().as_slice()));
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((frame.color_type, frame.bit_depth), (png::ColorType::Indexed, png::BitDepth::Eight));
        reader.finish().unwrap();
        (frame.width as usize, frame.height as usize, pixels)
    }

    #[test]
    fn the_lowest_row_is_at_the_bottom_and_the_file_is_read_again() {
        // Two columns of three rows each.
        let panel = Panel::new("", &[0.0, 0.5, 1.0, f32::NAN, 0.0, 2.0][..], 2).unwrap();
        let raster = Raster::of(&panel, (0.0, 1.0));
        assert_eq!(raster.pixels, [254, 254, 127, 0, 0, MISSING]);
        let bytes = raster.png().unwrap();
        assert_eq!(read(&bytes), (2, 3, raster.pixels.clone()));
        let mut damaged = bytes.clone();
        let last = bytes.len() - 20;
        damaged[last] ^= 1;
        let mut decoder = png::Decoder::new(std::io::Cursor::new(&damaged[..])).read_info().unwrap();
        assert!(decoder.next_frame(&mut [0; 64]).and_then(|_| decoder.finish()).is_err());
    }

    #[test]
    fn panels_stand_one_above_the_other_enlarged_alike() {
        let (long, short) = (vec![0.0; 320 * 4], vec![1.0; 160 * 4]);
        let of = |values: &[f32], columns| Raster::of(&Panel::new("", values, columns).unwrap(), (0.0, 1.0));
        let stacked = Raster::stacked(&[of(&long, 320), of(&short, 160)]);
        assert_eq!((stacked.width, stacked.height), (640, 2 * (4 + GAP + 4)));
        assert_eq!(read(&stacked.png().unwrap()).2, stacked.pixels);
        let row = |y: usize| &stacked.pixels[640 * y..][..640];
        assert!(row(0).iter().all(|pixel| *pixel == 0) && row(8).iter().all(|pixel| *pixel == MISSING));
        assert!(
            row(19)[..320].iter().all(|pixel| *pixel == 254) && row(19)[320..].iter().all(|p| *p == MISSING)
        );
    }

    #[test]
    fn size_is_bounded_and_every_cell_counts() {
        let mut values = vec![0.0; 5000 * 3];
        values[4999 * 3] = 1.0;
        let raster = Raster::of(&Panel::new("", &values[..], 5000).unwrap(), (0.0, 0.1));
        assert_eq!((raster.width, raster.height), (MOST_COLUMNS, 3));
        assert_eq!(raster.pixels.iter().filter(|pixel| **pixel > 0).count(), 1);
        let tall = Raster::of(&Panel::new("", &values[..], 1).unwrap(), (0.0, 1.0));
        assert_eq!((tall.width, tall.height), (1, MOST_ROWS));
        let one = Raster::stacked(&[Raster::of(&Panel::new("", &[1.0][..], 1).unwrap(), (0.0, 1.0))]);
        assert_eq!((one.width, one.height), (640, 640));
        assert_eq!(Raster::bar().pixels.len(), LEVELS);
    }
}
