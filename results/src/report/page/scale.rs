//! Maps numbers to positions: linear and logarithmic scales with round ticks.

/// Division of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Spacing {
    /// Equal differences have equal distances.
    Linear,
    /// Equal ratios have equal distances; only for positive numbers.
    Log,
}

/// Maps numbers from `low` to `high` to positions from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct Scale {
    spacing: Spacing,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// A labelled number of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Tick {
    /// The number.
    pub value: f64,
    /// Label of the tick.
    pub label: String,
}

impl Scale {
    /// A scale for a range. A range of a single number is widened around it. A logarithmic range
    /// that contains numbers without a logarithm becomes linear.
    pub fn new(spacing: Spacing, (low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (low, high) = if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
        let spacing = if low > 0.0 { spacing } else { Spacing::Linear };
        let (low, high) = match spacing {
            _ if high > low => (low, high),
            Spacing::Log => (low / 2.0, low * 2.0),
            Spacing::Linear if low == 0.0 => (0.0, 1.0),
            Spacing::Linear => (low - 0.1 * low.abs(), low + 0.1 * low.abs()),
        };
        Self { spacing, low, high, from, to }
    }

    /// The same scale with its ends moved to round numbers.
    pub fn rounded(mut self, most: usize) -> Self {
        if self.spacing == Spacing::Linear {
            let step = step(self.high - self.low, most);
            self.low = (self.low / step + 1e-9).floor() * step;
            self.high = (self.high / step - 1e-9).ceil() * step;
        }
        self
    }

    /// Position of a number; numbers beyond an end get the position of that end.
    pub fn at(&self, value: f64) -> f64 {
        let place = |value: f64| match self.spacing {
            Spacing::Linear => value,
            Spacing::Log => value.max(f64::MIN_POSITIVE).ln(),
        };
        let share = (place(value) - place(self.low)) / (place(self.high) - place(self.low));
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round numbers within the scale, at most `most` (at least three are allowed).
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(3);
        let values = match self.spacing {
            Spacing::Linear => self.linear(most),
            Spacing::Log => self.logarithmic(most),
        };
        let labels = match self.spacing {
            Spacing::Linear => labels(&values),
            // Values on a logarithmic scale may differ widely, so each is labelled separately.
            Spacing::Log => values.iter().flat_map(|value| labels(&[*value])).collect(),
        };
        values.into_iter().zip(labels).map(|(value, label)| Tick { value, label }).collect()
    }

    fn linear(&self, most: usize) -> Vec<f64> {
        let step = step(self.high - self.low, most);
        let first = (self.low / step - 1e-9).ceil();
        let last = (self.high / step + 1e-9).floor();
        (0..)
            .map(|i| first + f64::from(i))
            .take_while(|i| *i <= last)
            .take(most + 1)
            .map(|i| i * step)
            .collect()
    }

    fn logarithmic(&self, most: usize) -> Vec<f64> {
        let inside = |value: &f64| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(value);
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        for digits in [&[1.0, 2.0, 5.0][..], &[1.0]] {
            let all =
                (first..=last).flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
            let found: Vec<f64> = all.filter(inside).collect();
            if (2..=most).contains(&found.len()) {
                return found;
            }
            if found.len() > most && digits.len() == 1 {
                let every = found.len().div_ceil(most);
                return found.into_iter().step_by(every).collect();
            }
        }
        // Less than a decade: as on a linear scale.
        self.linear(most)
    }
}

/// The smallest step of 1, 2 or 5 times a power of ten that fits at most `most` times into a width.
fn step(width: f64, most: usize) -> f64 {
    let least = width / most.max(1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= least * 0.999_999);
    step.filter(|step| step.is_finite() && *step > 0.0).unwrap_or(1.0)
}

/// Labels of ticks, all with the same unit, each with the fewest digits that state it exactly.
fn labels(values: &[f64]) -> Vec<String> {
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let (unit, name) = match largest {
        x if x >= 1e9 => (1.0, "e"),
        x if x >= 1e6 => (1e6, "M"),
        x if x >= 1e4 => (1e3, "k"),
        x if x > 0.0 && x < 1e-3 => (1.0, "e"),
        _ => (1.0, ""),
    };
    let label = |value: &f64| match name {
        _ if *value == 0.0 => "0".to_owned(),
        "e" => format!("{}", Exponent(*value)),
        name => format!("{}{name}", plain(value / unit)),
    };
    values.iter().map(label).collect()
}

/// Up to six decimals, without trailing zeros.
fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        return Exponent(value).to_string();
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Scientific notation: `5e-4`.
struct Exponent(f64);

impl std::fmt::Display for Exponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.2e}", self.0);
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        write!(f, "{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spacing: Spacing, range: (f64, f64), most: usize) -> Vec<String> {
        Scale::new(spacing, range, (0.0, 100.0)).ticks(most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(names(Spacing::Linear, (0.0, 800.0), 5), ["0", "200", "400", "600", "800"]);
        assert_eq!(names(Spacing::Linear, (0.13, 0.87), 4), ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(names(Spacing::Linear, (0.0, 300_000.0), 4), ["0", "100k", "200k", "300k"]);
        assert_eq!(names(Spacing::Linear, (0.0, 2.5e6), 5), ["0", "0.5M", "1M", "1.5M", "2M", "2.5M"]);
        assert_eq!(names(Spacing::Linear, (0.0, 7e-4), 4), ["0", "2e-4", "4e-4", "6e-4"]);
        assert_eq!(names(Spacing::Linear, (-3.0, 3.0), 3), ["-2", "0", "2"]);
        assert_eq!(names(Spacing::Log, (1.5, 300.0), 8), ["2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(names(Spacing::Log, (128.0, 65536.0), 4), ["1000", "10k"]);
        assert_eq!(names(Spacing::Log, (1.0, 1e12), 4), ["1", "10k", "100M", "1e12"]);
        assert_eq!(names(Spacing::Log, (2.1, 2.9), 5), ["2.2", "2.4", "2.6", "2.8"]);
        for range in
            [(0.0, 0.0), (5.0, 5.0), (-1.0, -1.0), (f64::NAN, 1.0), (1e-300, 1e300), (1e300, 1.7e308)]
        {
            for spacing in [Spacing::Linear, Spacing::Log] {
                let ticks = names(spacing, range, 5);
                assert!((1..=7).contains(&ticks.len()), "{range:?} {ticks:?}");
            }
        }
    }

    #[test]
    fn places_run_from_end_to_end() {
        let linear = Scale::new(Spacing::Linear, (10.0, 20.0), (100.0, 0.0));
        assert_eq!(
            [9.0, 10.0, 15.0, 20.0, 21.0].map(|value| linear.at(value)),
            [100.0, 100.0, 50.0, 0.0, 0.0]
        );
        let log = Scale::new(Spacing::Log, (1.0, 100.0), (0.0, 10.0));
        assert!((log.at(10.0) - 5.0).abs() < 1e-9 && log.at(0.0) == 0.0);
        // A range with values that have no logarithm uses a linear scale.
        assert_eq!(Scale::new(Spacing::Log, (0.0, 100.0), (0.0, 10.0)).at(50.0), 5.0);
        let rounded = Scale::new(Spacing::Linear, (0.13, 0.87), (0.0, 1.0)).rounded(5);
        assert_eq!((rounded.low, rounded.high), (0.0, 1.0));
    }
}
