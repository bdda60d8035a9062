//! Whether synthesis ended where it should.

use serde::{Deserialize, Serialize};

use super::alignment::AlignmentScore;

/// Symbols at the end that need no step of their own: a full stop and the sign of the end. Of long texts, a tenth.
const UNREAD: f64 = 2.0;
const UNREAD_SHARE: f64 = 0.1;

/// How an utterance ended. Steps may be of one frame or more; those of the target are of as many.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Steps made.
    pub steps: usize,
    /// Did the model say so? Else it was cut off where no more steps were allowed.
    pub stopped: bool,
    /// Symbols of its text.
    pub symbols: usize,
    /// [`AlignmentScore::reached`].
    pub reached: f64,
    /// Steps of the recording, where there is one.
    pub target: Option<usize>,
}

impl Stop {
    /// From what attention read.
    pub fn new(
        steps: usize,
        stopped: bool,
        symbols: usize,
        score: &AlignmentScore,
        target: Option<usize>,
    ) -> Self {
        Self { steps, stopped, symbols, reached: score.reached, target }
    }

    /// What is wrong with it, if anything.
    pub fn error(&self) -> Option<StopError> {
        let symbols = self.symbols as f64;
        let unread = (1.0 - self.reached) * symbols;
        match self.stopped {
            false => Some(StopError::Never),
            true if unread > UNREAD.max(UNREAD_SHARE * symbols) + 1e-6 => Some(StopError::Early),
            true => None,
        }
    }

    /// |steps / target - 1|, where there is a target.
    pub fn length_error(&self) -> Option<f64> {
        let target = self.target.filter(|target| *target > 0)?;
        Some((self.steps as f64 / target as f64 - 1.0).abs())
    }
}

/// A wrong end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopError {
    /// It stopped with more than two symbols, and more than a tenth of them, still unread at the end of the text.
    Early,
    /// It did not stop.
    Never,
}

/// How a set's utterances ended.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StopCounts {
    /// Utterances.
    pub utterances: usize,
    /// Stopped before the text was read.
    pub early: usize,
    /// Cut off.
    pub never: usize,
    /// Mean of [`Stop::length_error`] over those that have a target.
    pub length_error: Option<f64>,
}

impl StopCounts {
    /// Over a set.
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
