//! Mean of a recipe's own objective, which may be smoothed, weighted, or not a likelihood.

use super::metric::LOSS;
use super::options::Unit;
use super::record;
use crate::metrics::arithmetic::Arithmetic;
use crate::metrics::entry::Entry;
use crate::metrics::error::ScoreError;
use crate::metrics::metric::{Metric, Reading, Source};
use crate::metrics::parts::Parts;
use crate::metrics::rows::{Drawn, Rows};
use crate::metrics::signature::SignatureError;

/// Options of a mean objective. The recipe defines the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectiveOptions {
    /// Unit of the divisor.
    pub unit: Unit,
}

impl ObjectiveOptions {
    pub(super) fn from_parts(parts: &mut Parts<'_>) -> Result<Self, SignatureError> {
        Ok(Self { unit: parts.word("unit", &Unit::WORDS)? })
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
