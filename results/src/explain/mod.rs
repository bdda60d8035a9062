//! Explains why a measured score differs from a claimed one: scores one set of hypotheses under
//! every convention used in publications, and decomposes the difference into named parts.
//!
//! [`explain`] scores every [`Point`] (a treatment of the text, case, and each stored file of
//! hypotheses). It selects the point that comes closest to the claimed value with few changes, and
//! attributes the difference between this point and the measured score to its causes
//! ([`Explanation::parts`]). The result shows what *would* explain the gap. Only the source can say
//! whether it scored that way.

mod additive;
mod grid;
mod point;

pub use additive::{Explanation, Part, Rival};
pub use grid::{Grid, Setting, Tokenise};
pub use point::{Cause, Point, Text};

use crate::metrics::{ScoreError, Scorer};

/// Input of an explanation.
#[derive(Debug)]
pub struct Question<'a> {
    /// The published number.
    pub claimed: f64,
    /// Scorer of the measured score.
    pub scorer: &'a Scorer,
    /// Settings with their hypotheses; the first is the measured one.
    pub settings: &'a [Setting],
    /// Reference streams.
    pub references: &'a [Vec<String>],
    /// The published or assumed spread between seeds.
    pub sigma: Option<f64>,
}

/// Explains the gap between a claimed and a measured score.
///
/// # Errors
/// Hypotheses and references do not match, or cannot be scored.
pub fn explain(question: &Question<'_>, tokenise: Option<&Tokenise<'_>>) -> Result<Explanation, ScoreError> {
    let grid = Grid::score(question.scorer, question.settings, question.references, tokenise)?;
    Ok(additive::explanation(&grid, question.claimed, question.sigma))
}
