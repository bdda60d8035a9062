//! Spectral distances as metrics: means over the measurements of each utterance.

use super::line::MeasuredLine;
use super::options::{CepstralOptions, MelErrorOptions, check_mels};
use crate::metrics::contract::{
    Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source, yes,
};
use zoo_recipes::Direction;

/// Mean squared error of log-mel spectrograms.
pub static MEL_ERROR: Entry = Entry::measured("mel-error", "squared difference of log-mel values");

/// Mel-cepstral distortion.
pub static MCD: Entry = Entry::measured("mcd", "decibels");

/// Mean opinion score.
pub static MOS: Entry = Entry::unjudged("mos", "points, 1 to 5", Direction::Higher, "people give it");

/// Pointer to the definitions.
const DEFINITIONS: &str = "docs/synthesis.md describes the measures";

impl Metric for CepstralOptions {
    fn entry(&self) -> &'static Entry {
        &MCD
    }

    fn check(&self) -> Result<(), ScoreError> {
        self.check_range()
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("cep", format!("1-{}", self.coefficients)),
            ("dct", "ortho".to_string()),
            ("dtw", yes(self.warped)),
            ("mel", self.mels.to_string()),
            ("mean", "utterance".to_string()),
        ]
    }

    fn source(&self) -> Source {
        Source::Record
    }

    fn read(&self, records: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
        measures(records, self)
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        mean(drawn)
    }

    fn takes_pairs(&self) -> bool {
        true
    }
}

impl Metric for MelErrorOptions {
    fn entry(&self) -> &'static Entry {
        &MEL_ERROR
    }

    fn check(&self) -> Result<(), ScoreError> {
        check_mels(self.mels, 1)
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("mel", self.mels.to_string()), ("mean", "frame".to_string())]
    }

    fn source(&self) -> Source {
        Source::Record
    }

    fn read(&self, records: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
        measures(records, self)
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        mean(drawn)
    }

    fn takes_pairs(&self) -> bool {
        true
    }
}

/// The measures of all lines by these options.
fn measures(records: &[String], options: &dyn Metric) -> Result<Reading, ScoreError> {
    let rows = (1..).zip(records).map(|(place, line)| MeasuredLine::read(line, options, place));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(Rows::even(2, rows.into_iter().flat_map(|(sum, count)| [sum, count]).collect()).into())
}

fn mean(drawn: Drawn<'_>) -> f64 {
    let (sums, arithmetic) = drawn.sums();
    arithmetic.ratio(sums[0], sums[1])
}

/// Reads the options of the mean squared error.
pub fn read_error<C: From<MelErrorOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    let mels = parts.number("mel", 1)?;
    parts.only("mean", "frame", DEFINITIONS)?;
    Ok(MelErrorOptions { mels }.into())
}

/// Reads the options of mel-cepstral distortion.
pub fn read_cepstra<C: From<CepstralOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    let cep = parts.take("cep")?;
    let last = cep.strip_prefix("1-").and_then(|last| Some((last, last.parse::<usize>().ok()?)));
    let Some((_, coefficients)) = last.filter(|(text, last)| *text == last.to_string()) else {
        return parts.fail(format!("`cep:{cep}`"), "coefficients are `1-13`, from 1 to the last");
    };
    parts.only("dct", "ortho", DEFINITIONS)?;
    let (warped, mels) = (parts.yes("dtw")?, parts.number("mel", 2)?);
    parts.only("mean", "utterance", DEFINITIONS)?;
    Ok(CepstralOptions { coefficients, warped, mels }.into())
}
