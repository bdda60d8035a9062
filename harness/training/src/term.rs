//! A term of a loss over an update, an epoch or an evaluation set: a sum and its denominator.

/// One term of a loss after an update.
#[derive(Debug, Clone, PartialEq)]
pub struct TermSum {
    pub name: String,
    /// Sum over all micro-batches and workers.
    pub sum: f64,
    /// Denominator of the sum.
    pub count: f64,
    /// Weight in the loss.
    pub weight: f64,
}

/// Loss of the given terms: the sum of weight x sum / count. Terms with a count of 0 add nothing.
pub fn loss_of(terms: &[TermSum]) -> f64 {
    terms.iter().filter(|t| t.count != 0.0 && t.weight != 0.0).map(|t| t.weight * t.sum / t.count).sum()
}
