//! Sweep over the weights of a search's language model on an evaluation set, as in OpenSeq2Seq's
//! `scripts/decode.py`.

use std::str::FromStr;

use zoo_results::metrics::{Entry, Signature};

/// Maximum number of weight pairs, which catches mistyped steps.
const MOST: usize = 10_000;

/// Default step between values, as in `decode.py`.
const STEP: f64 = 0.1;

/// Weights to try. A weight that is not named keeps the recipe's value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SweptWeights {
    /// Factors of the language model's log10 probabilities.
    pub alpha: Option<Vec<f64>>,
    /// Terms added per word.
    pub beta: Option<Vec<f64>>,
}

impl FromStr for SweptWeights {
    type Err = String;

    /// Parses `alpha=0.5:3:0.5,beta=0`: for each weight one value, or first, last and step.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut weights = Self::default();
        for part in text.split(',') {
            let (key, range) = part.split_once('=').ok_or_else(|| format!("`{part}` has no `=`"))?;
            let to = match key.trim() {
                "alpha" => &mut weights.alpha,
                "beta" => &mut weights.beta,
                other => return Err(format!("`{other}` is not a language model weight: use alpha or beta")),
            };
            if to.replace(values(range)?).is_some() {
                return Err(format!("`{}` appears twice", key.trim()));
            }
        }
        let count = |values: &Option<Vec<f64>>| values.as_ref().map_or(1, Vec::len);
        match count(&weights.alpha).saturating_mul(count(&weights.beta)) {
            0..=MOST => Ok(weights),
            pairs => Err(format!("{pairs} pairs of weights: {MOST} at most")),
        }
    }
}

/// Values of `FROM`, `FROM:TO` or `FROM:TO:STEP`, including the last one.
fn values(range: &str) -> std::result::Result<Vec<f64>, String> {
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is not a number")),
    };
    let parts: Vec<f64> = range.split(':').map(number).collect::<std::result::Result<_, _>>()?;
    let (from, to, step) = match parts[..] {
        [value] => return Ok(vec![value]),
        [from, to] => (from, to, STEP),
        [from, to, step] => (from, to, step),
        _ => return Err(format!("`{range}` is not FROM:TO:STEP")),
    };
    if to < from || step <= 0.0 {
        return Err(format!("`{range}` does not rise: FROM:TO:STEP"));
    }
    let steps = ((to - from) / step + 1e-6).floor();
    if steps >= MOST as f64 {
        return Err(format!("`{range}` has more than {MOST} values"));
    }
    // Rounds to nine decimals, so that multiples of 0.1 print exactly. Adding 0.0 avoids -0.
    let value = |i: u32| ((from + f64::from(i) * step) * 1e9).round() / 1e9 + 0.0;
    Ok((0..=steps as u32).map(value).collect())
}

/// Result of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// Name of the evaluation set.
    pub eval: String,
    /// Name of the search.
    pub decode: String,
    /// Number of examples of the set.
    pub examples: usize,
    /// Metric of the scores.
    pub metric: &'static Entry,
    /// Signature of the scores.
    pub signature: Signature,
    /// All pairs in ascending order, with alpha in the outer loop.
    pub points: Vec<SweptPoint>,
    /// Index of the best point in `points`; the first one if several are equal.
    pub best: usize,
}

/// A pair of weights with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweptPoint {
    /// Factor of the language model's log10 probabilities.
    pub alpha: f64,
    /// Term added per word.
    pub beta: f64,
    /// Score in percent.
    pub value: f64,
}

impl Swept {
    /// The `--set` options that choose the best pair.
    pub fn settings(&self) -> [String; 2] {
        let SweptPoint { alpha, beta, .. } = self.points[self.best];
        let key = |key: &str, value: f64| format!("decode.{}.{key}={value}", self.decode);
        [key("alpha", alpha), key("beta", beta)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_ends_and_their_decimals() {
        let weights: SweptWeights = "alpha=0.5:3.0:0.5,beta=-1:2:0.5".parse().unwrap();
        assert_eq!(weights.alpha.unwrap(), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(weights.beta.unwrap(), [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]);
        let weights: SweptWeights = "beta=-0.1:0.3".parse().unwrap();
        assert_eq!((weights.alpha, weights.beta.unwrap()), (None, vec![-0.1, 0.0, 0.1, 0.2, 0.3]));
        assert_eq!(values("2.5").unwrap(), [2.5]);
        assert_eq!(values("0:1:0.4").unwrap(), [0.0, 0.4, 0.8]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, why) in [
            ("alpha", "no `=`"),
            ("gamma=1", "alpha or beta"),
            ("alpha=1,alpha=2", "twice"),
            ("alpha=x", "is not a number"),
            ("alpha=1:nan", "is not a number"),
            ("alpha=2:1", "does not rise"),
            ("alpha=1:2:0", "does not rise"),
            ("alpha=1:2:1:1", "FROM:TO:STEP"),
            ("alpha=0:1e12", "more than 10000"),
            ("alpha=0:100,beta=0:100", "1002001 pairs"),
            ("", "no `=`"),
        ] {
            let found = text.parse::<SweptWeights>().unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
