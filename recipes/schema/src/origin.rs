//! Places in a recipe, for messages.

use std::fmt;
use std::sync::Arc;

/// Where a key or value was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// In a file, at a 1-based line and column. Columns count characters.
    File {
        /// The file's name in messages.
        file: Arc<str>,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// On the command line.
    Override {
        /// The text `key=value` as given.
        text: Arc<str>,
    },
    /// In a tier that the program provides for every recipe.
    Tier {
        /// Name of the tier.
        name: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Origin::Override { text } => write!(f, "--set {text}"),
            Origin::Tier { name } => write!(f, "the tier {name}"),
        }
    }
}
