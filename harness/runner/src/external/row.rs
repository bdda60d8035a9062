//! Scores in a row.

/// Comma-separated scores.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreRow(pub Vec<f64>);

impl std::str::FromStr for ScoreRow {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let score = |word: &str| match word.trim().parse::<f64>() {
            Ok(score) if score.is_finite() => Ok(score),
            _ => Err(format!("`{word}` is not a valid score")),
        };
        text.split(',').map(score).collect::<std::result::Result<_, _>>().map(Self)
    }
}
