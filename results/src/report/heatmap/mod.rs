//! Matrices as pictures: spectrograms, one above the other, and what attention read.
//!
//! [`Heatmap::png`] is the pixels alone; [`Heatmap::svg`] has them in it, with title, axes and the scale of colours, and stands by itself.

mod drawing;
mod palette;
mod raster;

use std::borrow::Cow;

use thiserror::Error;

use crate::metrics::{Attention, LogMel};
use raster::Raster;

/// Panels of a picture.
const MOST_PANELS: usize = 8;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeatmapError {
    /// Numbers that do not fill columns.
    #[error(
        "{values} values do not fill {columns} columns\nhint: give one or more whole columns, one after the other"
    )]
    Shape {
        /// Given.
        values: usize,
        /// Stated.
        columns: usize,
    },
    /// None, or too many.
    #[error("{0} panels\nhint: a picture has 1 to 8")]
    Panels(usize),
    /// Larger than PNG can state.
    #[error("the picture is too large\nhint: cut it")]
    TooLarge,
    /// The encoder's words.
    #[error("the picture cannot be written: {0}\nhint: this is a defect of the program; please report it")]
    Encoding(String),
}

/// A matrix of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel<'a> {
    title: String,
    values: Cow<'a, [f32]>,
    columns: usize,
}

impl<'a> Panel<'a> {
    /// Of `[columns, rows]`, column after column, as `[frames, mels]` and `[decoder steps, symbols]` lie in memory: from left to right, each
    /// from the bottom to the top. Numbers that are not finite stay white.
    ///
    /// # Errors
    /// No value, or a last column that is not whole.
    pub fn new(title: &str, values: impl Into<Cow<'a, [f32]>>, columns: usize) -> Result<Self, HeatmapError> {
        let values = values.into();
        if values.is_empty() || columns == 0 || !values.len().is_multiple_of(columns) {
            return Err(HeatmapError::Shape { values: values.len(), columns });
        }
        Ok(Self { title: title.to_owned(), values, columns })
    }

    fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    fn cell(&self, column: usize, row: usize) -> f32 {
        self.values[column * self.rows() + row]
    }
}

/// An axis, from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it is, with its unit.
    pub label: String,
    /// Units a cell.
    pub step: f64,
    /// Names of the cells, shown instead of numbers where there is room; or none.
    pub names: Vec<String>,
}

impl Axis {
    /// In numbers.
    pub fn new(label: &str, step: f64) -> Self {
        Self { label: label.to_owned(), step, names: Vec::new() }
    }
}

/// A picture of one or more matrices on the same axes and the same scale of colours.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap<'a> {
    /// Above it.
    pub title: String,
    /// What is to be seen, for those who do not see it.
    pub description: String,
    /// From left to right.
    pub x: Axis,
    /// From the bottom to the top.
    pub y: Axis,
    /// What the colours are, with the unit.
    pub unit: String,
    panels: Vec<Panel<'a>>,
    ends: (f64, f64),
}

impl<'a> Heatmap<'a> {
    /// Of panels, from the top. `ends` are the numbers of the first and the last colour; none: the least and the most of all panels.
    ///
    /// # Errors
    /// No panel, or more than 8.
    pub fn new(panels: Vec<Panel<'a>>, ends: Option<(f32, f32)>) -> Result<Self, HeatmapError> {
        if !(1..=MOST_PANELS).contains(&panels.len()) {
            return Err(HeatmapError::Panels(panels.len()));
        }
        let ends = ends.map_or_else(|| range(&panels), |(low, high)| (f64::from(low), f64::from(high)));
        let (title, description, unit) = Default::default();
        let (x, y) = (Axis::new("", 1.0), Axis::new("", 1.0));
        Ok(Self { title, description, x, y, unit, panels, ends })
    }

