//! Records of likelihoods and of losses.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::options::{LikelihoodOptions, Unknowns};
use crate::metrics::contract::{ScoreError, Unit, parse, wrong};

/// Form of a valid record.
const FORM: &str = "a record is `{\"nats\": 12.3, \"tokens\": 4}`; docs/verdicts.md has all its keys";

/// Form of a valid record of a loss.
const LOSS_FORM: &str =
    "a record of a loss is `{\"loss\": 3.2, \"count\": 80}`: the sum and what it is divided by";

/// Cost of a record, as one line of JSON. The keys are in the module's table; other keys of a line
/// are for people.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LikelihoodRecord {
    /// Summed cost of all units, in nats.
    pub nats: f64,
    /// Number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Number of words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<u64>,
    /// Number of code points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<u64>,
    /// Number of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The share of end tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<LikelihoodPart>,
    /// The share of unknown tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<LikelihoodPart>,
    /// State of the model at the beginning of the record.
    #[serde(default, skip_serializing_if = "ModelState::is_reset")]
    pub state: ModelState,
}

/// A share of a record.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LikelihoodPart {
    /// Cost of the share, in nats.
    pub nats: f64,
    /// Number of units, in the unit of the signature.
    pub count: u64,
}

/// State of a model at the beginning of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelState {
    /// The state at the end of the previous record.
    Carried,
    /// A fresh state.
    #[default]
    Reset,
}

impl ModelState {
    fn is_reset(&self) -> bool {
        *self == Self::Reset
    }
}

impl fmt::Display for LikelihoodRecord {
    /// The line. A number that is not finite becomes `null`, which is rejected when the line is
    /// read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// (nats, units) of a record, as the options count them; `line` counts from 1.
pub(super) fn cost(options: &LikelihoodOptions, text: &str, line: usize) -> Result<(f64, f64), ScoreError> {
    let cost: LikelihoodRecord = parse(text, line, FORM)?;
    let (key, count) = match options.unit {
        Unit::Token => ("tokens", cost.tokens),
        Unit::Word => ("words", cost.words),
        Unit::Character => ("characters", cost.characters),
        Unit::Byte => ("bytes", cost.bytes),
        Unit::Sentence | Unit::Example | Unit::Frame => ("", Some(1)),
    };
    let Some(mut count) = count else {
        return Err(wrong(
            line,
            format!("no `{key}`, and the signature says unit:{}", options.unit.name()),
            FORM,
        ));
    };
    let mut nats = cost.nats;
    if let Some(sequence) = options.sequence {
        let carried = cost.state == ModelState::Carried;
        if carried != sequence.carried {
            let words = |carried| if carried { "carried" } else { "reset" };
            let (found, said) = (words(carried), words(sequence.carried));
            let problem = format!("its state was {found}, and the signature says state:{said}");
            return Err(wrong(
                line,
                problem,
                "records say `\"state\": \"carried\"` where it was; else reset",
            ));
        }
        let mut leave_out = |part: Option<LikelihoodPart>, key: &str| {
            let Some(part) = part else {
                return Err(wrong(line, format!("there is no `{key}`, which the signature excludes"), FORM));
            };
            nats -= part.nats;
            // A sentence remains one unit, whatever is left out of it.
            if options.unit != Unit::Sentence {
                let problem = || wrong(line, format!("`{key}` has more units than there are"), FORM);
                count = count.checked_sub(part.count).ok_or_else(problem)?;
            }
            Ok(())
        };
        if !sequence.ends {
            leave_out(cost.end, "end")?;
        }
        match (sequence.unknowns, cost.unknown) {
            (Unknowns::LeftOut, part) => leave_out(part, "unknown")?,
            (Unknowns::None, Some(part)) if part.count > 0 => {
                let problem = format!("{} unknown units, and the signature says unk:none", part.count);
                return Err(wrong(line, problem, "unk:scored or unk:left-out"));
            }
            (Unknowns::None | Unknowns::Scored, _) => {}
        }
    }
    if !nats.is_finite() {
        return Err(wrong(line, "nats are not finite".to_owned(), FORM));
    }
    Ok((nats, count as f64))
}

/// Contribution of a record to a mean objective, as one line of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossRecord {
    /// Sum of the objective.
    pub loss: f64,
    /// Divisor of the sum.
    pub count: f64,
}

impl fmt::Display for LossRecord {
    /// The line. A number that is not finite becomes `null`, which is rejected when the line is
    /// read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// (sum, count) of a loss.
pub(super) fn loss(text: &str, line: usize) -> Result<(f64, f64), ScoreError> {
    let LossRecord { loss, count } = parse(text, line, LOSS_FORM)?;
    if !loss.is_finite() || !count.is_finite() || count < 0.0 {
        return Err(wrong(line, format!("{loss} over {count}"), LOSS_FORM));
    }
    Ok((loss, count))
}

/// Rows of all records. A set without any units has no mean.
pub(super) fn rows(
    records: &[String],
    read: impl Fn(&str, usize) -> Result<(f64, f64), ScoreError>,
) -> Result<Vec<f64>, ScoreError> {
    let pairs = (1..).zip(records).map(|(line, text)| read(text, line)).collect::<Result<Vec<_>, _>>()?;
    if pairs.iter().map(|(_, count)| count).sum::<f64>() <= 0.0 {
        return Err(wrong(records.len(), "there are no units, so there is no mean".to_owned(), FORM));
    }
    Ok(pairs.into_iter().flat_map(|(sum, count)| [sum, count]).collect())
}
