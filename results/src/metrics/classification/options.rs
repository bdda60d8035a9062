//! Options of accuracy, error and F1.

/// The share that is the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Correct answers; the metric is `accuracy`.
    Right,
    /// Wrong answers; the metric is `error`.
    Wrong,
}

/// Order of two classes with equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The lower class comes first, as in the argmax of NumPy and PyTorch.
    #[default]
    First,
    /// The higher class comes first, as in scikit-learn's `top_k_accuracy_score`.
    Last,
}

/// Options of accuracy and error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccuracyOptions {
    /// Share of correct or of wrong answers.
    pub share: Share,
    /// Number of top-ranked classes among which the correct one must be.
    pub top: usize,
    /// Number of classes, more than `top`.
    pub classes: usize,
    /// Treatment of equal scores.
    pub ties: Ties,
}

/// Options of F1. It is the mean over the classes that a record or an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct F1Options {
    /// Number of classes, 2 at least.
    pub classes: usize,
    /// Treatment of equal scores.
    pub ties: Ties,
}