    /// A recording's spectrogram above that of what was synthesised, over time.
    ///
    /// # Errors
    /// None of two spectrograms.
    pub fn mels(
        title: &str,
        target: LogMel<'a>,
        predicted: LogMel<'a>,
        seconds_a_frame: f64,
    ) -> Result<Self, HeatmapError> {
        let panel = |name, mel: LogMel<'a>| Panel::new(name, mel.values(), mel.frames());
        let panels = vec![panel("Target", target)?, panel("Predicted", predicted)?];
        let seconds = |mel: LogMel<'_>| mel.frames() as f64 * seconds_a_frame;
        let description = format!(
            "Log-mel spectrograms: the target's of {:.2} s above the predicted one's of {:.2} s.",
            seconds(target),
            seconds(predicted)
        );
        Ok(Self {
            title: title.to_owned(),
            description,
            x: Axis::new("seconds", seconds_a_frame),
            y: Axis::new("mel band", 1.0),
            unit: "log".to_owned(),
            ..Self::new(panels, None)?
        })
    }

    /// Which symbols a decoder read over time; `symbols` may be empty.
    ///
    /// # Errors
    /// None of any attention.
    pub fn alignment(
        title: &str,
        attention: Attention<'_>,
        seconds_a_step: f64,
        symbols: &[String],
    ) -> Result<Heatmap<'static>, HeatmapError> {
        let panel = Panel::new("", attention.unpadded(), attention.steps())?;
        let description =
            format!("Attention of {} decoder steps over {} symbols.", attention.steps(), attention.symbols());
        Ok(Heatmap {
            title: title.to_owned(),
            description,
            x: Axis::new("seconds", seconds_a_step),
            y: Axis { names: symbols.to_vec(), ..Axis::new("symbol", 1.0) },
            unit: "weight".to_owned(),
            ..Heatmap::new(vec![panel], Some((0.0, 1.0)))?
        })
    }

    /// The panels, one above the other, without words: a file of PNG. At most 2048 cells across and 1024 up are shown each by itself; of
    /// larger panels the mean of neighbours. Smaller pictures are enlarged.
    ///
    /// # Errors
    /// The encoder's.
    pub fn png(&self) -> Result<Vec<u8>, HeatmapError> {
        Raster::stacked(&self.rasters()).png()
    }

    /// A file of SVG that loads nothing.
    ///
    /// # Errors
    /// The encoder's, of the pixels in it.
    pub fn svg(&self) -> Result<String, HeatmapError> {
        drawing::svg(self)
    }

    fn rasters(&self) -> Vec<Raster> {
        self.panels.iter().map(|panel| Raster::of(panel, self.ends)).collect()
    }
}

/// The least and the most of what is finite.
fn range(panels: &[Panel<'_>]) -> (f64, f64) {
    let values = panels.iter().flat_map(|panel| panel.values.iter().copied());
    let numbers = values.map(f64::from).filter(|value| value.is_finite());
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = numbers.fold(ends, |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_matrix_is_an_error() {
        for (values, columns) in [(&[][..], 0), (&[], 1), (&[1.0; 4], 0), (&[1.0; 4], 3), (&[1.0; 4], 5)] {
            let error = Panel::new("", values, columns).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{error}");
        }
        assert_eq!(Heatmap::new(Vec::new(), None).unwrap_err(), HeatmapError::Panels(0));
        let panel = Panel::new("", &[1.0][..], 1).unwrap();
        assert_eq!(Heatmap::new(vec![panel; 9], None).unwrap_err(), HeatmapError::Panels(9));
    }

    #[test]
    fn colours_span_what_all_panels_hold() {
        let panel = |values: &'static [f32]| Panel::new("", values, 1).unwrap();
        let of = |panels, ends| Heatmap::new(panels, ends).unwrap().ends;
        assert_eq!(of(vec![panel(&[1.0, f32::NAN]), panel(&[-3.0, f32::INFINITY])], None), (-3.0, 1.0));
        assert_eq!(of(vec![panel(&[f32::NAN])], None), (0.0, 0.0));
        assert_eq!(of(vec![panel(&[5.0])], Some((0.0, 1.0))), (0.0, 1.0));
    }
}
