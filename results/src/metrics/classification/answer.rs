//! Classifier answers, and whether the correct class is among the first ones.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::options::{AccuracyOptions, F1Options, Ties};
use crate::metrics::contract::{ScoreError, is_object, parse, wrong};

/// Form of a valid record.
const FORM: &str = "a record is `{\"scores\": [0.1, 2.5]}`, `{\"classes\": [3, 8, 1]}` or the class itself";

/// Form of a valid reference.
const LABEL: &str = "a reference is the right class: its number, its name or `{\"label\": 3}`";

/// A class, by its number or its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", untagged)]
pub enum Class {
    /// Number of the class, from 0.
    Number(u64),
    /// Name of the class; never a number.
    Name(String),
}

/// A class in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Name(String),
}

impl From<Written> for Class {
    fn from(written: Written) -> Self {
        match written {
            Written::Number(number) => Class::Number(number),
            Written::Name(name) => Class::plain(&name),
        }
    }
}

impl Class {
    /// Reads a class from text. `3` is a number. `03` is a name, because numbers are not printed in
    /// this form.
    fn plain(text: &str) -> Self {
        let text = text.trim();
        let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
        number.map_or_else(|| Class::Name(text.to_owned()), Class::Number)
    }

    /// Rejects a number that is not a class.
    fn check(&self, classes: usize, line: usize, hint: &'static str) -> Result<(), ScoreError> {
        match self {
            Class::Number(number) if *number >= classes as u64 => {
                Err(wrong(line, format!("class {number} of {classes}, which count from 0"), hint))
            }
            Class::Number(_) | Class::Name(_) => Ok(()),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Number(number) => write!(f, "{number}"),
            Class::Name(name) => f.write_str(name),
        }
    }
}

/// A classifier's answer, as one line of JSON: `scores` or `classes`. Other keys of a line are for
/// people.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassRecord {
    /// A score for each class, in the order of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Vec<f64>>,
    /// Classes in decreasing order of likelihood, as many as are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<Class>>,
    /// The correct class, which must equal the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Class>,
}

