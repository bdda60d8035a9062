//! The SVG drawing of a heatmap: pixels with title, axes and colour bar.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::raster::Raster;
use super::{Axis, Heatmap, HeatmapError, Panel};
use crate::report::page::markup::Markup;
use crate::report::page::scale::{Scale, Spacing};
use crate::report::page::series::place;
use crate::verdict::number;

const WIDTH: f64 = 760.0;
/// Space to the left of the panels: at least, and at most.
const LEFT: (f64, f64) = (58.0, 220.0);
/// Width of the rotated title of the axis, and of a character of a name.
const TITLE: f64 = 30.0;
const CHARACTER: f64 = 6.8;
const RIGHT: f64 = 74.0;
/// Space above a panel for its title, and below the last panel for the axis.
const HEAD: f64 = 22.0;
const FOOT: f64 = 42.0;
/// (least height, most height, height per row) of a panel: with numbers at the rows, and with
/// names.
const NUMBERED: (f64, f64, f64) = (120.0, 260.0, 2.0);
const NAMED: (f64, f64, f64) = (160.0, 900.0, 9.0);
/// Below this row height, names are left out.
const LOWEST_NAMED: f64 = 6.0;
/// Width of the colour bar.
const BAR: f64 = 12.0;
/// Maximum characters of a title that fit.
const LONGEST: usize = 95;

impl Heatmap<'_> {
    /// A self-contained SVG file.
    ///
    /// # Errors
    /// An error of the encoder of the embedded pixels.
    pub fn svg(&self) -> Result<String, HeatmapError> {
        svg(self)
    }
}

/// The whole drawing.
fn svg(map: &Heatmap<'_>) -> Result<String, HeatmapError> {
    let title = if map.title.is_empty() { 0.0 } else { 24.0 };
    let heights: Vec<f64> = map.panels.iter().map(|panel| height(panel, &map.y)).collect();
    let total = title + heights.iter().map(|height| HEAD + height).sum::<f64>() + FOOT;
    let columns = map.panels.iter().map(|panel| panel.columns).max().unwrap_or(1);
    let left = left(&map.y);
    let x = scale(&map.x, columns, (left, WIDTH - RIGHT));
    let images: Result<Vec<String>, HeatmapError> = map.rasters().iter().map(data_uri).collect();
    let (images, bar) = (images?, data_uri(&Raster::bar())?);

    let mut markup = Markup::default();
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", &place(WIDTH)),
        ("height", &place(total)),
        ("viewBox", &format!("0 0 {} {}", place(WIDTH), place(total))),
        ("role", "img"),
        ("font-family", "system-ui, sans-serif"),
        ("font-size", "12"),
        ("fill", "#333"),
    ];
    markup.element("svg", &attributes, |svg| {
        svg.leaf("title", &[], &map.title);
        svg.leaf("desc", &[], &map.description);
        svg.shape("rect", &[("width", "100%"), ("height", "100%"), ("fill", "#fff")]);
        if title > 0.0 {
            svg.leaf("text", &[("x", &place(left)), ("y", "19"), ("font-size", "15")], &cut(&map.title));
        }
        let mut top = title;
        for ((panel, height), image) in map.panels.iter().zip(&heights).zip(&images) {
            top += HEAD;
            svg.leaf("text", &[("x", &place(left)), ("y", &place(top - 6.0))], &cut(&panel.title));
            let width = (WIDTH - RIGHT - left) * panel.columns as f64 / columns as f64;
            picture(svg, (left, top, width, *height), image);
            rows(svg, panel, &map.y, (left, top, *height));
            top += height;
        }
        let first = title + HEAD;
        colours(svg, map, (first, heights.first().copied().unwrap_or(0.0)), &bar);
        for tick in x.ticks(8) {
            let at = place(x.at(tick.value));
            line(svg, [&at, &at, &place(top), &place(top + 4.0)]);
            words(svg, (x.at(tick.value), top + 17.0), "middle", &tick.label);
        }
        words(svg, ((left + WIDTH - RIGHT) / 2.0, top + 35.0), "middle", &map.x.label);
    });
    Ok(markup.finish())
}

/// Space to the left of the panels, in which the names of rows fit.
fn left(axis: &Axis) -> f64 {
    let longest = axis.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    (TITLE + CHARACTER * longest as f64).clamp(LEFT.0, LEFT.1)
}

fn height(panel: &Panel<'_>, y: &Axis) -> f64 {
    let (least, most, row) = if y.names.is_empty() { NUMBERED } else { NAMED };
    (row * panel.rows() as f64).clamp(least, most)
}

/// Scale from 0 to the end of the last cell.
fn scale(axis: &Axis, cells: usize, places: (f64, f64)) -> Scale {
    let step = if axis.step.is_finite() && axis.step > 0.0 { axis.step } else { 1.0 };
    Scale::new(Spacing::Linear, (0.0, step * cells as f64), places)
}

/// A picture whose pixels keep sharp edges at any size.
fn picture(svg: &mut Markup, (x, y, width, height): (f64, f64, f64, f64), data: &str) {
    let attributes = [
        ("x", &*place(x)),
        ("y", &*place(y)),
        ("width", &*format!("{width:.3}")),
        ("height", &*place(height)),
        ("preserveAspectRatio", "none"),
        ("image-rendering", "pixelated"),
        ("href", data),
    ];
    svg.shape("image", &attributes);
}

