//! A chart of curves over updates, as a figure with SVG.

use super::markup::Markup;
use super::scale::{Scale, Spacing};
use super::series::{Series, place};
use crate::report::words::grouped;
use crate::verdict::number;

/// Size of the drawing, in its own units; suits a phone and half a desktop screen.
pub(super) const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
/// Number of colours and of dashes in the style sheet; further curves reuse them from the first.
const STYLES: usize = 6;
/// Maximum number of points of a curve that are drawn as dots.
const MOST_DOTS: u64 = 60;
/// Number of points of all curves of a chart that tell their value; least and most of a curve.
const TELLING: (usize, [usize; 2]) = (240, [12, 100]);

/// A chart.
#[derive(Debug, Default)]
pub(super) struct Chart<'a> {
    /// Prefix of the ids of its elements; unique within a page.
    pub id: String,
    /// Title: what it shows.
    pub title: String,
    /// Quantity of the y axis.
    pub unit: String,
    /// Minimum ratio of largest to smallest value for a logarithmic y axis, if the values allow
    /// one; `None` for a linear axis.
    pub log_from: Option<f64>,
    /// Curves of the chart.
    pub lines: Vec<Line<'a>>,
    /// Marks, each set with its label.
    pub marks: Vec<Marks<'a>>,
    /// Published points of trajectories.
    pub bands: Vec<Band>,
    /// Published values.
    pub rules: Vec<Rule>,
}

/// A curve.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Name in the legend.
    pub name: String,
    /// Style of its run.
    pub style: Style,
    /// Points of the curve.
    pub series: &'a Series,
    /// Whether its points are drawn as well.
    pub dotted: bool,
}

/// Marks on a curve.
#[derive(Debug)]
pub(super) struct Marks<'a> {
    /// Label of the marks.
    pub name: String,
    /// Style of the curve that they are on.
    pub style: Style,
    /// Positions of the marks.
    pub series: &'a Series,
}

/// Published numbers of a trajectory: (x, value, published spread).
#[derive(Debug, Clone)]
pub(super) struct Band {
    /// Source of the numbers.
    pub name: String,
    /// Points in rising order of x.
    pub points: Vec<(f64, f64, Option<f64>)>,
}

/// A published value.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// Source of the value.
    pub name: String,
    /// The value.
    pub value: f64,
}

/// Style of a run: the arm chooses the colour. The dashes tell arms and the runs of an arm apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style {
    /// Number of its arm in the page.
    pub arm: usize,
    /// Number of the run among those of its arm.
    pub seed: usize,
}

impl Style {
    /// The CSS classes.
    pub fn class(self) -> String {
        format!("s{} d{}", self.arm % STYLES, (self.arm + self.seed) % STYLES)
    }
}

