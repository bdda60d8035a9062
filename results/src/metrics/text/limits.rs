//! Limits on the cost of one line. Metrics that align or count n-grams need more time and memory
//! than the line's length. A file that lost its line feeds would use the machine's whole memory, so
//! the limits are checked first.

use super::ter::count_words;
use crate::metrics::entry::Entry;
use crate::metrics::error::ScoreError;
use crate::metrics::text::options::TerOptions;

/// Maximum characters of a line whose word n-grams are counted (BLEU).
const BLEU_CHARACTERS: usize = 500_000;

/// Maximum characters of a line whose character n-grams are counted (chrF).
const CHRF_CHARACTERS: usize = 100_000;

/// Maximum words of a line that Tercom aligns: it tries a thousand candidate shifts, each with a
/// beam of 50 cells per word.
const TER_WORDS: usize = 20_000;

/// Maximum cells of an edit distance's table: 100,000 units by 100,000.
const ALIGNED_CELLS: u64 = 10_000_000_000;

/// Counts the units of a line.
pub(in crate::metrics) type Count<'c> = &'c dyn Fn(&str) -> usize;

/// Checks every line against BLEU's limit.
///
/// # Errors
/// [`ScoreError::LineTooLong`] names the first line that exceeds it. The other checks do the same.
pub(in crate::metrics) fn bleu(
    metric: &Entry,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<(), ScoreError> {
    let count: Count<'_> = &|line| line.chars().count();
    lines(metric, (BLEU_CHARACTERS, "characters", count), hypotheses, references)
}

/// Checks every line against chrF's limit.
pub(in crate::metrics) fn chrf(
    metric: &Entry,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<(), ScoreError> {
    let count: Count<'_> = &|line| line.chars().count();
    lines(metric, (CHRF_CHARACTERS, "characters", count), hypotheses, references)
}

/// Checks every line against TER's limit.
pub(in crate::metrics) fn ter(
    metric: &Entry,
    options: &TerOptions,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<(), ScoreError> {
    let count: Count<'_> = &|line| count_words(line, options);
    lines(metric, (TER_WORDS, "words", count), hypotheses, references)
}

/// Checks that no line has more than `most` units.
fn lines(
    metric: &Entry,
    (most, unit, count): (usize, &str, Count<'_>),
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<(), ScoreError> {
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

/// Checks the limit of edit distances, which applies to the product of both lengths.
pub(in crate::metrics) fn cells(
    unit: &str,
    hypotheses: &[String],
    references: &[Vec<String>],
    count: Count<'_>,
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

#[cfg(test)]
mod tests {
    use crate::metrics::{
        BleuOptions, Case, ChrfOptions, Convention, ErrorRateOptions, ErrorUnit, Scorer, TerOptions,
        Whitespace,
    };

    fn refused(convention: Convention, hypothesis: &str, reference: &str) -> String {
        let lines = |text: &str| vec!["a".to_owned(), text.to_owned()];
        let scorer = Scorer::new(convention).unwrap();
        scorer.statistics(&lines(hypothesis), &[lines(reference)]).unwrap_err().to_string()
    }

    #[test]
    fn the_line_that_costs_too_much_is_named_and_not_scored() {
        // Ten million bytes without a line feed.
        let long = "word ".repeat(2_000_000);
        let (case, whitespace) = (Case::Mixed, Whitespace::default());
        let rates = |unit| Convention::ErrorRate(ErrorRateOptions { unit, case, whitespace });
        let other = "x ".repeat(5_000_000);
        for (convention, words) in [
            (
                Convention::Bleu(BleuOptions::default()),
                "10000000 characters, and the limit of bleu is 500000",
            ),
            (
                Convention::Chrf(ChrfOptions::default()),
                "10000000 characters, and the limit of chrf is 100000",
            ),
            (Convention::Ter(TerOptions::default()), "2000000 words, and the limit of ter is 20000"),
        ] {
            let said = refused(convention, &long, "a");
            assert!(said.starts_with(&format!("line 2 of the hypotheses: {words}")), "{said}");
            let said = refused(convention, "a", &long);
            assert!(said.starts_with(&format!("line 2 of reference stream 1: {words}")), "{said}");
        }
        let said = refused(rates(ErrorUnit::Word), &long, &other);
        assert!(said.contains("2000000 words to be aligned with 5000000 of the reference"), "{said}");
        let said = refused(rates(ErrorUnit::Character), &long, &other);
        assert!(said.contains("9999999 characters to be aligned with 9999999"), "{said}");
    }
}
