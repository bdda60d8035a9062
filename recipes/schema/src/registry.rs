//! The recipes that the program carries: every `recipes/catalog/<task>/<name>.toml`.

use crate::nearest::nearest;

/// One embedded recipe file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedded {
    /// Folder: the recipe's task.
    pub task: &'static str,
    /// Stem: the recipe's name.
    pub name: &'static str,
    /// The file as messages name it, from the repository's root.
    pub file: &'static str,
    /// The text.
    pub text: &'static str,
}

/// One embedded part: TOML that recipes use by name, as a preset of an arm or tier or with `recipe.use`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedPart {
    /// Folder and stem, such as `arm/mixed-backoff`.
    pub name: &'static str,
    /// The text. Its first line is `# zoo part NAME`.
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// All embedded recipes, by task and name.
pub fn embedded() -> &'static [Embedded] {
    EMBEDDED
}

/// All embedded parts (`recipes/parts/<folder>/<name>.toml`), by name.
pub fn parts() -> &'static [EmbeddedPart] {
    PARTS
}

/// The embedded part of that name.
pub(crate) fn part(name: &str) -> Option<&'static EmbeddedPart> {
    PARTS.iter().find(|part| part.name == name)
}

/// The names of all embedded recipes, by task and name.
pub fn names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|recipe| recipe.name).collect()
}

/// The embedded recipe of that name.
///
/// # Errors
/// A hint: the nearest name, or all of them.
pub fn find(name: &str) -> Result<&'static Embedded, String> {
    if let Some(recipe) = EMBEDDED.iter().find(|recipe| recipe.name == name) {
        return Ok(recipe);
    }
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the recipes are {}", names().join(", ")),
    };
    Err(format!("{hint} A file is named by a path with a `/`, or by its `.toml`."))
}