impl Chart<'_> {
    /// Whether the chart has no content.
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.series.is_empty())
    }

    /// Writes the figure: drawing, legend, and a table of the numbers.
    pub fn write(&self, markup: &mut Markup) {
        let (x, y) = self.scales();
        let scale = if self.is_log() { ", logarithmic scale" } else { "" };
        markup.line();
        markup.element("figure", &[], |figure| {
            figure.element("figcaption", &[], |caption| {
                caption.leaf("strong", &[], &self.title);
                caption.leaf("span", &[("class", "unit")], &format!(" {}{scale}", self.unit));
            });
            let (title, about) = (format!("{}-title", self.id), format!("{}-about", self.id));
            let labelled = format!("{title} {about}");
            let size = format!("0 0 {WIDTH} {HEIGHT}");
            let attributes = [
                ("viewBox", size.as_str()),
                ("role", "img"),
                ("aria-labelledby", labelled.as_str()),
                ("class", "chart"),
            ];
            figure.element("svg", &attributes, |svg| {
                svg.leaf("title", &[("id", &title)], &self.title);
                svg.leaf("desc", &[("id", &about)], &self.about());
                self.axes(svg, &x, &y);
                self.published(svg, &x, &y);
                for line in &self.lines {
                    let class = format!("curve {}", line.style.class());
                    svg.element("path", &[("class", &class), ("d", &line.series.path(&x, &y))], |path| {
                        path.leaf("title", &[], &line.name);
                    });
                    if line.dotted || line.series.points() <= MOST_DOTS {
                        dots(svg, line, &x, &y);
                    }
                }
                self.marked(svg, &x, &y);
                for line in &self.lines {
                    self.tell(svg, line, &x, &y);
                }
            });
            self.legend(figure);
            self.numbers(figure);
        });
    }

    fn is_log(&self) -> bool {
        let (low, high) = self.range();
        self.log_from.is_some_and(|factor| low > 0.0 && high / low >= factor)
    }

    /// Lowest and highest value of everything shown.
    fn range(&self) -> (f64, f64) {
        let of_lines = self.lines.iter().flat_map(|line| [line.series.lowest(), line.series.highest()]);
        let of_lines = of_lines.flatten().map(|(_, y)| y);
        let of_bands = self.bands.iter().flat_map(|band| &band.points);
        let of_bands = of_bands.flat_map(|(_, value, sigma)| {
            let sigma = sigma.unwrap_or(0.0);
            [value - sigma, value + sigma]
        });
        let of_rules = self.rules.iter().map(|rule| rule.value);
        let all = of_lines.chain(of_bands).chain(of_rules);
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)))
    }

    fn scales(&self) -> (Scale, Scale) {
        let ends = self.lines.iter().filter_map(|line| line.series.last()).map(|(x, _)| x);
        let of_bands = self.bands.iter().flat_map(|band| &band.points).map(|(x, _, _)| *x);
        let last = ends.chain(of_bands).fold(0.0, f64::max);
        let x = Scale::new(Spacing::Linear, (0.0, last), (LEFT, WIDTH - RIGHT));
        let spacing = if self.is_log() { Spacing::Log } else { Spacing::Linear };
        let (low, high) = self.range();
        // If the lowest value is close to zero relative to the highest, the axis starts at zero.
        let low = if spacing == Spacing::Linear && low > 0.0 && low < 0.4 * high { 0.0 } else { low };
        (x, Scale::new(spacing, (low, high), (HEIGHT - BOTTOM, TOP)).rounded(5))
    }

    fn axes(&self, svg: &mut Markup, x: &Scale, y: &Scale) {
        let (right, bottom) = (place(WIDTH - RIGHT), place(HEIGHT - BOTTOM));
        svg.element("g", &[("class", "axis"), ("aria-hidden", "true")], |g| {
            for tick in y.ticks(6) {
                let at = place(y.at(tick.value));
                g.shape("line", &[("x1", &place(LEFT)), ("x2", &right), ("y1", &at), ("y2", &at)]);
                let at = place(y.at(tick.value) + 4.0);
                g.leaf("text", &[("x", &place(LEFT - 6.0)), ("y", &at), ("class", "end")], &tick.label);
            }
            for tick in x.ticks(5) {
                let at = place(x.at(tick.value));
                let below = place(HEIGHT - BOTTOM + 5.0);
                g.shape(
                    "line",
                    &[("x1", &at), ("x2", &at), ("y1", &bottom), ("y2", &below), ("class", "tick")],
                );
                let below = place(HEIGHT - BOTTOM + 20.0);
                g.leaf("text", &[("x", &at), ("y", &below), ("class", "middle")], &tick.label);
            }
            let (middle, below) = (place((LEFT + WIDTH - RIGHT) / 2.0), place(HEIGHT - 6.0));
            g.leaf("text", &[("x", &middle), ("y", &below), ("class", "middle")], "updates");
            g.shape(
                "line",
                &[("x1", &place(LEFT)), ("x2", &right), ("y1", &bottom), ("y2", &bottom), ("class", "tick")],
            );
        });
    }

    /// Draws the published bands, points and lines.
    fn published(&self, svg: &mut Markup, x: &Scale, y: &Scale) {
        for band in &self.bands {
            let edge = |sign: f64| {
                move |(at, value, sigma): &(f64, f64, Option<f64>)| (*at, value + sign * sigma.unwrap_or(0.0))
            };
            if band.points.iter().any(|(_, _, sigma)| sigma.is_some()) {
                let upper = band.points.iter().map(edge(1.0));
                let lower = band.points.iter().rev().map(edge(-1.0));
                let outline: Vec<String> = upper
                    .chain(lower)
                    .map(|(at, value)| format!("{},{}", place(x.at(at)), place(y.at(value))))
                    .collect();
                svg.shape("polygon", &[("class", "band"), ("points", &outline.join(" "))]);
            }
            for (at, value, sigma) in &band.points {
                let spread = sigma.map_or_else(String::new, |sigma| format!(" ± {}", number(sigma)));
                let (cx, cy) = (x.at(*at), y.at(*value));
                let diamond = format!("M{} {}l5 5l-5 5l-5-5z", place(cx), place(cy - 5.0));
                svg.element("path", &[("class", "published-point"), ("d", &diamond)], |path| {
                    path.leaf(
                        "title",
                        &[],
                        &format!("{}: {}{spread} at {}", band.name, number(*value), grouped(*at as u64)),
                    );
                });
            }
        }
        for rule in &self.rules {
            let at = place(y.at(rule.value));
            let attributes = [
                ("class", "published"),
                ("x1", &place(LEFT)),
                ("x2", &place(WIDTH - RIGHT)),
                ("y1", &at),
                ("y2", &at),
            ];
            svg.element("line", &attributes, |line| line.leaf("title", &[], &rule.name));
        }
    }

    /// Places on a curve that show their value under the pointer.
    fn tell(&self, svg: &mut Markup, line: &Line<'_>, x: &Scale, y: &Scale) {
        let (all, [least, most]) = TELLING;
        let points = line.series.marks(x);
        let step = points.len().div_ceil((all / self.lines.len().max(1)).clamp(least, most)).max(1);
        svg.element("g", &[("class", &format!("tell {}", line.style.class()))], |g| {
            for (at, value) in points.into_iter().step_by(step) {
                let place_of = [("cx", &*place(x.at(at))), ("cy", &*place(y.at(value))), ("r", "5")];
                g.element("circle", &place_of, |circle| {
                    let text = format!("{}: {} at {}", line.name, number(value), grouped(at as u64));
                    circle.leaf("title", &[], &text);
                });
            }
        });
    }

    fn marked(&self, svg: &mut Markup, x: &Scale, y: &Scale) {
        for marks in self.marks.iter().filter(|marks| !marks.series.is_empty()) {
            let triangles: String = (marks.series.marks(x).into_iter())
                .map(|(at, value)| format!("M{} {}l-4-7h8z", place(x.at(at)), place(y.at(value) - 1.0)))
                .collect();
            let class = format!("mark {}", marks.style.class());
            svg.element("path", &[("class", &class), ("d", &triangles)], |path| {
                path.leaf("title", &[], &marks.name)
            });
        }
    }

    /// Lists the curves, then the published values.
    fn legend(&self, figure: &mut Markup) {
        figure.element("ul", &[("class", "legend")], |ul| {
            for line in &self.lines {
                let class = format!("curve {}", line.style.class());
                entry(ul, &line.name, |svg| svg.shape("path", &[("class", &class), ("d", "M1 6h30")]));
            }
            for marks in self.marks.iter().filter(|marks| !marks.series.is_empty()) {
                let class = format!("mark {}", marks.style.class());
                entry(ul, &marks.name, |svg| {
                    svg.shape("path", &[("class", &class), ("d", "M16 10l-4-7h8z")])
                });
            }
            for band in &self.bands {
                entry(ul, &band.name, |svg| {
                    svg.shape("path", &[("class", "published-point"), ("d", "M16 1l5 5l-5 5l-5-5z")]);
                });
            }
            for rule in &self.rules {
                entry(ul, &rule.name, |svg| svg.shape("path", &[("class", "published"), ("d", "M1 6h30")]));
            }
        });
    }

    /// The numbers of the curves, as an alternative to the drawing.
    fn numbers(&self, figure: &mut Markup) {
        figure.element("details", &[], |details| {
            details.leaf("summary", &[], "Numbers");
            details.element("div", &[("class", "scroll")], |div| {
                div.element("table", &[], |table| {
                    table.leaf("caption", &[], &format!("{}, {}: value (at update)", self.title, self.unit));
                    table.element("thead", &[], |head| {
                        head.element("tr", &[], |row| {
                            for title in ["run", "points", "first", "lowest", "highest", "last"] {
                                row.leaf("th", &[("scope", "col")], title);
                            }
                        });
                    });
                    table.element("tbody", &[], |body| {
                        for line in self.lines.iter().filter(|line| !line.series.is_empty()) {
                            let series = line.series;
                            body.element("tr", &[], |row| {
                                row.leaf("th", &[("scope", "row")], &line.name);
                                row.leaf("td", &[], &grouped(series.points()));
                                for point in
                                    [series.first(), series.lowest(), series.highest(), series.last()]
                                {
                                    let text = point.map_or_else(String::new, |(x, y)| {
                                        format!("{} ({})", number(y), grouped(x as u64))
                                    });
                                    row.leaf("td", &[], &text);
                                }
                            });
                        }
                    });
                });
            });
        });
    }

    /// The text description of the drawing.
    fn about(&self) -> String {
        let mut parts = vec![format!("{} over updates.", self.unit)];
        for line in self.lines.iter().filter(|line| !line.series.is_empty()) {
            let (Some((_, first)), Some((at, last))) = (line.series.first(), line.series.last()) else {
                continue;
            };
            parts.push(format!(
                "{}: from {} to {} at update {}.",
                line.name,
                number(first),
                number(last),
                grouped(at as u64)
            ));
            if line.series.not_finite() > 0 {
                parts.push(format!(
                    "{} of its points are not finite and are gaps.",
                    grouped(line.series.not_finite())
                ));
            }
        }
        let published =
            self.bands.iter().map(|band| &band.name).chain(self.rules.iter().map(|rule| &rule.name));
        parts.extend(published.map(|name| format!("{name}.")));
        parts.join(" ")
    }
}

