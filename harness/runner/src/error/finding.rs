//! A finding in a recipe, for programs.

use serde::Serialize;
use zoo_recipes::{Diagnostic, Origin};

/// A finding with its place: in a file, in a tier, or in a change of `--set`. Keys of the other
/// places are null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Finding {
    /// File of the recipe, or of a fragment that it uses.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Column, from 1.
    pub column: Option<usize>,
    /// Tier that has the value.
    pub tier: Option<String>,
    /// Change of the command line that has the value.
    #[serde(rename = "override")]
    pub change: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Finding {
    /// The finding of a check.
    pub fn of(found: &Diagnostic) -> Self {
        let Diagnostic { origin, message, hint } = found;
        let finding = Self { message: message.clone(), hint: hint.clone(), ..Self::default() };
        match origin {
            Origin::File { file, line, column } => {
                Self { file: Some(file.to_string()), line: Some(*line), column: Some(*column), ..finding }
            }
            Origin::Tier { name } => Self { tier: Some(name.to_string()), ..finding },
            Origin::Override { text } => Self { change: Some(text.to_string()), ..finding },
        }
    }
}