/// The axis to the left of a panel: names of its rows, or numbers.
fn rows(svg: &mut Markup, panel: &Panel<'_>, axis: &Axis, (left, top, height): (f64, f64, f64)) {
    let row = height / panel.rows() as f64;
    if axis.names.len() == panel.rows() && row >= LOWEST_NAMED {
        let size = place(row.min(12.0));
        for (at, name) in axis.names.iter().enumerate() {
            let y = place(top + height - (at as f64 + 0.5) * row + 0.35 * row.min(12.0));
            let name = if name.trim().is_empty() { "␣" } else { name };
            let attributes =
                [("x", &*place(left - 5.0)), ("y", &*y), ("text-anchor", "end"), ("font-size", &*size)];
            svg.leaf("text", &attributes, name);
        }
    } else {
        let y = scale(axis, panel.rows(), (top + height, top));
        for tick in y.ticks(5) {
            let at = place(y.at(tick.value));
            line(svg, [&place(left - 4.0), &place(left), &at, &at]);
            words(svg, (left - 6.0, y.at(tick.value) + 4.0), "end", &tick.label);
        }
    }
    let (x, y) = (place(12.0), place(top + height / 2.0));
    let turned = format!("rotate(-90 {x} {y})");
    let attributes = [("x", &*x), ("y", &*y), ("text-anchor", "middle"), ("transform", &*turned)];
    svg.leaf("text", &attributes, &axis.label);
}

/// The colour bar to the right of the first panel.
fn colours(svg: &mut Markup, map: &Heatmap<'_>, (top, height): (f64, f64), bar: &str) {
    let left = WIDTH - RIGHT + 14.0;
    picture(svg, (left, top, BAR, height), bar);
    words(svg, (WIDTH - 2.0, top - 6.0), "end", &map.unit);
    let (low, high) = map.ends;
    words(svg, (left + BAR + 4.0, top + 10.0), "start", &number(high));
    words(svg, (left + BAR + 4.0, top + height), "start", &number(low));
}

fn line(svg: &mut Markup, [x1, x2, y1, y2]: [&str; 4]) {
    svg.shape("line", &[("x1", x1), ("x2", x2), ("y1", y1), ("y2", y2), ("stroke", "#777")]);
}

fn words(svg: &mut Markup, (x, y): (f64, f64), anchor: &str, text: &str) {
    svg.leaf("text", &[("x", &place(x)), ("y", &place(y)), ("text-anchor", anchor)], text);
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn data_uri(raster: &Raster) -> Result<String, HeatmapError> {
    Ok(format!("data:image/png;base64,{}", STANDARD.encode(raster.png()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Attention, LogMel};

    #[test]
    fn spectrograms_stand_above_each_other_on_one_axis_of_time() {
        let (target, predicted) = (vec![-5.0; 300 * 80], vec![-11.5; 150 * 80]);
        let of = |values| LogMel::new(values, 80).unwrap();
        let map = Heatmap::mels("LJ001 <0001>", of(&target), of(&predicted), 256.0 / 22_050.0).unwrap();
        let svg = map.svg().unwrap();
        for part in [
            "<title>LJ001 &lt;0001&gt;</title><desc>Log-mel spectrograms: the target&#39;s of 3.48 s above the predicted one&#39;s of 1.74 s.</desc>",
            ">Target</text>",
            ">Predicted</text>",
            ">seconds</text>",
            ">mel band</text>",
            ">-5.00</text>",
            ">-11.50</text>",
            "width=\"628.000\"",
            "width=\"314.000\"",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert_eq!(svg.matches("<image ").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(map.png().unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn symbols_have_their_names_where_there_is_room() {
        let attention = |weights, symbols| Attention::new(weights, symbols, 4, symbols).unwrap();
        let names: Vec<String> = ["h", "&", " "].map(str::to_owned).into();
        let few = Heatmap::alignment("", attention(&[0.25; 12], 3), 0.01, &names).unwrap().svg().unwrap();
        assert!(few.contains(">&amp;</text>") && few.contains(">␣</text>"), "{few}");
        assert!(few.contains(">1.00</text>") && few.contains(">0.00</text>"), "{few}");
        let names = vec!["x".to_owned(); 400];
        let weights = vec![0.25; 1600];
        let many = Heatmap::alignment("", attention(&weights, 400), 0.01, &names).unwrap().svg().unwrap();
        assert!(!many.contains(">x</text>") && many.contains(">400</text>"), "{many}");
        // Long names have room.
        let names = vec!["T-shirt/top".to_owned(); 3];
        let long = Heatmap::alignment("", attention(&[0.25; 12], 3), 0.01, &names).unwrap().svg().unwrap();
        assert!(long.contains("<text x=\"99.8\" ") && few.contains("<text x=\"53\" "), "{long}");
        let names = vec!["x".to_owned(); 400];
        // The number of names differs from the number of rows.
        let short = Heatmap::alignment("", attention(&[0.25; 12], 3), f64::NAN, &names).unwrap();
        assert!(!short.svg().unwrap().contains("NaN"));
    }
}
