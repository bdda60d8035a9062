//! Evidence from training itself: the mean of a term over the last updates, instead of a score of
//! outputs.

use zoo_recipes::ClaimSpec;

use super::evidence::RunScore;
use crate::metrics::{Convention, Entry, Path, ScoreError, Signature, TrainedTerm, TrainingOptions};

/// The term of a claim and its updates, from the claim's signature. `None` for a claim on scored
/// outputs and for a claim without a signature.
#[must_use]
pub fn trained_term(claim: &ClaimSpec) -> Option<TrainingOptions> {
    let Path::Trained = Entry::find(&claim.metric)?.path else { return None };
    match Signature::parse(claim.signature.as_deref()?).ok()?.convention {
        Convention::Training(options) => Some(options),
        _ => None,
    }
}

impl RunScore {
    /// A run that ended or reached a point, with a mean over its last updates.
    ///
    /// # Errors
    /// The term has no mean.
    pub fn trained(seed: u64, term: TrainedTerm) -> Result<Self, ScoreError> {
        let score = term.value()?.value;
        Ok(Self { term: Some(term), ..Self::scored(seed, score) })
    }

    /// Whether the score is the mean of a term that is comparable with the claim.
    pub(crate) fn is_of_term(&self, claim: &ClaimSpec) -> bool {
        let Some(term) = &self.term else { return false };
        let takes = |metric: &Entry| metric.takes(&term.signature.convention);
        Entry::find(&claim.metric).is_some_and(takes) && term.value().is_ok()
    }
}
