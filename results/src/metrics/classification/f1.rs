//! F1 of classifiers: of each class, the harmonic mean of precision and recall.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde_json::{Map, Value, json};
use zoo_recipes::Direction;

use super::answer::{Class, answered};
use super::options::{F1Options, Ties};
use crate::metrics::contract::{
    Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source,
};

/// Mean of the classes' F1.
pub static F1: Entry = Entry::percent("f1", "percent", Direction::Higher);

/// Words of `average:`. The mean gives every class the same weight.
const AVERAGES: [(&str, ()); 1] = [("macro", ())];

/// Words of `ties:`.
const TIES: [(&str, Ties); 2] = [("first", Ties::First), ("last", Ties::Last)];

/// Largest number of classes that are listed one by one.
const LISTED: usize = 100;

/// Largest number of classes that are printed on one line.
const PRINTED: usize = 20;

/// Answer of a record that names no class.
const NONE: f64 = -1.0;

/// Numbers of records of one class.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Records of the class.
    labelled: f64,
    /// Records that were answered with the class.
    answered: f64,
    /// Records of the class that were answered with it.
    right: f64,
}

impl Counts {
    /// Whether a record or an answer is of the class.
    fn is_present(self) -> bool {
        self.labelled + self.answered > 0.0
    }

    /// Share of the answers that are right; 0 without answers.
    fn precision(self) -> f64 {
        share(self.right, self.answered)
    }

    /// Share of the records that are answered right; 0 without records.
    fn recall(self) -> f64 {
        share(self.right, self.labelled)
    }

    /// Twice the right answers, as a share of records and answers together.
    fn f1(self) -> f64 {
        share(2.0 * self.right, self.labelled + self.answered)
    }
}

fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

/// Counts by class of rows that have the numbers of the right class and of the answer.
fn counts<'r>(rows: impl Iterator<Item = &'r [f64]>, classes: usize) -> Vec<Counts> {
    let mut found = vec![Counts::default(); classes];
    for row in rows {
        let (label, answer) = (row[0], row[1]);
        found[label as usize].labelled += 1.0;
        if answer != NONE {
            found[answer as usize].answered += 1.0;
            found[answer as usize].right += f64::from(u8::from(answer == label));
        }
    }
    found
}

impl Metric for F1Options {
    fn entry(&self) -> &'static Entry {
        &F1
    }

    fn check(&self) -> Result<(), ScoreError> {
        if self.classes >= 2 {
            return Ok(());
        }
        let value = self.classes.to_string();
        Err(ScoreError::OutOfRange { option: "classes", value, hint: "2 at least" })
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        let ties = TIES.iter().find(|(_, ties)| *ties == self.ties).map_or("first", |(name, _)| name);
        vec![
            ("average", "macro".to_owned()),
            ("classes", self.classes.to_string()),
            ("ties", ties.to_string()),
        ]
    }

    fn source(&self) -> Source {
        Source::Labelled
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        let [references] = references else {
            return Err(ScoreError::ReferenceCount { expected: 1, found: references.len() });
        };
        let one = |(at, (record, reference)): (usize, (&String, &String))| {
            answered(self, record, reference, at + 1)
        };
        let answers: Vec<(Class, Option<Class>)> = records
            .par_iter()
            .zip(references)
            .enumerate()
            .map(one)
            .collect::<Vec<Result<_, ScoreError>>>()
            .into_iter()
            .collect::<Result<_, _>>()?;
        let named = answers.iter().flat_map(|(label, answer)| [Some(label), answer.as_ref()]);
        let names: Vec<&Class> = named.flatten().collect::<BTreeSet<_>>().into_iter().collect();
        if names.len() > self.classes {
            let value = self.classes.to_string();
            let hint = "the records and references have more classes";
            return Err(ScoreError::OutOfRange { option: "classes", value, hint });
        }
        let number = |class: &Class| names.binary_search(&class).map_or(NONE, |at| at as f64);
        let row =
            |(label, answer): &(Class, Option<Class>)| [number(label), answer.as_ref().map_or(NONE, number)];
        let rows = Rows::even(2, answers.iter().flat_map(row).collect());
        let counts = counts(Drawn::all(&rows, &mut Vec::new()).rows(), names.len());
        Ok(Reading { rows, detail: detail(&names, &counts) })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        // Numbers of classes are below the number of names; `self.classes` may be any number.
        let classes = drawn.rows().flatten().fold(0.0, |most: f64, class| most.max(*class)) as usize + 1;
        let counts = counts(drawn.rows(), classes);
        let present: Vec<f64> =
            counts.into_iter().filter(|class| class.is_present()).map(Counts::f1).collect();
        100.0 * share(present.iter().sum(), present.len() as f64)
    }
}

/// Precision, recall and F1 of each class in percent, and the number of its records.
fn detail(names: &[&Class], counts: &[Counts]) -> Map<String, Value> {
    let mut detail = Map::new();
    if names.len() > LISTED {
        return detail;
    }
    let of_class = |(name, class): (&&Class, &Counts)| {
        json!({
            "class": name, "f1": 100.0 * class.f1(), "precision": 100.0 * class.precision(),
            "recall": 100.0 * class.recall(), "records": class.labelled as u64,
        })
    };
    detail.insert("by_class".into(), names.iter().zip(counts).map(of_class).collect());
    if names.len() <= PRINTED {
        let words = names.iter().zip(counts).map(|(name, class)| format!("{name} {:.2}", 100.0 * class.f1()));
        detail.insert("line".into(), format!("by class: {}", words.collect::<Vec<_>>().join(", ")).into());
    }
    detail
}

/// Reads the options of F1.
pub fn read_f1<C: From<F1Options>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    parts.word("average", &AVERAGES)?;
    let classes = parts.number("classes", 2)?;
    let ties = parts.word("ties", &TIES)?;
    Ok(F1Options { classes, ties }.into())
}
