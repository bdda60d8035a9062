//! Matrices as images: spectrograms stacked vertically, and attention alignments.
//!
//! [`Heatmap::png`] gives only the pixels. [`Heatmap::svg`] embeds them with title, axes and colour
//! bar, and is self-contained.

mod drawing;
mod palette;
mod panel;
mod raster;

pub use panel::{HeatmapError, Panel};

use crate::metrics::{Attention, LogMel};
use raster::Raster;

/// Maximum number of panels of an image.
const MOST_PANELS: usize = 8;

/// An axis, from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Label, with the unit.
    pub label: String,
    /// Units per cell.
    pub step: f64,
    /// Names of the cells, shown instead of numbers if there is room; may be empty.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis with numbers.
    pub fn new(label: &str, step: f64) -> Self {
        Self { label: label.to_owned(), step, names: Vec::new() }
    }
}

/// An image of one or more matrices with the same axes and the same colour scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap<'a> {
    /// Title above the image.
    pub title: String,
    /// Text alternative for readers who cannot see the image.
    pub description: String,
    /// Horizontal axis, from left to right.
    pub x: Axis,
    /// Vertical axis, from bottom to top.
    pub y: Axis,
    /// Quantity shown by the colours, with the unit.
    pub unit: String,
    panels: Vec<Panel<'a>>,
    ends: (f64, f64),
}

impl<'a> Heatmap<'a> {
    /// An image of panels, from top to bottom. `ends` are the values of the first and the last
    /// colour; `None` means the minimum and maximum over all panels.
    ///
    /// # Errors
    /// There are no panels, or more than 8.
    pub fn new(panels: Vec<Panel<'a>>, ends: Option<(f32, f32)>) -> Result<Self, HeatmapError> {
        if !(1..=MOST_PANELS).contains(&panels.len()) {
            return Err(HeatmapError::Panels(panels.len()));
        }
        let ends = ends.map_or_else(|| range(&panels), |(low, high)| (f64::from(low), f64::from(high)));
        let (title, description, unit) = Default::default();
        let (x, y) = (Axis::new("", 1.0), Axis::new("", 1.0));
        Ok(Self { title, description, x, y, unit, panels, ends })
    }

    /// A recording's spectrogram above that of the synthesised speech, over time.
    ///
    /// # Errors
    /// None for two spectrograms.
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

    /// The symbols that a decoder attended to, over time. `symbols` may be empty.
    ///
    /// # Errors
    /// None for any attention.
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

    /// The panels, stacked vertically, without text, as a PNG file. Up to 2048 columns and 1024
    /// rows, each cell is drawn individually; larger panels show the mean of neighbouring cells.
    /// Small images are enlarged.
    ///
    /// # Errors
    /// An error of the encoder.
    pub fn png(&self) -> Result<Vec<u8>, HeatmapError> {
        Raster::stacked(&self.rasters()).png()
    }

    fn rasters(&self) -> Vec<Raster> {
        self.panels.iter().map(|panel| Raster::of(panel, self.ends)).collect()
    }
}

/// The minimum and maximum of the finite values.
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
    fn an_image_has_one_to_eight_panels() {
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
