//! Why a measured score is not the claimed one: one set of hypotheses under every convention that scores are published with, and
//! the difference as a sum of named parts.
//!
//! [`explain`] scores every [`Point`] (a treatment of the text, case, and each stored file of hypotheses), looks for the one that
//! comes nearest to the claimed value with few changes, and shares out what lies between it and the measured score
//! ([`Explanation::parts`]). What the numbers say is what *would* explain the gap; that the source scored so is for the source to say.

mod additive;
mod grid;
mod point;

pub use additive::{Explanation, Part, Rival};
pub use grid::{Grid, Setting, Tokenise};
pub use point::{Cause, Point, Text};

use crate::metrics::{ScoreError, Scorer};

/// What is to be explained.
#[derive(Debug)]
pub struct Question<'a> {
    /// The published number.
    pub claimed: f64,
    /// How the measured score is computed.
    pub scorer: &'a Scorer,
    /// Hypotheses; the first is the measured one.
    pub settings: &'a [Setting],
    /// Reference streams.
    pub references: &'a [Vec<String>],
    /// The published or assumed spread between seeds.
    pub sigma: Option<f64>,
}

/// Explains the gap between a claimed and a measured score.
///
/// # Errors
/// Hypotheses and references do not belong together, or cannot be scored.
pub fn explain(question: &Question<'_>, tokenise: Option<&Tokenise<'_>>) -> Result<Explanation, ScoreError> {
    let grid = Grid::score(question.scorer, question.settings, question.references, tokenise)?;
    Ok(additive::explanation(&grid, question.claimed, question.sigma))
}
