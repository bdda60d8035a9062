//! TER (Tercom) as sacreBLEU 2.6.0 computes it.

use rayon::prelude::*;

use super::{check_streams, separators_to_spaces};
use crate::metrics::arithmetic::Arithmetic;
use crate::metrics::convention::{Case, TerOptions};
use crate::metrics::error::ScoreError;

/// Columns of a segment's statistics: fewest edits, mean reference length.
pub(crate) const WIDTH: usize = 2;

/// TER in percent from summed statistics.
pub(crate) fn from_sums(sums: &[f64], arithmetic: Arithmetic) -> f64 {
    let (edits, length) = (sums[0], sums[1]);
    let r = |x: f64| arithmetic.round(x);
    if length > 0.0 {
        r(100.0 * r(edits / length))
    } else if edits > 0.0 {
        100.0
    } else {
        0.0
    }
}

/// Row of statistics of each segment, from the library.
pub(crate) fn corpus(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &TerOptions,
) -> Result<Vec<f64>, ScoreError> {
    check_streams(hypotheses, references)?;
    let library = sacrebleu_rs::Ter {
        normalized: options.normalized,
        no_punct: options.no_punct,
        case_sensitive: options.case == Case::Mixed,
    };
    Ok((0..hypotheses.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let segment: Vec<String> =
                references.iter().map(|stream| separators_to_spaces(&stream[i]).into_owned()).collect();
            let score = library.sentence_score(&separators_to_spaces(&hypotheses[i]), &segment);
            [score.num_edits as f64, score.ref_length]
        })
        .collect())
}
