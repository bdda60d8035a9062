//! Loss, perplexity and bits per character of likelihoods, and the mean of a recipe's own
//! objective, which may be smoothed, weighted, or not a likelihood.

use std::f64::consts::LN_2;

use serde_json::Map;

use super::options::{LikelihoodOptions, ObjectiveOptions, Quantity};
use super::record;
use crate::metrics::contract::{
    Arithmetic, Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source,
};

/// Mean loss on an evaluation set.
pub static LOSS: Entry = Entry::measured("loss", "nats, or as the objective counts");

/// e to the power of the mean negative log-likelihood.
pub static PERPLEXITY: Entry = Entry::measured("perplexity", "e to the power of nats");

/// Mean negative log-likelihood in bits.
pub static BITS_PER_CHARACTER: Entry = Entry::measured("bits-per-character", "bits");

/// Name of the loss in sources that name the set.
pub static VALID_LOSS: Entry = Entry::alias("valid-loss", &LOSS, &[]);

/// Name of the perplexity in sources that name the set.
pub static VALID_PERPLEXITY: Entry = Entry::alias("valid-perplexity", &PERPLEXITY, &[]);

/// Abbreviated name of the perplexity.
pub static PPL: Entry = Entry::alias("ppl", &PERPLEXITY, &[]);

impl Quantity {
    /// Converts a mean in nats to this quantity.
    pub(crate) fn of_mean(self, nats: f64) -> f64 {
        match self {
            Quantity::Loss => nats,
            Quantity::Perplexity => nats.exp(),
            Quantity::Bits => nats / LN_2,
        }
    }
}

impl Metric for LikelihoodOptions {
    fn entry(&self) -> &'static Entry {
        match self.quantity {
            Quantity::Loss => &LOSS,
            Quantity::Perplexity => &PERPLEXITY,
            Quantity::Bits => &BITS_PER_CHARACTER,
        }
    }

    fn check(&self) -> Result<(), ScoreError> {
        self.check_unit()
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        self.to_parts()
    }

    fn source(&self) -> Source {
        Source::Record
    }

    fn read(&self, records: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
        let rows = record::rows(records, |text, line| record::cost(self, text, line))?;
        let sum = |column: usize| rows.iter().skip(column).step_by(2).sum::<f64>();
        let mut detail = Map::new();
        detail.insert("nats".into(), sum(0).into());
        detail.insert("units".into(), sum(1).into());
        Ok(Reading { rows: Rows::even(2, rows), detail })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        self.quantity.of_mean(arithmetic.ratio(sums[0], sums[1]))
    }

    fn takes_pairs(&self) -> bool {
        true
    }

    fn precision(&self) -> Arithmetic {
        Arithmetic::Double
    }
}

impl Metric for ObjectiveOptions {
    fn entry(&self) -> &'static Entry {
        &LOSS
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("of", "objective".to_string()), ("unit", self.unit.name().to_string())]
    }

    fn source(&self) -> Source {
        Source::Record
    }

    fn read(&self, records: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
        Ok(Rows::even(2, record::rows(records, record::loss)?).into())
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        arithmetic.ratio(sums[0], sums[1])
    }

    fn takes_pairs(&self) -> bool {
        true
    }

    fn precision(&self) -> Arithmetic {
        Arithmetic::Double
    }
}

/// Reads the options of a loss: of a likelihood, or of the recipe's objective.
pub fn read_loss<C: From<LikelihoodOptions> + From<ObjectiveOptions>>(
    parts: &mut Parts<'_>,
) -> Result<C, SignatureError> {
    match parts.word("of", &[("nll", false), ("objective", true)])? {
        false => Ok(LikelihoodOptions::from_parts(parts, Quantity::Loss)?.into()),
        true => Ok(ObjectiveOptions::from_parts(parts)?.into()),
    }
}

/// Reads the options of perplexity.
pub fn read_perplexity<C: From<LikelihoodOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(LikelihoodOptions::from_parts(parts, Quantity::Perplexity)?.into())
}

/// Reads the options of bits per character.
pub fn read_bits<C: From<LikelihoodOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(LikelihoodOptions::from_parts(parts, Quantity::Bits)?.into())
}
