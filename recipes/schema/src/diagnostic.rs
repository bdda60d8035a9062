//! What is wrong with a recipe, where, and what to do about it.

use std::fmt;

use crate::tree::Origin;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Diagnostic {
    /// Where.
    pub origin: Origin,
    /// What.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A finding without advice.
    pub fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin, message: message.into(), hint: None }
    }

    /// Adds advice.
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

/// All findings of one check. As an error it is never empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a finding unless it is there already (arms share what is below them).
    pub fn push(&mut self, one: Diagnostic) {
        if !self.found.contains(&one) {
            self.found.push(one);
        }
    }

    /// Adds all of another check's findings.
    pub fn extend(&mut self, other: Diagnostics) {
        for one in other.found {
            self.push(one);
        }
    }

    /// In the order in which they were found, or by place after [`Self::sort`].
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// Number of findings.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Is nothing wrong?
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// By file, line and column; command line last.
    pub fn sort(&mut self) {
        self.found.sort();
    }

    /// `value` if nothing was found.
    ///
    /// # Errors
    /// The findings, sorted by place.
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
