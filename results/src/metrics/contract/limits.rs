//! Limits on the cost of one line. Metrics that align or count n-grams need more time and memory
//! than the line's length. A file that lost its line feeds would use the machine's whole memory, so
//! a metric checks its limit first.

use super::entry::Entry;
use super::error::ScoreError;

/// Maximum cells of an edit distance's table: 100,000 units by 100,000.
const ALIGNED_CELLS: u64 = 10_000_000_000;

/// A limit on the units of each line.
#[derive(Clone, Copy)]
pub(crate) struct Limit<'c> {
    /// Maximum number of units.
    pub most: usize,
    /// Name of the units: `characters`, `words`.
    pub unit: &'static str,
    /// Counts the units of a line.
    pub count: &'c dyn Fn(&str) -> usize,
}

/// Checks every line against a metric's limit.
///
/// # Errors
/// [`ScoreError::LineTooLong`] names the first line that exceeds it.
pub(crate) fn check_lines(
    metric: &Entry,
    limit: Limit<'_>,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<(), ScoreError> {
    let Limit { most, unit, count } = limit;
    let streams = references.iter().enumerate().map(|(at, lines)| (Some(at + 1), lines.as_slice()));
    for (stream, lines) in std::iter::once((None, hypotheses)).chain(streams) {
        for (line, text) in (1..).zip(lines) {
            // A unit has at least one byte, so most lines do not need to be counted.
            let found = if text.len() > most { count(text) } else { 0 };
            if found > most {
                let problem = format!("{found} {unit}, and the limit of {metric} is {most}");
                return Err(ScoreError::LineTooLong { stream, line, problem });
            }
        }
    }
    Ok(())
}

/// Checks the limit of edit distances, which applies to the product of both lengths. `unit` is the
/// name of the units that `count` counts.
///
/// # Errors
/// [`ScoreError::LineTooLong`] names the first line that exceeds it.
pub(crate) fn check_cells(
    unit: &str,
    hypotheses: &[String],
    references: &[Vec<String>],
    count: &dyn Fn(&str) -> usize,
) -> Result<(), ScoreError> {
    let product = |one: usize, other: usize| (one as u64).saturating_mul(other as u64);
    for lines in references {
        for (line, (ours, theirs)) in (1..).zip(hypotheses.iter().zip(lines)) {
            if product(ours.len(), theirs.len()) <= ALIGNED_CELLS {
                continue;
            }
            let (ours, theirs) = (count(ours), count(theirs));
            if product(ours, theirs) > ALIGNED_CELLS {
                let side = (ALIGNED_CELLS as f64).sqrt() as u64;
                let problem = format!(
                    "{ours} {unit} to be aligned with {theirs} of the reference, and the limit is {side} by {side}"
                );
                return Err(ScoreError::LineTooLong { stream: None, line, problem });
            }
        }
    }
    Ok(())
}
