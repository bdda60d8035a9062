//! A curve of any length in little memory, and its path with few points.

use std::fmt::Write as _;

use super::scale::Scale;

/// Maximum number of buckets of a curve: several for each pixel on which it is drawn.
const MOST: usize = 4096;

/// Points in the order of x. For each bucket the lowest and the highest point are kept. Buckets
/// grow as points are added. A value that is not finite breaks the curve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    buckets: Vec<Bucket>,
    /// Number of points in a full bucket, as a power of two.
    doublings: u32,
    /// Number of points in the last bucket.
    filled: u64,
    broken: bool,
    first: Option<Point>,
    last: Option<Point>,
    points: u64,
    not_finite: u64,
}

/// (x, y).
pub type Point = (f64, f64);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bucket {
    low: Point,
    high: Point,
    /// Whether the curve is broken before this bucket.
    anew: bool,
}

impl Bucket {
    fn with(self, other: Self) -> Self {
        Self {
            low: if other.low.1 < self.low.1 { other.low } else { self.low },
            high: if other.high.1 > self.high.1 { other.high } else { self.high },
            anew: self.anew,
        }
    }

    /// Its points from left to right.
    fn in_order(&self) -> [Point; 2] {
        if self.low.0 <= self.high.0 { [self.low, self.high] } else { [self.high, self.low] }
    }
}

