//! A picture of a profile's histograms, with the limits of FP16: figures 2b and 3 of Micikevicius et
//! al. 2018.

use super::page::markup::Markup;
use super::page::scale::{Scale, Spacing};
use super::page::series::place;
use crate::profile::{
    ABOVE, ExponentHistogram, Fp16Shares, Profile, Quantity, SMALLEST_NORMAL, SMALLEST_SUBNORMAL,
};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;
/// Height of the title of the picture.
const TITLE: f64 = 26.0;
/// Space above the bars of a panel for its title and note, and for the names of the limits.
const HEAD: f64 = 58.0;
/// Height of the highest bar.
const BARS: f64 = 110.0;
/// Space below the bars for the axis.
const FOOT: f64 = 24.0;
/// Exponents that every panel of values shows.
const FP16: (i32, i32) = (SMALLEST_SUBNORMAL - 2, ABOVE);
/// Exponents that the panel of ratios shows.
const RATIOS: (i32, i32) = (0, 12);
/// Exponents to the left of the limit with a scale, for its name.
const ROOM: i32 = 8;
/// Distance of the numbers of the axis.
const STEP: i32 = 8;

/// Class of the figure, by which it is known again.
const PROFILE_FIGURE: &str = "zoo-profile";

/// How FP16 represents values with an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Subnormal,
    Kept,
    Above,
}

impl Fate {
    fn of(quantity: Quantity, exponent: i32) -> Self {
        match (quantity, exponent) {
            (Quantity::Ratios, Quantity::LARGE_RATIO..) => Self::Lost,
            (Quantity::Ratios, _) => Self::Kept,
            (_, ..SMALLEST_SUBNORMAL) => Self::Lost,
            (_, SMALLEST_SUBNORMAL..SMALLEST_NORMAL) => Self::Subnormal,
            (_, SMALLEST_NORMAL..ABOVE) => Self::Kept,
            (_, ABOVE..) => Self::Above,
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Lost => "#b5382a",
            Self::Subnormal => "#d9952f",
            Self::Kept => "#3d6fa8",
            Self::Above => "#6b3a82",
        }
    }
}

/// Whether a file is a figure of [`figure`].
#[must_use]
pub fn is_figure(file: &[u8]) -> bool {
    let mark = PROFILE_FIGURE.as_bytes();
    file.starts_with(b"<svg ") && file.windows(mark.len()).any(|part| part == mark)
}

/// A self-contained SVG file with a panel for each quantity, over all updates and layers of the
/// profile. `scale` is the exponent of the suggested loss scale.
#[must_use]
pub fn figure(title: &str, profile: &Profile, scale: i32) -> String {
    let panels: Vec<Panel> = Quantity::ALL
        .into_iter()
        .map(|quantity| Panel { quantity, histogram: profile.all(quantity), scale })
        .filter(|panel| panel.histogram.values() > 0)
        .collect();
    let height = TITLE + panels.len() as f64 * (HEAD + BARS + FOOT) + 10.0;
    let mut markup = Markup::default();
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", &place(WIDTH)),
        ("height", &place(height)),
        ("viewBox", &format!("0 0 {} {}", place(WIDTH), place(height))),
        ("role", "img"),
        ("class", PROFILE_FIGURE),
        ("font-family", "system-ui, sans-serif"),
        ("font-size", "12"),
        ("fill", "#333"),
    ];
    markup.element("svg", &attributes, |svg| {
        svg.leaf("title", &[], title);
        let about: Vec<String> =
            panels.iter().map(|panel| format!("{}: {}.", panel.title(), panel.note())).collect();
        svg.leaf("desc", &[], &about.join(" "));
        svg.shape("rect", &[("width", "100%"), ("height", "100%"), ("fill", "#fff")]);
        svg.leaf("text", &[("x", &place(LEFT)), ("y", "19"), ("font-size", "15")], title);
        for (number, panel) in panels.iter().enumerate() {
            panel.draw(svg, TITLE + number as f64 * (HEAD + BARS + FOOT));
        }
    });
    markup.finish()
}

/// A histogram of one quantity.
struct Panel {
    quantity: Quantity,
    histogram: ExponentHistogram,
    /// Exponent of the suggested loss scale.
    scale: i32,
}

impl Panel {
    fn title(&self) -> String {
        format!("{}, share of all values by exponent of 2", self.quantity.name())
    }

