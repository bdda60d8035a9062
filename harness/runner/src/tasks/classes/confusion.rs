//! The confusion matrix of answers.

use zoo_results::exit::Exit;
use zoo_results::report::heatmap::{Axis, Heatmap, Panel};

use super::Answer;
use crate::error::{Failure, Result};
use crate::run::data::{Kept, KeptSample};

/// Most classes of a confusion matrix that a page can show.
const SHOWN_CLASSES: usize = 100;

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Data, error.to_string())
}

/// Numbers of examples by right class and answer.
fn counts(answers: &[Answer], classes: usize) -> Vec<Vec<u64>> {
    let mut counts = vec![vec![0; classes]; classes];
    for answer in answers {
        if let Some(count) = counts.get_mut(answer.label).and_then(|row| row.get_mut(answer.class)) {
            *count += 1;
        }
    }
    counts
}

/// The confusion matrix as a picture, and the classes that are mistaken most often. `None` without
/// answers, or with more classes than a page can show. `examples` is what the examples are called.
///
/// # Errors
/// The picture cannot be drawn.
pub fn confusion(answers: &[Answer], classes: &[String], examples: &str) -> Result<Option<KeptSample>> {
    if answers.is_empty() || classes.len() > SHOWN_CLASSES {
        return Ok(None);
    }
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
    scores.insert(examples.to_owned(), answers.len().into());
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
    Ok(Some(KeptSample {
        title: "Confusion matrix".to_owned(),
        text: String::new(),
        scores,
        files: vec![(
            "confusion.svg".to_owned(),
            "classes and answers".to_owned(),
            Kept::Bytes(svg.into_bytes()),
        )],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confusion_matrix_counts_each_class_by_its_answers() {
        let answers =
            [(0, 0), (0, 1), (1, 1), (1, 1)].map(|(label, class)| Answer { label, class, confidence: 1.0 });
        assert_eq!(counts(&answers, 2), [[1, 1], [0, 2]]);
        let classes = ["cat".to_owned(), "dog".to_owned()];
        let sample = confusion(&answers, &classes, "pictures").unwrap().unwrap();
        assert_eq!((&sample.scores["right"], &sample.scores["pictures"]), (&3.into(), &4.into()));
        assert_eq!(sample.scores["cat taken for dog"], 1);
        assert!(!sample.scores.contains_key("dog taken for cat"));
        assert!(confusion(&[], &classes, "pictures").unwrap().is_none());
    }
}
