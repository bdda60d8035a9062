//! An entry of the registry: the facts about a metric that follow from its name.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use zoo_recipes::Direction;

/// A metric that claims may name. Two entries are equal if their names are equal.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in recipes, records, signatures and on the command line.
    pub name: &'static str,
    /// Unit of its values, in words.
    pub unit: &'static str,
    /// Whether higher or lower values are better.
    pub direction: Direction,
    /// Whether values are in percent or points out of 100: a score of one half is 50. Error rates
    /// may exceed 100.
    pub is_percentage: bool,
    /// How a training run produces a value of the metric.
    pub path: Path,
}

/// How a training run produces a value of a metric.
#[derive(Debug, Clone, Copy)]
pub enum Path {
    /// Outputs on an evaluation set are scored by the claim's signature.
    Scored,
    /// As [`Path::Scored`] under another metric's name, restricted to the signatures that have
    /// these parts.
    ScoredAs(&'static Entry, &'static [(&'static str, &'static str)]),
    /// A term that training logs is compared with the claim, by the claim's signature.
    Trained,
    /// Two arms are timed against each other.
    Timed {
        /// The unit of work that is counted.
        work: Work,
        /// Whether this applies only to systems that produce spectrograms.
        spectrograms: bool,
    },
    /// No code measures it yet. The text is the reason, the end of "nothing is judged on it: ...".
    Unjudged(&'static str),
}

/// The unit in which a speed is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Updates of the weights.
    Updates,
    /// Tokens of both sides, or frames of speech, without padding.
    Tokens,
    /// Tokens of the target side, without padding; for speech synthesis, frames of the target
    /// spectrograms.
    TargetTokens,
    /// Sentence pairs or utterances.
    Examples,
}

impl Entry {
    /// A metric in percent or points out of 100, scored from outputs.
    pub(crate) const fn percent(name: &'static str, unit: &'static str, direction: Direction) -> Self {
        Self { name, unit, direction, is_percentage: true, path: Path::Scored }
    }

    /// A metric with its own unit, scored from outputs; lower is better.
    pub(crate) const fn measured(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, direction: Direction::Lower, is_percentage: false, path: Path::Scored }
    }

    /// A speed.
    pub(crate) const fn timed(name: &'static str, unit: &'static str, work: Work) -> Self {
        let path = Path::Timed { work, spectrograms: false };
        Self { name, unit, direction: Direction::Higher, is_percentage: false, path }
    }

    /// A metric that no code judges, and the reason.
    pub(crate) const fn unjudged(
        name: &'static str,
        unit: &'static str,
        direction: Direction,
        why: &'static str,
    ) -> Self {
        Self { name, unit, direction, is_percentage: false, path: Path::Unjudged(why) }
    }

    /// Another name of a metric, for the signatures that have these parts.
    pub(crate) const fn alias(
        name: &'static str,
        of: &'static Entry,
        parts: &'static [(&'static str, &'static str)],
    ) -> Self {
        let Entry { unit, direction, is_percentage, .. } = *of;
        Self { name, unit, direction, is_percentage, path: Path::ScoredAs(of, parts) }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}
