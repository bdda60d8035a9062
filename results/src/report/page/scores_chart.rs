//! Chart of the scores of several runs with their intervals, beside the published values.

use super::chart::{Style, WIDTH};
use super::markup::Markup;
use super::scale::{Scale, Spacing};
use super::series::place;
use crate::verdict::number;

/// Space for the names of runs: at least, and at most.
const LEFT: (f64, f64) = (120.0, 250.0);
/// Width of a character on a phone, where the letters are largest.
const CHARACTER: f64 = 8.6;
const RIGHT: f64 = 16.0;
const TOP: f64 = 10.0;
const ROW: f64 = 24.0;
const BOTTOM: f64 = 26.0;

/// A run's score.
#[derive(Debug, Clone)]
pub(super) struct ScoreRow {
    /// Name of the run.
    pub name: String,
    /// Style of the run.
    pub style: Style,
    /// The score.
    pub value: f64,
    /// Ends of its interval.
    pub interval: Option<(f64, f64)>,
}

/// A published score.
#[derive(Debug, Clone)]
pub(super) struct Published {
    /// Source of the score.
    pub name: String,
    /// The score.
    pub value: f64,
    /// The worst score that still counts as reproduced.
    pub margin: Option<f64>,
}

/// The drawing: a row for each run, a line for each published value, and a band for the margin.
pub(super) fn draw(markup: &mut Markup, id: &str, title: &str, rows: &[ScoreRow], published: &[Published]) {
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let ends = rows.iter().flat_map(|row| {
        let (low, high) = row.interval.unwrap_or((row.value, row.value));
        [low, row.value, high]
    });
    let ends = ends.chain(published.iter().flat_map(|one| [one.value, one.margin.unwrap_or(one.value)]));
    let (low, high) = ends
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let left = (16.0 + CHARACTER * longest as f64).clamp(LEFT.0, LEFT.1);
    let x = Scale::new(Spacing::Linear, (low, high), (left, WIDTH - RIGHT)).rounded(5);
    let bottom = place(height - BOTTOM);
    let (title_id, about_id) = (format!("{id}-title"), format!("{id}-about"));
    let labelled = format!("{title_id} {about_id}");
    let size = format!("0 0 {WIDTH} {height}");
    let attributes = [
        ("viewBox", size.as_str()),
        ("role", "img"),
        ("aria-labelledby", labelled.as_str()),
        ("class", "chart"),
    ];
    markup.element("svg", &attributes, |svg| {
        svg.leaf("title", &[("id", &title_id)], title);
        svg.leaf("desc", &[("id", &about_id)], &about(rows, published));
        svg.element("g", &[("class", "axis"), ("aria-hidden", "true")], |g| {
            for tick in x.ticks(5) {
                let at = place(x.at(tick.value));
                g.shape("line", &[("x1", &at), ("x2", &at), ("y1", &place(TOP)), ("y2", &bottom)]);
                g.leaf("text", &[("x", &at), ("y", &place(height - 8.0)), ("class", "middle")], &tick.label);
            }
        });
        for one in published {
            if let Some(margin) = one.margin {
                let (from, to) = (x.at(one.value.min(margin)), x.at(one.value.max(margin)));
                let attributes = [
                    ("x", place(from)),
                    ("width", place(to - from)),
                    ("y", place(TOP)),
                    ("height", place(height - BOTTOM - TOP)),
                ];
                let mut attributes: Vec<(&str, &str)> =
                    attributes.iter().map(|(key, value)| (*key, value.as_str())).collect();
                attributes.push(("class", "band"));
                svg.shape("rect", &attributes);
            }
            let at = place(x.at(one.value));
            let attributes =
                [("class", "published"), ("x1", &at), ("x2", &at), ("y1", &place(TOP)), ("y2", &bottom)];
            svg.element("line", &attributes, |line| line.leaf("title", &[], &one.name));
        }
        for (at, row) in rows.iter().enumerate() {
            let y = TOP + ROW * (at as f64 + 0.5);
            svg.element("g", &[("class", &row.style.class())], |g| {
                g.leaf("title", &[], &row_text(row));
                g.leaf(
                    "text",
                    &[("x", &place(left - 10.0)), ("y", &place(y + 4.0)), ("class", "end label")],
                    &row.name,
                );
                if let Some((low, high)) = row.interval {
                    let (from, to) = (place(x.at(low)), place(x.at(high)));
                    let whiskers = format!(
                        "M{from} {y0}V{y1}M{from} {y}H{to}M{to} {y0}V{y1}",
                        y0 = place(y - 4.0),
                        y1 = place(y + 4.0),
                        y = place(y)
                    );
                    g.shape("path", &[("class", "interval"), ("d", &whiskers)]);
                }
                g.shape("circle", &[("cx", &place(x.at(row.value))), ("cy", &place(y)), ("r", "5")]);
            });
        }
    });
}

fn row_text(row: &ScoreRow) -> String {
    let interval = row
        .interval
        .map_or_else(String::new, |(low, high)| format!(" ({} to {})", number(low), number(high)));
    format!("{}: {}{interval}", row.name, number(row.value))
}

fn about(rows: &[ScoreRow], published: &[Published]) -> String {
    let published = published.iter().map(|one| format!("{}.", one.name));
    rows.iter().map(|row| format!("{}.", row_text(row))).chain(published).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_row_and_the_published_score_a_line() {
        let row = |name: &str, value, interval| ScoreRow {
            name: name.into(),
            style: Style::default(),
            value,
            interval,
        };
        let rows = [row("fp32, seed 1", 2.5, Some((1.0, 4.0))), row("mixed, seed 1", 3.0, None)];
        let published = [Published { name: "published 0.42".into(), value: 0.42, margin: Some(1.26) }];
        let mut markup = Markup::default();
        draw(&mut markup, "x", "wer", &rows, &published);
        let text = markup.finish();
        assert!(text.contains("<desc id=\"x-about\">fp32, seed 1: 2.50 (1.00 to 4.00). mixed, seed 1: 3.00. published 0.42.</desc>"), "{text}");
        let counts = ["<circle", "class=\"interval\"", "class=\"band\"", "class=\"published\""]
            .map(|part| text.matches(part).count());
        assert_eq!(counts, [2, 1, 1, 1]);
        let mut markup = Markup::default();
        draw(&mut markup, "x", "wer", &[row("r", 5.0, None)], &[]);
        assert!(!markup.finish().contains("NaN"));
    }
}
