//! Detection of scores that are given as fractions although the metric is in percent.

use zoo_recipes::ClaimSpec;
use zoo_results::metrics::Entry;

use crate::error::{Failure, Result};

/// Refuses scores that match the claims only after multiplication by 100, such as 0.271 for a BLEU
/// of 27.5. A verdict on such a score is wrong in either direction: a value is NOT REPRODUCED, and
/// any two arms are at parity. `tracked` scores come from a tracker.
///
/// # Errors
/// A score looks like a fraction. The hint states it in percent, and the option to accept it
/// unchanged.
pub fn refuse(
    scores: impl Iterator<Item = f64> + Clone,
    claims: &[(usize, &ClaimSpec)],
    tracked: bool,
) -> Result<()> {
    for (number, claim) in claims.iter().filter(|(_, claim)| is_percentage(claim)) {
        let published = claim.value.into_iter().chain(claim.points.iter().map(|point| point.value));
        let published: Vec<f64> = published.collect();
        let is_doubtful = |score: &f64| match published.as_slice() {
            // Without a published value, scores up to 1 % are refused. No parity claim was made on
            // such scores.
            [] => fraction(*score),
            values => fraction(*score) && values.iter().any(|value| nearer_times_100(*score, *value)),
        };
        if let Some(score) = scores.clone().find(is_doubtful) {
            let metric = claim.metric.as_str();
            let message =
                format!("the score {score} looks like a fraction; {metric} of claim {number} is in percent");
            let percent = shown(score * 100.0);
            let mend =
                if tracked { format!("--times 100 makes it {percent}") } else { format!("write {percent}") };
            return Err(
                Failure::usage(message).hint(format!("{mend}, or pass --as-given if the score is {score} %"))
            );
        }
    }
    Ok(())
}

fn is_percentage(claim: &ClaimSpec) -> bool {
    Entry::find(&claim.metric).is_some_and(|metric| metric.is_percentage)
}

fn fraction(score: f64) -> bool {
    score > 0.0 && score <= 1.0
}

/// Whether 100 times the score is nearer to the published value than the score, by ratio.
fn nearer_times_100(score: f64, value: f64) -> bool {
    let distance = |score: f64| (score / value).ln().abs();
    value > 0.0 && distance(score * 100.0) < distance(score)
}

/// A number with up to six decimals: 100 times 0.271 is 27.1, not 27.100000000000001.
fn shown(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_what_a_factor_of_a_hundred_brings_nearer_to_the_claim() {
        assert!(nearer_times_100(0.271, 27.5));
        // A word error rate of 2 %, reproduced as 0.9 %.
        assert!(!nearer_times_100(0.9, 2.0));
        assert!(nearer_times_100(0.02, 2.0));
        assert!(!nearer_times_100(0.5, 0.0));
        assert!(!fraction(0.0) && !fraction(27.1) && fraction(1.0));
        assert_eq!((shown(0.271 * 100.0), shown(100.0)), ("27.1".to_owned(), "100".to_owned()));
    }
}