/// Points of a curve with few points.
fn dots(svg: &mut Markup, line: &Line<'_>, x: &Scale, y: &Scale) {
    let dots: String = line
        .series
        .marks(x)
        .into_iter()
        .map(|(at, value)| format!("M{} {}h0", place(x.at(at)), place(y.at(value))))
        .collect();
    svg.shape("path", &[("class", &format!("dots {}", line.style.class())), ("d", &dots)]);
}

/// An entry of a legend.
fn entry(ul: &mut Markup, name: &str, sign: impl FnOnce(&mut Markup)) {
    ul.element("li", &[], |li| {
        li.element("svg", &[("viewBox", "0 0 32 12"), ("class", "sign"), ("aria-hidden", "true")], sign);
        li.leaf("span", &[], name);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(chart: &Chart<'_>) -> String {
        let mut markup = Markup::default();
        chart.write(&mut markup);
        markup.finish()
    }

    #[test]
    fn a_chart_shows_curves_marks_and_what_was_published() {
        let (mut loss, mut overflows) = (Series::default(), Series::default());
        for i in 1..=10 {
            loss.push(f64::from(i) * 10.0, 1000.0 / f64::from(i * i * i));
        }
        overflows.push(50.0, 8.0);
        let chart = Chart {
            id: "loss".into(),
            title: "Loss <of> training".into(),
            unit: "nats".into(),
            log_from: Some(30.0),
            lines: vec![Line {
                name: "fp32, seed 1".into(),
                style: Style { arm: 7, seed: 0 },
                series: &loss,
                dotted: true,
            }],
            marks: vec![Marks {
                name: "overflow".into(),
                style: Style { arm: 1, seed: 0 },
                series: &overflows,
            }],
            bands: vec![Band {
                name: "published".into(),
                points: vec![(20.0, 5.0, Some(1.0)), (200.0, 2.0, None)],
            }],
            rules: vec![Rule { name: "goal".into(), value: 1.5 }],
        };
        let text = drawn(&chart);
        assert!(text.contains("logarithmic scale") && text.contains("Loss &lt;of&gt; training"), "{text}");
        assert!(
            text.contains(
                "<desc id=\"loss-about\">nats over updates. fp32, seed 1: from 1000 to 1.00 at update 100."
            ),
            "{text}"
        );
        // The published point beyond the last update widens the axis.
        assert!(text.contains(">200</text>"), "{text}");
        for part in [
            "class=\"curve s1 d1\"",
            "class=\"mark s1 d1\"",
            "class=\"band\"",
            "class=\"published\"",
            "class=\"dots s1 d1\"",
            "± 1.00",
            "<title>fp32, seed 1: 125.00 at 20</title>",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(text.matches("<tr>").count(), 2);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn a_curve_of_one_number_or_none_is_no_fault() {
        let mut one = Series::default();
        one.push(0.0, 0.01);
        let none = Series::default();
        let line = |series| vec![Line { name: "r".into(), style: Style::default(), series, dotted: false }];
        let text = drawn(&Chart { lines: line(&one), ..Chart::default() });
        assert!(text.contains("h0") && !text.contains("NaN"), "{text}");
        let empty = Chart { lines: line(&none), ..Chart::default() };
        assert!(empty.is_empty() && !drawn(&empty).contains("NaN"));
    }
}
