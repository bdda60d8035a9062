//! The answer of a classifier for one example, and its record.

use zoo_results::metrics::ClassRecord;

/// A model's answer for one example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The right class.
    pub label: usize,
    /// The class with the highest score, the first of equal ones.
    pub class: usize,
    /// Probability of that class: the softmax of its score.
    pub confidence: f64,
}

impl Answer {
    /// The answer that the scores of the classes give.
    pub fn new(scores: &[f32], label: usize) -> Self {
        let best = |best: usize, at: usize| if scores[at] > scores[best] { at } else { best };
        let class = (0..scores.len()).reduce(best).unwrap_or(0);
        let highest = scores.get(class).copied().unwrap_or(0.0);
        let sum: f64 = scores.iter().map(|score| f64::from(score - highest).exp()).sum();
        Self { label, class, confidence: 1.0 / sum }
    }

    /// Whether the class is the right one.
    pub fn is_right(&self) -> bool {
        self.class == self.label
    }
}

/// Indices of the wrong answers, `most` at most, from the highest confidence on.
pub fn wrong(answers: &[Answer], most: usize) -> Vec<usize> {
    let mut wrong: Vec<usize> = (0..answers.len()).filter(|at| !answers[*at].is_right()).collect();
    wrong.sort_by(|one, other| answers[*other].confidence.total_cmp(&answers[*one].confidence));
    wrong.truncate(most);
    wrong
}

/// The record of an example: the scores of all classes.
pub fn record(scores: Vec<f32>) -> String {
    let scores = scores.into_iter().map(shortest).collect();
    ClassRecord { scores: Some(scores), ..ClassRecord::default() }.to_string()
}

/// The number that the shortest decimals of an FP32 number stand for. Records are half as long with
/// it; other numbers keep their order, and equal ones stay equal.
fn shortest(score: f32) -> f64 {
    score.to_string().parse().unwrap_or_else(|_| f64::from(score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_first_class_of_the_highest_score_with_its_probability() {
        let answer = Answer::new(&[1.0, 3.0, 3.0], 2);
        assert_eq!((answer.label, answer.class, answer.is_right()), (2, 1, false));
        let expected = 1.0 / (2.0 + (-2f64).exp());
        assert!((answer.confidence - expected).abs() < 1e-12, "{}", answer.confidence);
        assert!(Answer::new(&[0.0, 5.0], 1).is_right());
    }

    #[test]
    fn the_most_confident_wrong_answers_come_first() {
        let answers = [(0, 0, 0.9), (0, 1, 0.6), (1, 0, 0.8), (1, 0, 0.7)];
        let answers = answers.map(|(label, class, confidence)| Answer { label, class, confidence });
        assert_eq!(wrong(&answers, 2), [2, 3]);
        assert_eq!(wrong(&answers, 9), [2, 3, 1]);
    }

    #[test]
    fn a_score_is_written_in_few_decimals_and_read_back() {
        assert_eq!(serde_json::to_string(&shortest(0.1)).unwrap(), "0.1");
        for score in [0.1f32, -2.710_356, 1e-30, f32::MIN_POSITIVE, 16_777_216.0] {
            assert_eq!(shortest(score) as f32, score);
        }
        assert!(shortest(f32::NAN).is_nan(), "refused where it is scored");
    }
}