impl Series {
    /// Appends a point.
    pub fn push(&mut self, x: f64, y: f64) {
        if !(x.is_finite() && y.is_finite()) {
            self.not_finite += 1;
            self.broken = true;
            return;
        }
        self.points += 1;
        self.first.get_or_insert((x, y));
        self.last = Some((x, y));
        let new = Bucket { low: (x, y), high: (x, y), anew: std::mem::take(&mut self.broken) };
        match self.buckets.last_mut() {
            Some(bucket) if self.filled < 1 << self.doublings && !new.anew => {
                *bucket = bucket.with(new);
                self.filled += 1;
            }
            _ => {
                if self.buckets.len() == MOST {
                    self.buckets = self
                        .buckets
                        .chunks(2)
                        .map(|pair| pair.iter().skip(1).fold(pair[0], |a, b| a.with(*b)))
                        .collect();
                    self.doublings += 1;
                }
                self.buckets.push(new);
                self.filled = 1;
            }
        }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// Number of points added, not counting those that are not finite.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Number of points that are not finite.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }

    /// The first point.
    pub fn first(&self) -> Option<Point> {
        self.first
    }

    /// The last point.
    pub fn last(&self) -> Option<Point> {
        self.last
    }

    /// The lowest point.
    pub fn lowest(&self) -> Option<Point> {
        self.buckets
            .iter()
            .map(|bucket| bucket.low)
            .reduce(|low, next| if next.1 < low.1 { next } else { low })
    }

    /// The highest point.
    pub fn highest(&self) -> Option<Point> {
        self.buckets
            .iter()
            .map(|bucket| bucket.high)
            .reduce(|high, next| if next.1 > high.1 { next } else { high })
    }

    /// The y of the point that was added with this x, if all points of its bucket are kept.
    pub fn at(&self, x: f64) -> Option<f64> {
        let points = self.buckets.iter().flat_map(Bucket::in_order);
        points.into_iter().find(|point| point.0 == x).map(|point| point.1)
    }

    /// Unbroken pieces of the curve. In each unit of `x` there are at most two points, the lowest
    /// and the highest, in order.
    fn pieces(&self, x: &Scale) -> Vec<Vec<Point>> {
        let column = |bucket: &Bucket| x.at(bucket.in_order()[0].0).floor();
        let mut pieces: Vec<Vec<Bucket>> = Vec::new();
        for bucket in &self.buckets {
            match pieces.last_mut() {
                Some(piece) if !bucket.anew => match piece.last_mut() {
                    Some(last) if column(last) == column(bucket) => *last = last.with(*bucket),
                    _ => piece.push(*bucket),
                },
                _ => pieces.push(vec![*bucket]),
            }
        }
        let points = |piece: Vec<Bucket>| {
            let mut points: Vec<Point> = piece.iter().flat_map(Bucket::in_order).collect();
            points.dedup();
            points
        };
        let mut pieces: Vec<Vec<Point>> = pieces.into_iter().map(points).collect();
        // The curve ends at its last point, not at the last extreme.
        if let (Some(last), Some(piece)) = (self.last, pieces.last_mut())
            && piece.last() != Some(&last)
        {
            piece.push(last);
        }
        pieces
    }

    /// The data of an SVG path.
    pub(super) fn path(&self, x: &Scale, y: &Scale) -> String {
        let mut path = String::new();
        for piece in self.pieces(x) {
            for (at, point) in piece.iter().enumerate() {
                let letter = if at == 0 { "M" } else { " " };
                let _ = write!(path, "{letter}{} {}", place(x.at(point.0)), place(y.at(point.1)));
            }
            if piece.len() == 1 {
                // With round line caps, a line of zero length is a dot.
                path.push_str("h0");
            }
        }
        path
    }

    /// At most one point in each unit of `x`, for marks.
    pub(super) fn marks(&self, x: &Scale) -> Vec<Point> {
        let mut points: Vec<Point> = self.pieces(x).into_iter().flatten().collect();
        points.dedup_by_key(|point| x.at(point.0).floor());
        points
    }
}

/// A coordinate with one decimal.
pub(in crate::report) fn place(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::scale::Spacing;

    fn scales(points: f64) -> (Scale, Scale) {
        let x = Scale::new(Spacing::Linear, (0.0, points), (0.0, 400.0));
        (x, Scale::new(Spacing::Linear, (-1.0, 1.0), (200.0, 0.0)))
    }

    #[test]
    fn a_million_points_are_a_small_path_that_keeps_every_extreme() {
        let mut series = Series::default();
        let n = 1_000_000;
        for i in 0..n {
            let y = match i {
                123_456 => 0.9,
                765_432 => -0.9,
                _ => f64::from(i % 7) / 100.0,
            };
            series.push(f64::from(i), y);
        }
        assert!(series.buckets.len() <= MOST, "{}", series.buckets.len());
        assert_eq!(
            (series.points(), series.lowest(), series.highest()),
            (1_000_000, Some((765_432.0, -0.9)), Some((123_456.0, 0.9)))
        );
        let (x, y) = scales(f64::from(n));
        let path = series.path(&x, &y);
        assert!(path.len() < 12_000, "{} bytes", path.len());
        assert!(
            path.contains(&format!("{} {}", place(x.at(123_456.0)), place(y.at(0.9)))),
            "the peak is gone"
        );
        assert!(
            path.contains(&format!("{} {}", place(x.at(765_432.0)), place(y.at(-0.9)))),
            "the dip is gone"
        );
        assert!(series.marks(&x).len() <= 401);
    }

    #[test]
    fn few_points_stay_as_they_are_and_gaps_stay_gaps() {
        let mut series = Series::default();
        for (x, y) in [(0.0, 0.0), (100.0, 1.0), (200.0, f64::NAN), (300.0, -1.0), (400.0, f64::INFINITY)] {
            series.push(x, y);
        }
        let (x, y) = scales(400.0);
        assert_eq!(series.path(&x, &y), "M0 100 100 0M300 200h0");
        assert_eq!((series.points(), series.not_finite(), series.last()), (3, 2, Some((300.0, -1.0))));
        assert_eq!(Series::default().path(&x, &y), "");
    }

    #[test]
    fn the_end_is_drawn_where_it_is() {
        let mut series = Series::default();
        for i in 0..50 {
            series.push(399.0 + f64::from(i) / 50.0, [0.0, 0.5, -0.5][i as usize % 3]);
        }
        let (x, y) = scales(400.0);
        let end = series.last().unwrap();
        assert!(series.path(&x, &y).ends_with(&format!(" {} {}", place(x.at(end.0)), place(y.at(end.1)))));
    }
}