impl fmt::Display for ClassRecord {
    /// The line. A score that is not finite becomes `null`, which is rejected when the line is
    /// read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// A reference.
#[derive(Debug, Deserialize)]
struct Label {
    label: Class,
}

/// Whether the correct class is among the first `top` of a record; `line` counts from 1.
///
/// # Errors
/// A record or a reference is invalid or contradicts the options.
pub(super) fn is_right(
    options: &AccuracyOptions,
    record: &str,
    reference: &str,
    line: usize,
) -> Result<bool, ScoreError> {
    let label = right_class(reference, options.classes, line)?;
    if !is_object(record) {
        if options.top > 1 {
            let problem = format!("there is one class, and top:{} needs a ranking", options.top);
            return Err(wrong(line, problem, FORM));
        }
        let chosen = Class::plain(record);
        chosen.check(options.classes, line, FORM)?;
        return Ok(!record.trim().is_empty() && chosen == label);
    }
    match ranked(record, &label, line)? {
        Ranked::Scores(scores) => among_scores(options, &scores, &label, line),
        Ranked::Classes(ranking) => among_ranking(options, &ranking, &label, line),
    }
}

/// The right class of a record, and the class of its answer; `None` for an empty line. `line`
/// counts from 1.
///
/// # Errors
/// A record or a reference is invalid or contradicts the options.
pub(super) fn answered(
    options: &F1Options,
    record: &str,
    reference: &str,
    line: usize,
) -> Result<(Class, Option<Class>), ScoreError> {
    let F1Options { classes, ties } = *options;
    let label = right_class(reference, classes, line)?;
    if !is_object(record) {
        let chosen = Class::plain(record);
        chosen.check(classes, line, FORM)?;
        return Ok((label, Some(chosen).filter(|_| !record.trim().is_empty())));
    }
    let answer = match ranked(record, &label, line)? {
        Ranked::Scores(scores) => {
            check_scores(&scores, classes, &label, line)?;
            let best = |best: usize, at: usize| {
                let tie = ties == Ties::Last && scores[at] == scores[best];
                if scores[at] > scores[best] || tie { at } else { best }
            };
            Class::Number((0..classes).reduce(best).unwrap_or(0) as u64)
        }
        Ranked::Classes(ranking) => {
            let share = super::Share::Right;
            among_ranking(&AccuracyOptions { share, top: 1, classes, ties }, &ranking, &label, line)?;
            // A ranking of at least one class was checked.
            ranking.into_iter().next().unwrap_or_else(|| label.clone())
        }
    };
    Ok((label, Some(answer)))
}

/// The class that a reference names.
fn right_class(reference: &str, classes: usize, line: usize) -> Result<Class, ScoreError> {
    let label = match is_object(reference) {
        true => parse::<Label>(reference, line, LABEL)?.label,
        false => Class::plain(reference),
    };
    label.check(classes, line, LABEL)?;
    match label == Class::plain("") {
        true => Err(wrong(line, "its reference names no class".to_owned(), LABEL)),
        false => Ok(label),
    }
}

/// What a record says of its classes.
enum Ranked {
    /// A score for each class.
    Scores(Vec<f64>),
    /// The first classes.
    Classes(Vec<Class>),
}

/// Reads a record whose correct class is `label`.
fn ranked(record: &str, label: &Class, line: usize) -> Result<Ranked, ScoreError> {
    let ClassRecord { scores, classes, label: own } = parse(record, line, FORM)?;
    if let Some(own) = own.filter(|own| own != label) {
        let hint = "both must be of the same test set, in the same order";
        return Err(wrong(line, format!("the record has label {own}, the reference {label}"), hint));
    }
    match (scores, classes) {
        (Some(scores), None) => Ok(Ranked::Scores(scores)),
        (None, Some(ranking)) => Ok(Ranked::Classes(ranking)),
        (Some(_), Some(_)) => Err(wrong(line, "both `scores` and `classes`".to_owned(), FORM)),
        (None, None) => Err(wrong(line, "neither `scores` nor `classes`".to_owned(), FORM)),
    }
}

/// Checks that there is a score for each class. Returns the number of the correct class.
fn check_scores(scores: &[f64], classes: usize, label: &Class, line: usize) -> Result<usize, ScoreError> {
    let Class::Number(number) = label else {
        let problem = format!("scores are of classes by number, and the reference is `{label}`");
        return Err(wrong(line, problem, LABEL));
    };
    if scores.len() != classes {
        let problem = format!("{} scores, and the signature says classes:{classes}", scores.len());
        return Err(wrong(line, problem, FORM));
    }
    Ok(*number as usize)
}

fn among_scores(
    options: &AccuracyOptions,
    scores: &[f64],
    label: &Class,
    line: usize,
) -> Result<bool, ScoreError> {
    let right = check_scores(scores, options.classes, label, line)?;
    let own = scores[right];
    let before = |(class, score): (usize, &f64)| {
        let tie = match options.ties {
            Ties::First => class < right,
            Ties::Last => class > right,
        };
        *score > own || (*score == own && tie)
    };
    Ok(scores.iter().enumerate().filter(|one| before(*one)).count() < options.top)
}

fn among_ranking(
    options: &AccuracyOptions,
    ranking: &[Class],
    label: &Class,
    line: usize,
) -> Result<bool, ScoreError> {
    if ranking.len() < options.top || ranking.len() > options.classes {
        let (found, top, classes) = (ranking.len(), options.top, options.classes);
        let problem =
            format!("a ranking of {found}, and top:{top}|classes:{classes} takes {top} to {classes}");
        return Err(wrong(line, problem, FORM));
    }
    let first = &ranking[..options.top];
    for (at, class) in first.iter().enumerate() {
        class.check(options.classes, line, FORM)?;
        if first[..at].contains(class) {
            return Err(wrong(line, format!("class {class} appears twice"), FORM));
        }
    }
    Ok(first.contains(label))
}