    /// The shares that the bars do not show well.
    fn note(&self) -> String {
        let histogram = &self.histogram;
        let percent = |count: u64| percent(count, histogram.values());
        if self.quantity == Quantity::Ratios {
            let (lost, unmoved) = (histogram.at_least(Quantity::LARGE_RATIO), histogram.not_finite());
            return format!("{} at 2048 or more, {} unmoved", percent(lost), percent(unmoved));
        }
        let Fp16Shares { lost, subnormal, above, .. } = Fp16Shares::of(histogram, 0);
        let scaled = match self.quantity.is_scaled() && self.scale > 0 {
            true => {
                let lost = Fp16Shares::of(histogram, self.scale).lost;
                format!(" ({} with scale 2^{})", percent(lost), self.scale)
            }
            false => String::new(),
        };
        format!(
            "{} below 2^-24{scaled}, {} subnormal in FP16, {} from 2^16 on, {} are 0",
            percent(lost),
            percent(subnormal),
            percent(above),
            percent(histogram.zeros())
        )
    }

    /// Exponents at whose lower end a limit lies, with their names.
    fn limits(&self) -> Vec<(i32, String)> {
        match self.quantity {
            Quantity::Ratios => vec![(Quantity::LARGE_RATIO, "2048".to_owned())],
            _ => [SMALLEST_SUBNORMAL, SMALLEST_NORMAL, ABOVE]
                .into_iter()
                .map(|at| (at, format!("2^{at}")))
                .collect(),
        }
    }

    /// The exponent at whose lower end FP16's range begins with the suggested scale, if a scale
    /// applies.
    fn scaled_limit(&self) -> Option<i32> {
        (self.quantity.is_scaled() && self.scale > 0).then_some(SMALLEST_SUBNORMAL - self.scale)
    }

    fn draw(&self, svg: &mut Markup, top: f64) {
        let (base, all) = (top + HEAD + BARS, self.histogram.values() as f64);
        let shown = if self.quantity == Quantity::Ratios { RATIOS } else { FP16 };
        let (limits, scaled) = (self.limits(), self.scaled_limit());
        let of_limits = limits.iter().map(|(at, _)| *at);
        let (low, high) = of_limits
            .chain(scaled.map(|at| at - ROOM))
            .chain(self.histogram.ends().into_iter().flat_map(|(low, high)| [low, high]))
            .fold(shown, |(low, high), at| (low.min(at), high.max(at)));
        let x = Scale::new(Spacing::Linear, (f64::from(low), f64::from(high + 1)), (LEFT, WIDTH - RIGHT));
        let highest = self.histogram.exponents().map(|(_, count)| count).max().unwrap_or(0);
        let y =
            Scale::new(Spacing::Linear, (0.0, 100.0 * highest as f64 / all), (base, top + HEAD)).rounded(4);
        svg.leaf(
            "text",
            &[("x", &place(LEFT)), ("y", &place(top + 16.0)), ("font-weight", "600")],
            &self.title(),
        );
        svg.leaf("text", &[("x", &place(LEFT)), ("y", &place(top + 31.0))], &self.note());
        for tick in y.ticks(4) {
            let at = y.at(tick.value);
            line(svg, [LEFT, WIDTH - RIGHT, at, at], "#ddd", "");
            words(svg, (LEFT - 6.0, at + 4.0), "end", &format!("{} %", tick.label));
        }
        for (exponent, count) in self.histogram.exponents() {
            let (from, to) = (x.at(f64::from(exponent)), x.at(f64::from(exponent + 1)));
            let (share, room) = (count as f64 / all, (to - from) * 0.1);
            let head = y.at(100.0 * share);
            let attributes = [
                ("x", &*place(from + room)),
                ("y", &*format!("{head:.2}")),
                ("width", &*place(to - from - 2.0 * room)),
                ("height", &*format!("{:.2}", base - head)),
                ("fill", Fate::of(self.quantity, exponent).colour()),
            ];
            svg.element("rect", &attributes, |bar| {
                bar.leaf("title", &[], &format!("2^{exponent}: {}", percent(count, self.histogram.values())));
            });
        }
        line(svg, [LEFT, WIDTH - RIGHT, base, base], "#777", "");
        for exponent in (low..=high).filter(|exponent| exponent % STEP == 0) {
            let at = x.at(f64::from(exponent));
            line(svg, [at, at, base, base + 4.0], "#777", "");
            words(svg, (at, base + 17.0), "middle", &exponent.to_string());
        }
        for (exponent, name) in &limits {
            let at = x.at(f64::from(*exponent));
            line(svg, [at, at, top + HEAD - 6.0, base], "#333", "4 3");
            words(svg, (at, top + HEAD - 10.0), "middle", name);
        }
        if let Some(exponent) = scaled {
            let at = x.at(f64::from(exponent));
            line(svg, [at, at, top + HEAD - 6.0, base], "#333", "4 3");
            // To the left of the line: a small scale has its limit close to that of FP16.
            words(svg, (at, top + HEAD - 10.0), "end", &format!("2^-24 / 2^{}", self.scale));
        }
    }
}

