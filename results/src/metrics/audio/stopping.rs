//! Checks whether synthesis stopped at the right place.

use serde::{Deserialize, Serialize};

use super::alignment::AlignmentScore;

/// Number of symbols at the end that need no step of their own: a full stop and the end symbol. For
/// long texts, a tenth of the symbols.
const UNREAD: f64 = 2.0;
const UNREAD_SHARE: f64 = 0.1;

/// How an utterance ended. A step may have one frame or more; the target's steps have the same
/// number of frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Number of steps made.
    pub steps: usize,
    /// Whether the model predicted the stop. Otherwise it was cut off at the maximum number of
    /// steps.
    pub stopped: bool,
    /// Number of symbols of the text.
    pub symbols: usize,
    /// [`AlignmentScore::reached`] of the utterance.
    pub reached: f64,
    /// Number of steps of the recording, if there is one.
    pub target: Option<usize>,
}

impl Stop {
    /// From the attention of the utterance.
    pub fn new(
        steps: usize,
        stopped: bool,
        symbols: usize,
        score: &AlignmentScore,
        target: Option<usize>,
    ) -> Self {
        Self { steps, stopped, symbols, reached: score.reached, target }
    }

    /// The error of this stop, if there is one.
    pub fn error(&self) -> Option<StopError> {
        let symbols = self.symbols as f64;
        let unread = (1.0 - self.reached) * symbols;
        match self.stopped {
            false => Some(StopError::Never),
            true if unread > UNREAD.max(UNREAD_SHARE * symbols) + 1e-6 => Some(StopError::Early),
            true => None,
        }
    }

    /// |steps / target - 1|, if there is a target.
    pub fn length_error(&self) -> Option<f64> {
        let target = self.target.filter(|target| *target > 0)?;
        Some((self.steps as f64 / target as f64 - 1.0).abs())
    }
}

/// A wrong stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopError {
    /// It stopped while more than two symbols, and more than a tenth of them, were unread at the
    /// end of the text.
    Early,
    /// It did not stop.
    Never,
}

impl StopError {
    /// The error in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Never => "never",
        }
    }
}

/// How the utterances of a set ended.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StopCounts {
    /// Number of utterances.
    pub utterances: usize,
    /// Number that stopped before the end of the text.
    pub early: usize,
    /// Number that were cut off.
    pub never: usize,
    /// Mean of [`Stop::length_error`] over the utterances with a target.
    pub length_error: Option<f64>,
}

impl StopCounts {
    /// Counts over a set.
    pub fn of(stops: &[Stop]) -> Self {
        let count = |what| stops.iter().filter(|stop| stop.error() == Some(what)).count();
        let errors: Vec<f64> = stops.iter().filter_map(Stop::length_error).collect();
        let mean = || errors.iter().sum::<f64>() / errors.len() as f64;
        Self {
            utterances: stops.len(),
            early: count(StopError::Early),
            never: count(StopError::Never),
            length_error: (!errors.is_empty()).then(mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_right_early_or_never() {
        let stop = |symbols: usize, read: usize, stopped| {
            let score = AlignmentScore {
                focus: 1.0,
                coverage: 1.0,
                diagonality: 1.0,
                reached: read as f64 / symbols as f64,
            };
            Stop::new(90, stopped, symbols, &score, Some(100))
        };
        for (symbols, read, stopped, error) in [
            (100, 100, true, None),
            (100, 90, true, None),
            (100, 89, true, Some(StopError::Early)),
            (10, 8, true, None),
            (10, 7, true, Some(StopError::Early)),
            (1, 1, true, None),
            (100, 100, false, Some(StopError::Never)),
            (100, 10, false, Some(StopError::Never)),
        ] {
            assert_eq!(stop(symbols, read, stopped).error(), error, "{read} of {symbols}");
        }
        let without = Stop { target: None, ..stop(10, 10, true) };
        let counts = StopCounts::of(&[stop(100, 50, true), stop(10, 10, false), without]);
        assert_eq!((counts.utterances, counts.early, counts.never), (3, 1, 1));
        assert!((counts.length_error.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(StopCounts::of(&[Stop { target: Some(0), ..without }]).length_error, None);
        assert_eq!(StopCounts::of(&[]), StopCounts::default());
    }
}
