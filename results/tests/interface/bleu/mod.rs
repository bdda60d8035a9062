//! The parts of a BLEU score, from the value that `score` gives.

use zoo_results::metrics::{BleuDetail, ScoreError, ScoreOptions, Scorer, score};

/// Parts of the corpus score.
pub fn detail(
    scorer: &Scorer,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<BleuDetail, ScoreError> {
    let options = ScoreOptions { scorer: scorer.clone(), resampling: None };
    let value = score(hypotheses, references, &options)?;
    let mut parts = value.detail;
    parts["score"] = value.value.into();
    Ok(serde_json::from_value(parts).unwrap())
}
