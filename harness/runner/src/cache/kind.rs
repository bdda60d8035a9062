//! Kinds of what lies in the home.

use clap::ValueEnum;

/// A kind of files in the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Kind {
    /// Files as they were downloaded, and unfinished downloads
    Downloads,
    /// Unpacked members of downloaded archives
    Corpora,
    /// Data after preparation: ids, vocabularies, lists of recordings, cached frames
    Prepared,
    /// States and weights of runs
    Checkpoints,
    /// The other files of runs: identity, recipe, log, evaluations
    Runs,
    /// Kept outputs that records name
    Hypotheses,
    /// Compiled kernels of GPUs
    Kernels,
    /// The ledger, and the pinned digests of downloads
    Ledger,
    /// Files with temporary names, of live and dead processes
    Temporary,
    /// Locks, and everything that is not zoo's
    Other,
}

impl Kind {
    /// Every kind, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::Downloads,
        Self::Corpora,
        Self::Prepared,
        Self::Checkpoints,
        Self::Runs,
        Self::Hypotheses,
        Self::Kernels,
        Self::Ledger,
        Self::Temporary,
        Self::Other,
    ];

    /// The word in tables and options.
    pub fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_the_table() {
        assert_eq!(Kind::ALL, Kind::value_variants());
        assert_eq!(Kind::Checkpoints.word(), "checkpoints");
    }
}
