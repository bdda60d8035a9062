//! Options of means over training, and their metrics.

use zoo_recipes::Direction;

use crate::metrics::contract::{
    Arithmetic, Drawn, Entry, Metric, Parts, Path, Reading, ScoreError, SignatureError, Source, Unit,
};

/// Mean training loss.
pub static TRAIN_LOSS: Entry = trained("train-loss", "as the source counts it", Direction::Lower);

/// e to the power of the mean training loss.
pub static TRAIN_PERPLEXITY: Entry = trained("train-perplexity", "e to the power of nats", Direction::Lower);

/// Share of correct answers during training.
pub static TRAIN_ACCURACY: Entry = trained("train-accuracy", "percent", Direction::Higher);

const fn trained(name: &'static str, unit: &'static str, direction: Direction) -> Entry {
    let is_percentage = matches!(direction, Direction::Higher);
    Entry { name, unit, direction, is_percentage, path: Path::Trained }
}

/// The term that is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfTerm {
    /// The training objective, including smoothing and the weights of its terms; the metric is
    /// `train-loss`.
    Objective,
    /// Plain negative log-likelihood, in nats; the metric is `train-loss`.
    Likelihood,
    /// e to the power of the plain negative log-likelihood; the metric is `train-perplexity`.
    Perplexity,
    /// Correct answers; the metric is `train-accuracy`.
    Accuracy {
        /// Number of top-ranked classes among which the correct one must be.
        top: usize,
    },
}

/// The updates that are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The pass over the training data that ends at the point.
    Epoch,
    /// This number of updates up to the point.
    Updates(usize),
}

/// What gets equal weight in the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermMean {
    /// Units: the sum of all sums divided by the sum of all counts.
    Unit,
    /// Updates: the mean of the updates' means. The count is the number of updates.
    Update,
}

/// Options of a mean over training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainingOptions {
    /// Term that is averaged.
    pub of: OfTerm,
    /// Unit of its counts.
    pub unit: Unit,
    /// Updates that are averaged.
    pub over: Over,
    /// What gets equal weight.
    pub mean: TermMean,
}

/// Words of `mean:`.
const MEANS: [(&str, TermMean); 2] = [("unit", TermMean::Unit), ("update", TermMean::Update)];

impl Metric for TrainingOptions {
    fn entry(&self) -> &'static Entry {
        match self.of {
            OfTerm::Objective | OfTerm::Likelihood => &TRAIN_LOSS,
            OfTerm::Perplexity => &TRAIN_PERPLEXITY,
            OfTerm::Accuracy { .. } => &TRAIN_ACCURACY,
        }
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        match self.of {
            OfTerm::Objective => parts.push(("of", "objective".to_string())),
            OfTerm::Likelihood => parts.push(("of", "nll".to_string())),
            OfTerm::Perplexity => {}
            OfTerm::Accuracy { top } => parts.push(("top", top.to_string())),
        }
        let over = match self.over {
            Over::Epoch => "epoch".to_string(),
            Over::Updates(count) => count.to_string(),
        };
        let mean = if self.mean == TermMean::Unit { "unit" } else { "update" };
        parts.extend([("unit", self.unit.name().to_string()), ("over", over), ("mean", mean.to_string())]);
        parts
    }

    fn source(&self) -> Source {
        Source::Training
    }

    fn read(&self, _: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
        Err(ScoreError::NotFromText { metric: self.entry().name })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        let mean = arithmetic.ratio(sums[0], sums[1]);
        match self.of {
            OfTerm::Objective | OfTerm::Likelihood => mean,
            OfTerm::Perplexity => mean.exp(),
            OfTerm::Accuracy { .. } => 100.0 * mean,
        }
    }

    fn takes_pairs(&self) -> bool {
        true
    }

    fn precision(&self) -> Arithmetic {
        Arithmetic::Double
    }
}

/// Reads the options of a mean training loss.
pub fn read_loss<C: From<TrainingOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    let of = parts.word("of", &[("nll", OfTerm::Likelihood), ("objective", OfTerm::Objective)])?;
    Ok(read(parts, of)?.into())
}

/// Reads the options of a training perplexity.
pub fn read_perplexity<C: From<TrainingOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(read(parts, OfTerm::Perplexity)?.into())
}

/// Reads the options of a training accuracy.
pub fn read_accuracy<C: From<TrainingOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    let top = parts.number("top", 1)?;
    Ok(read(parts, OfTerm::Accuracy { top })?.into())
}

fn read(parts: &mut Parts<'_>, of: OfTerm) -> Result<TrainingOptions, SignatureError> {
    let unit = parts.word("unit", &Unit::WORDS)?;
    let over = match parts.is("over", "epoch") {
        true => {
            parts.take("over")?;
            Over::Epoch
        }
        false => Over::Updates(parts.number("over", 1)?),
    };
    let mean = parts.word("mean", &MEANS)?;
    Ok(TrainingOptions { of, unit, over, mean })
}
