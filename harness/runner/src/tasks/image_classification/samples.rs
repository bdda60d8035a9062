//! What the report shows of a classifier's answers: the confusion matrix, and the most confident
//! errors as pictures.

use zoo_datasets::image::encode_png;
use zoo_datasets::tasks::image_classification::PictureSplit;
use zoo_results::exit::Exit;
use zoo_results::report::heatmap::{Axis, Heatmap, Panel};

use crate::error::{Failure, Result};
use crate::run::data::{Kept, KeptSample};

/// Number of errors that are kept as pictures.
const ERRORS: usize = 12;

/// Most classes of a confusion matrix that a page can show.
const SHOWN_CLASSES: usize = 100;

/// How many times larger than its pixels a picture is shown.
const ENLARGED: usize = 4;

/// A model's answer for one picture.
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

    fn is_right(&self) -> bool {
        self.class == self.label
    }
}

/// The confusion matrix of all answers, and the wrong answers of the highest confidence with their
/// pictures.
///
/// # Errors
/// A picture cannot be encoded.
pub fn samples(answers: &[Answer], split: &PictureSplit, classes: &[String]) -> Result<Vec<KeptSample>> {
    let mut kept: Vec<KeptSample> = match classes.len() <= SHOWN_CLASSES && !answers.is_empty() {
        true => vec![confusion(answers, classes)?],
        false => Vec::new(),
    };
    let mut wrong: Vec<usize> = (0..answers.len()).filter(|at| !answers[*at].is_right()).collect();
    wrong.sort_by(|one, other| answers[*other].confidence.total_cmp(&answers[*one].confidence));
    for at in wrong.into_iter().take(ERRORS) {
        kept.push(error(&answers[at], at, split, classes)?);
    }
    Ok(kept)
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Data, error.to_string())
}

/// Numbers of pictures by right class and answer.
pub fn counts(answers: &[Answer], classes: usize) -> Vec<Vec<u64>> {
    let mut counts = vec![vec![0; classes]; classes];
    for answer in answers {
        if let Some(count) = counts.get_mut(answer.label).and_then(|row| row.get_mut(answer.class)) {
            *count += 1;
        }
    }
    counts
}

fn confusion(answers: &[Answer], classes: &[String]) -> Result<KeptSample> {
    let counts = counts(answers, classes.len());
    let share = |label: usize, class: usize| {
        let of_label: u64 = counts[label].iter().sum();
        counts[label][class] as f32 / of_label.max(1) as f32
    };
    // Columns from the bottom to the top; the first class is on top.
    let labels = || (0..classes.len()).rev();
    let shares: Vec<f32> = (0..classes.len())
        .flat_map(|class| labels().map(move |label| (label, class)))
        .map(|(label, class)| share(label, class))
        .collect();
    let panel = Panel::new("", shares, classes.len()).map_err(|error| failed(&error))?;
    let mut map = Heatmap::new(vec![panel], Some((0.0, 1.0))).map_err(|error| failed(&error))?;
    let right = answers.iter().filter(|answer| answer.is_right()).count();
    map.title = "Confusion matrix".to_owned();
    map.description = format!("{right} of {} answers are right.", answers.len());
    map.x = Axis { names: classes.to_vec(), ..Axis::new("answer", 1.0) };
    let names = labels().map(|label| classes[label].clone()).collect();
    map.y = Axis { names, ..Axis::new("class", 1.0) };
    map.unit = "share of the class".to_owned();
    let svg = map.svg().map_err(|error| failed(&error))?;
    let mut scores = serde_json::Map::new();
    scores.insert("right".to_owned(), right.into());
    scores.insert("pictures".to_owned(), answers.len().into());
    // The pairs that are mistaken most often.
    let mut pairs: Vec<(u64, usize, usize)> = Vec::new();
    for (label, row) in counts.iter().enumerate() {
        let wrong = row.iter().enumerate().filter(|(class, count)| *class != label && **count > 0);
        pairs.extend(wrong.map(|(class, count)| (*count, label, class)));
    }
    pairs.sort_by_key(|(count, label, class)| (std::cmp::Reverse(*count), *label, *class));
    for (count, label, class) in pairs.into_iter().take(5) {
        scores.insert(format!("{} taken for {}", classes[label], classes[class]), count.into());
    }
    Ok(KeptSample {
        title: "Confusion matrix".to_owned(),
        text: String::new(),
        scores,
        files: vec![(
            "confusion.svg".to_owned(),
            "classes and answers".to_owned(),
            Kept::Bytes(svg.into_bytes()),
        )],
    })
}

fn error(answer: &Answer, at: usize, split: &PictureSplit, classes: &[String]) -> Result<KeptSample> {
    let name = |class: usize| classes.get(class).cloned().unwrap_or_else(|| class.to_string());
    let picture = split.picture(at).enlarged(ENLARGED);
    let png = encode_png(&picture).map_err(|error| failed(&error))?;
    let mut scores = serde_json::Map::new();
    scores.insert("class".to_owned(), name(answer.label).into());
    scores.insert("answer".to_owned(), name(answer.class).into());
    scores.insert("confidence".to_owned(), answer.confidence.into());
    Ok(KeptSample {
        title: format!("Picture {}", split.names.get(at).cloned().unwrap_or_else(|| (at + 1).to_string())),
        text: String::new(),
        scores,
        files: vec![(
            "png".to_owned(),
            format!("{} taken for {}", name(answer.label), name(answer.class)),
            Kept::Bytes(png),
        )],
    })
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
    fn a_confusion_matrix_counts_each_class_by_its_answers() {
        let answers =
            [(0, 0), (0, 1), (1, 1), (1, 1)].map(|(label, class)| Answer { label, class, confidence: 1.0 });
        assert_eq!(counts(&answers, 2), [[1, 1], [0, 2]]);
        let classes = ["cat".to_owned(), "dog".to_owned()];
        let sample = confusion(&answers, &classes).unwrap();
        assert_eq!(sample.scores["right"], 3);
        assert_eq!(sample.scores["cat taken for dog"], 1);
        assert!(!sample.scores.contains_key("dog taken for cat"));
    }
}
