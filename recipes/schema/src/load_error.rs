//! Errors of loading a recipe, and the names that are paths.

use std::io;
use std::path::PathBuf;

use crate::diagnostic::Diagnostics;

/// Error of loading a recipe.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No embedded recipe has this name.
    #[error("there is no recipe `{name}`\nhint: {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// A suggestion of what to request instead.
        hint: String,
    },
    /// The file cannot be read.
    #[error("cannot read the recipe {}: {source}\nhint: a path works wherever a name does; `zoo list` shows the names", path.display())]
    Read {
        /// The requested path.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The file has errors.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

/// Whether the name is that of a file rather than of an embedded recipe: it contains a `/` or ends
/// in `.toml`.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".toml")
}
