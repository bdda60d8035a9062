//! Values of a metric over the steps of a run that another program tracked.

use std::path::PathBuf;

use zoo_recipes::Direction;

/// Maximum number of runs in a folder.
pub const MOST_RUNS: usize = 10_000;

/// Maximum number of values of one metric of a run.
pub const MOST_POINTS: usize = 10_000_000;

/// A value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub step: i64,
    pub value: f64,
}

/// The values of a metric in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the run, as its tracker shows it.
    pub run: String,
    /// Folder of the run.
    pub folder: PathBuf,
    /// Values in the order in which they were written.
    pub points: Vec<Point>,
    /// What a reader of the run should know, such as a torn file.
    pub notes: Vec<String>,
}

/// Which value of a run is its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum At {
    /// The best value of the run. It was chosen by the score itself, which makes it optimistic
    Best,
    /// The value of the highest step
    #[default]
    Last,
}

impl Series {
    /// The score of the run; `None` without a finite value. Of equal ones, the earliest best and
    /// the newest last one.
    pub fn score(&self, at: At, direction: Direction) -> Option<Point> {
        let finite = self.points.iter().copied().filter(|point| point.value.is_finite());
        match at {
            At::Last => {
                self.points.iter().copied().max_by_key(|point| point.step).filter(|p| p.value.is_finite())
            }
            At::Best => finite.reduce(|best, point| {
                let better = match direction {
                    Direction::Higher => point.value > best.value,
                    Direction::Lower => point.value < best.value,
                };
                if better { point } else { best }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_is_that_of_the_highest_step_and_the_best_one_follows_the_direction() {
        let of = |points: &[(i64, f64)]| Series {
            run: "a".to_owned(),
            folder: PathBuf::from("a"),
            points: points.iter().map(|&(step, value)| Point { step, value }).collect(),
            notes: Vec::new(),
        };
        let series = of(&[(1, 3.0), (3, 2.0), (2, f64::NAN), (4, 1.0), (4, 1.5)]);
        let score = |series: &Series, at, direction| series.score(at, direction).map(|p| (p.step, p.value));
        assert_eq!(score(&series, At::Last, Direction::Higher), Some((4, 1.5)));
        assert_eq!(score(&series, At::Best, Direction::Higher), Some((1, 3.0)));
        assert_eq!(score(&series, At::Best, Direction::Lower), Some((4, 1.0)));
        // A run that ended with NaN has no last score.
        let diverged = of(&[(1, 3.0), (2, f64::NAN)]);
        assert_eq!(score(&diverged, At::Last, Direction::Higher), None);
        assert_eq!(score(&diverged, At::Best, Direction::Higher), Some((1, 3.0)));
        assert_eq!(score(&of(&[]), At::Best, Direction::Higher), None);
    }
}
