//! An entry of the registry: the facts about a metric that follow from its name.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zoo_recipes::Direction;

use super::error::{ScoreError, unknown};
use super::parts::Parts;
use super::registry::{Convention, METRICS};
use super::signature::SignatureError;
use super::speed::Work;

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

/// Reads the options of a metric from the parts of a signature.
pub type ReadOptions = fn(&mut Parts<'_>) -> Result<Convention, SignatureError>;

/// How a training run produces a value of a metric.
#[derive(Debug, Clone, Copy)]
pub enum Path {
    /// Outputs on an evaluation set are scored by the claim's signature.
    Scored(ReadOptions),
    /// As [`Path::Scored`] under another metric's name, restricted to the options that this name
    /// stands for.
    ScoredAs(&'static Entry, fn(&Convention) -> bool),
    /// A term that training logs is compared with the claim, by the claim's signature.
    Trained(ReadOptions),
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

impl Entry {
    /// A metric in percent or points out of 100, scored from outputs.
    pub(crate) const fn percent(
        name: &'static str,
        unit: &'static str,
        direction: Direction,
        read: ReadOptions,
    ) -> Self {
        Self { name, unit, direction, is_percentage: true, path: Path::Scored(read) }
    }

    /// A metric with its own unit, scored from outputs; lower is better.
    pub(crate) const fn measured(name: &'static str, unit: &'static str, read: ReadOptions) -> Self {
        Self { name, unit, direction: Direction::Lower, is_percentage: false, path: Path::Scored(read) }
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

    /// Another name of a metric, restricted to the options that the name stands for.
    pub(crate) const fn alias(
        name: &'static str,
        of: &'static Entry,
        takes: fn(&Convention) -> bool,
    ) -> Self {
        let Entry { unit, direction, is_percentage, .. } = *of;
        Self { name, unit, direction, is_percentage, path: Path::ScoredAs(of, takes) }
    }

    /// The metric with this name, ignoring case.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().copied().find(|metric| metric.name.eq_ignore_ascii_case(name))
    }

    /// The metric whose signatures have this name, and the function that reads its options.
    ///
    /// # Errors
    /// No metric has this name; the error names the nearest one.
    pub fn with_signature(name: &str) -> Result<(&'static Self, ReadOptions), ScoreError> {
        let reads = |entry: &'static Self| match entry.path {
            Path::Scored(read) | Path::Trained(read) => Some((entry, read)),
            Path::ScoredAs(..) | Path::Timed { .. } | Path::Unjudged(_) => None,
        };
        let known: Vec<_> = METRICS.iter().copied().filter_map(reads).collect();
        let found = known.iter().copied().find(|(entry, _)| entry.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(entry, _)| entry.name).collect();
            unknown("metric", name, &names)
        })
    }

    /// Whether a claim on this metric may have a signature with this convention.
    #[must_use]
    pub fn takes(&self, convention: &Convention) -> bool {
        let own = convention.entry();
        match self.path {
            Path::ScoredAs(of, takes) => own == of && takes(convention),
            Path::Scored(_) | Path::Trained(_) => own == self,
            Path::Timed { .. } | Path::Unjudged(_) => false,
        }
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

impl<'de> Deserialize<'de> for &'static Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Entry::with_signature(&name).map(|(entry, _)| entry).map_err(serde::de::Error::custom)
    }
}
