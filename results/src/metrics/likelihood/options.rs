//! Options of likelihoods.

use crate::metrics::contract::{Parts, ScoreError, SignatureError, Unit, yes};

/// The quantity computed from nats and units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Nats per unit; the metric is `loss`.
    Loss,
    /// e to the power of nats per unit; the metric is `perplexity`.
    Perplexity,
    /// Bits per unit; the metric is `bits-per-character`.
    Bits,
}

/// Treatment of unknown tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknowns {
    /// There are none, because the vocabulary can represent everything.
    None,
    /// They are scored like other tokens.
    Scored,
    /// Neither their cost nor their number counts.
    LeftOut,
}

/// Options of likelihoods of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceOptions {
    /// Treatment of unknown tokens.
    pub unknowns: Unknowns,
    /// Whether end tokens count.
    pub ends: bool,
    /// Whether a record begins with the state at the end of the previous record.
    pub carried: bool,
}

/// Options of likelihoods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LikelihoodOptions {
    /// Loss, perplexity or bits.
    pub quantity: Quantity,
    /// Unit that is counted.
    pub unit: Unit,
    /// Options of sequences; `None` if a record is a single decision (`unit:example`).
    pub sequence: Option<SequenceOptions>,
}

/// Words of `unk:`.
const UNKNOWNS: [(&str, Unknowns); 3] =
    [("none", Unknowns::None), ("scored", Unknowns::Scored), ("left-out", Unknowns::LeftOut)];

/// Words of `state:`.
const STATES: [(&str, bool); 2] = [("carried", true), ("reset", false)];

impl SequenceOptions {
    fn parts(self) -> [(&'static str, String); 3] {
        let unknowns =
            UNKNOWNS.iter().find(|(_, one)| *one == self.unknowns).map_or("none", |(name, _)| name);
        let state = if self.carried { "carried" } else { "reset" };
        [("unk", unknowns.to_string()), ("end", yes(self.ends)), ("state", state.to_string())]
    }

    fn read(parts: &mut Parts<'_>) -> Result<Self, SignatureError> {
        Ok(Self {
            unknowns: parts.word("unk", &UNKNOWNS)?,
            ends: parts.yes("end")?,
            carried: parts.word("state", &STATES)?,
        })
    }
}

impl LikelihoodOptions {
    pub(super) fn check_unit(&self) -> Result<(), ScoreError> {
        let wrong = |hint| {
            let value = self.unit.name().to_owned();
            Err(ScoreError::OutOfRange { option: "unit", value, hint })
        };
        match (self.quantity, self.unit) {
            (_, Unit::Frame) => wrong("frames have no likelihood here; a loss of:objective may have them"),
            (Quantity::Perplexity, Unit::Sentence | Unit::Example) => {
                wrong("perplexity is by token, word, character or byte")
            }
            (Quantity::Bits, unit) if !matches!(unit, Unit::Character | Unit::Byte) => {
                wrong("bits are by character or byte")
            }
            (_, unit) if (unit == Unit::Example) == self.sequence.is_some() => {
                wrong("an example has no unk, end and state; only the other units have them")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn to_parts(self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        if self.quantity == Quantity::Loss {
            parts.push(("of", "nll".to_string()));
        }
        parts.push(("unit", self.unit.name().to_string()));
        parts.extend(self.sequence.into_iter().flat_map(SequenceOptions::parts));
        parts
    }

    pub(super) fn from_parts(parts: &mut Parts<'_>, quantity: Quantity) -> Result<Self, SignatureError> {
        let unit = parts.word("unit", &Unit::WORDS)?;
        let sequence = (unit != Unit::Example).then(|| SequenceOptions::read(parts)).transpose()?;
        Ok(Self { quantity, unit, sequence })
    }
}

/// Options of a mean objective. The recipe defines the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectiveOptions {
    /// Unit of the divisor.
    pub unit: Unit,
}

impl ObjectiveOptions {
    pub(super) fn from_parts(parts: &mut Parts<'_>) -> Result<Self, SignatureError> {
        Ok(Self { unit: parts.word("unit", &Unit::WORDS)? })
    }
}
