//! Errors of a recipe: what is wrong, where, and what to do about it.

use std::fmt;

use crate::origin::Origin;

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Diagnostic {
    /// Where the value was written.
    pub origin: Origin,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error without a hint.
    pub fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin, message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: error: {}", self.origin, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// All errors of one check. A returned `Err` always contains at least one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds an error, unless it is already present. (Arms share the layers below them, so the same
    /// error may be found several times.)
    pub fn push(&mut self, one: Diagnostic) {
        if !self.found.contains(&one) {
            self.found.push(one);
        }
    }

    /// Adds all errors of another check.
    pub fn extend(&mut self, other: Diagnostics) {
        for one in other.found {
            self.push(one);
        }
    }

    /// The errors in the order in which they were found, or by place after [`Self::sort`].
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// Number of errors.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Sorts by file, line and column, with the command line last.
    pub fn sort(&mut self) {
        self.found.sort();
    }

    /// Returns `value` if there are no errors.
    ///
    /// # Errors
    /// The errors, sorted by place.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Diagnostics> {
        if self.is_empty() {
            return Ok(value);
        }
        self.sort();
        Err(self)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self { found: vec![one] }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, one) in self.found.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{one}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
