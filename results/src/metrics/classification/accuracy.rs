//! Accuracy, top-k accuracy and error of classifiers.

use rayon::prelude::*;
use serde_json::Map;
use zoo_recipes::Direction;

use super::answer::is_right;
use super::options::{AccuracyOptions, Share, Ties};
use crate::metrics::contract::{
    Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source,
};

/// Share of records whose correct class is among the first k.
pub static ACCURACY: Entry = Entry::percent("accuracy", "percent", Direction::Higher);

/// Share of records whose correct class is not among the first k.
pub static ERROR: Entry = Entry::percent("error", "percent", Direction::Lower);

/// Accuracy of the top-ranked class.
pub static TOP1: Entry = Entry::alias("top1", &ACCURACY, &[("top", "1")]);

/// Accuracy among the five top-ranked classes.
pub static TOP5: Entry = Entry::alias("top5", &ACCURACY, &[("top", "5")]);

/// Words of `ties:`.
const TIES: [(&str, Ties); 2] = [("first", Ties::First), ("last", Ties::Last)];

impl Metric for AccuracyOptions {
    fn entry(&self) -> &'static Entry {
        match self.share {
            Share::Right => &ACCURACY,
            Share::Wrong => &ERROR,
        }
    }

    fn check(&self) -> Result<(), ScoreError> {
        if self.top >= 1 && self.top < self.classes {
            return Ok(());
        }
        let value = format!("{} of {} classes", self.top, self.classes);
        Err(ScoreError::OutOfRange { option: "top", value, hint: "from 1, and below the number of classes" })
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        let ties = TIES.iter().find(|(_, ties)| *ties == self.ties).map_or("first", |(name, _)| name);
        vec![("top", self.top.to_string()), ("classes", self.classes.to_string()), ("ties", ties.to_string())]
    }

    fn source(&self) -> Source {
        Source::Labelled
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        let [references] = references else {
            return Err(ScoreError::ReferenceCount { expected: 1, found: references.len() });
        };
        let one = |(at, (record, reference)): (usize, (&String, &String))| {
            is_right(self, record, reference, at + 1)
        };
        let answers: Vec<bool> = records
            .par_iter()
            .zip(references)
            .enumerate()
            .map(one)
            .collect::<Vec<Result<bool, ScoreError>>>()
            .into_iter()
            .collect::<Result<_, _>>()?;
        let right = answers.iter().filter(|right| **right).count() as u64;
        let counts = |right: bool| f64::from(u8::from(right == (self.share == Share::Right)));
        let rows = answers.iter().flat_map(|right| [counts(*right), 1.0]).collect();
        let mut detail = Map::new();
        detail.insert("right".into(), right.into());
        detail.insert("wrong".into(), (answers.len() as u64 - right).into());
        Ok(Reading { rows: Rows::even(2, rows), detail })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        100.0 * arithmetic.ratio(sums[0], sums[1])
    }

    fn takes_pairs(&self) -> bool {
        true
    }
}

/// Reads the options of accuracy.
pub fn read_accuracy<C: From<AccuracyOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(read(parts, Share::Right)?.into())
}

/// Reads the options of error.
pub fn read_error<C: From<AccuracyOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(read(parts, Share::Wrong)?.into())
}

fn read(parts: &mut Parts<'_>, share: Share) -> Result<AccuracyOptions, SignatureError> {
    let (top, classes) = (parts.number("top", 1)?, parts.number("classes", 2)?);
    let ties = parts.word("ties", &TIES)?;
    Ok(AccuracyOptions { share, top, classes, ties })
}