/// A share of `all` values in percent. A share that rounds to 0 and is not 0 is `<0.01 %`.
#[must_use]
pub fn percent(count: u64, all: u64) -> String {
    let share = 100.0 * count as f64 / all.max(1) as f64;
    match count {
        0 => "0 %".to_owned(),
        _ if share < 0.005 => "<0.01 %".to_owned(),
        _ => format!("{share:.2} %"),
    }
}

fn line(svg: &mut Markup, [x1, x2, y1, y2]: [f64; 4], colour: &str, dashes: &str) {
    let [x1, x2, y1, y2] = [x1, x2, y1, y2].map(place);
    let mut attributes = vec![("x1", &*x1), ("x2", &*x2), ("y1", &*y1), ("y2", &*y2), ("stroke", colour)];
    if !dashes.is_empty() {
        attributes.push(("stroke-dasharray", dashes));
    }
    svg.shape("line", &attributes);
}

fn words(svg: &mut Markup, (x, y): (f64, f64), anchor: &str, text: &str) {
    svg.leaf("text", &[("x", &place(x)), ("y", &place(y)), ("text-anchor", anchor)], text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ByLayer, ProfiledUpdate};

    fn layer(values: &[f32]) -> ByLayer {
        let mut layers = ByLayer::default();
        layers.add("a", &ExponentHistogram::of(values));
        layers
    }

    fn profile() -> Profile {
        let power = |exponent| 2f32.powi(exponent);
        let update = ProfiledUpdate {
            update: 1,
            activation_gradients: layer(&[0.0, power(-30), power(-20), 1.0]),
            ratios: layer(&[power(3), power(11), power(20), f32::INFINITY]),
            ..ProfiledUpdate::default()
        };
        Profile { updates: vec![update] }
    }

    #[test]
    fn each_quantity_has_a_panel_with_its_bars_and_limits() {
        let svg = figure("a & b", &profile(), profile().suggested().log2);
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>"), "{svg}");
        for part in [
            "<title>a &amp; b</title>",
            ">25.00 % below 2^-24 (0 % with scale 2^6), 25.00 % subnormal in FP16, 0 % from 2^16 on, 25.00 % are 0</text>",
            ">50.00 % at 2048 or more, 25.00 % unmoved</text>",
            ">2^-24 / 2^6</text>",
            ">2^16</text>",
            ">2048</text>",
            "<title>2^-30: 25.00 %</title>",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        // A bar for each exponent: three gradients and three ratios.
        assert_eq!(svg.matches("<rect ").count() - 1, 6);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn bars_have_the_colour_of_their_fate() {
        let of = |exponent| Fate::of(Quantity::WeightGradients, exponent);
        let fates = [-127, -25, -24, -15, -14, 15, 16].map(of);
        let due =
            [Fate::Lost, Fate::Lost, Fate::Subnormal, Fate::Subnormal, Fate::Kept, Fate::Kept, Fate::Above];
        assert_eq!(fates, due);
        assert_eq!([10, 11].map(|exponent| Fate::of(Quantity::Ratios, exponent)), [Fate::Kept, Fate::Lost]);
        // A tiny ratio is a large update, which is kept.
        assert_eq!(Fate::of(Quantity::Ratios, -30), Fate::Kept);
    }

    #[test]
    fn shares_that_are_not_0_do_not_look_like_0() {
        assert_eq!([percent(0, 9), percent(1, 1_000_000), percent(1, 3)], ["0 %", "<0.01 %", "33.33 %"]);
        assert_eq!(percent(0, 0), "0 %");
    }
}
