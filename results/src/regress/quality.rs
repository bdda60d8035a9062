//! Compares a score with the recorded one: the verdict's rule, including the noise of the recorded
//! score.

use zoo_recipes::Direction;

use crate::statistics::{mean, normal_quantile, t_quantile};
use crate::verdict::{Outcome, number};

/// Scores of runs that differ only in their seed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// (seed, score, digest of the hypotheses); each seed occurs once.
    pub runs: Vec<(u64, f64, Option<String>)>,
}

impl Sample {
    fn scores(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.1).collect()
    }

    /// Mean score.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(&self.scores())
    }

    fn squares(&self) -> f64 {
        let centre = self.mean();
        self.runs.iter().map(|run| (run.1 - centre).powi(2)).sum()
    }

    /// Whether each of these runs has a recorded counterpart with the same hypotheses, bit for bit.
    #[must_use]
    pub fn is_within(&self, recorded: &Self) -> bool {
        let twin = |run: &(u64, f64, Option<String>)| run.2.is_some() && recorded.runs.contains(run);
        !self.runs.is_empty() && self.runs.iter().all(twin)
    }
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The hypotheses are equal, bit for bit.
    Unchanged,
    /// Not worse than the spread between seeds explains.
    WithinNoise,
    /// Better than the spread between seeds explains.
    Better,
    /// Worse than the spread between seeds explains: an alarm.
    Worse,
    /// One run on either side and no stated spread, so nothing can be concluded.
    NoSpread,
}

impl Standing {
    /// The result in one or two words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::WithinNoise => "within noise",
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::NoSpread => "spread unknown",
        }
    }

    /// The outcome that this result counts as.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Unchanged | Self::WithinNoise | Self::Better => Outcome::Reproduced,
            Self::Worse => Outcome::NotReproduced,
            Self::NoSpread => Outcome::Inconclusive,
        }
    }
}

/// A comparison of scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Result of the comparison.
    pub standing: Standing,
    /// How much worse the new score is.
    pub shortfall: f64,
    /// A larger drop than this raises an alarm.
    pub threshold: Option<f64>,
    /// Explanation in a sentence.
    pub explanation: String,
}

/// Pooled degrees of freedom from which the samples' own spread is used, as from five seeds on in a
/// verdict.
const OWN_FROM: usize = 4;

impl Quality {
    /// Compares at one-sided level `alpha`. `sigma` is the published or assumed spread.
    #[must_use]
    pub fn compare(
        ours: &Sample,
        recorded: &Sample,
        direction: Direction,
        sigma: Option<f64>,
        alpha: f64,
    ) -> Self {
        let sign = if direction == Direction::Higher { 1.0 } else { -1.0 };
        let shortfall = sign * (recorded.mean() - ours.mean());
        let (n, m) = (ours.runs.len(), recorded.runs.len());
        let sizes = format!("{n} against {m} recorded");
        if ours.is_within(recorded) {
            let explanation = "the same hypotheses, bit for bit".to_owned();
            return Self { standing: Standing::Unchanged, shortfall, threshold: None, explanation };
        }
        let freedom = n + m - 2;
        let own = ((ours.squares() + recorded.squares()) / freedom.max(1) as f64).sqrt();
        let own_fits = own > 0.0 && freedom > 0;
        let (spread, critical, whose) = match sigma {
            Some(sigma) if freedom < OWN_FROM || !own_fits => (sigma, normal_quantile(1.0 - alpha), "stated"),
            _ if own_fits => (own, t_quantile(1.0 - alpha, freedom as f64), "of the samples"),
            _ => {
                let explanation = format!("{sizes}: no spread was stated, and so few runs show none");
                return Self { standing: Standing::NoSpread, shortfall, threshold: None, explanation };
            }
        };
        let threshold = critical * spread * (1.0 / n as f64 + 1.0 / m as f64).sqrt();
        let standing = if shortfall > threshold {
            Standing::Worse
        } else if shortfall < -threshold {
            Standing::Better
        } else {
            Standing::WithinNoise
        };
        let by = match shortfall > 0.0 {
            true => format!("{} worse", number(shortfall)),
            false => format!("{} better", number(-shortfall)),
        };
        let explanation = format!(
            "{by}, {sizes}; a drop of more than {} raises an alarm (sigma {whose} {})",
            number(threshold),
            number(spread)
        );
        Self { standing, shortfall, threshold: Some(threshold), explanation }
    }
}
