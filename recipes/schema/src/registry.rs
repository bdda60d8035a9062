//! The embedded recipes: every `recipes/catalog/<task>/<name>.toml`.

use crate::nearest::nearest;

/// One embedded recipe file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedded {
    /// The file's folder, which is the recipe's task.
    pub task: &'static str,
    /// The file's stem, which is the recipe's name.
    pub name: &'static str,
    /// The file's name in messages: its path from the repository's root.
    pub file: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// One embedded part: TOML that recipes use by name, as a preset of an arm or tier or with
/// `recipe.use`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedPart {
    /// Folder and stem, such as `arm/mixed-backoff`.
    pub name: &'static str,
    /// The text of the file. Its first line is `# zoo part NAME`.
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// All embedded recipes, sorted by task and name.
pub fn embedded() -> &'static [Embedded] {
    EMBEDDED
}

/// All embedded parts (`recipes/parts/<folder>/<name>.toml`), sorted by name.
pub fn parts() -> &'static [EmbeddedPart] {
    PARTS
}

/// The embedded part with this name.
pub(crate) fn part(name: &str) -> Option<&'static EmbeddedPart> {
    PARTS.iter().find(|part| part.name == name)
}

/// The names of all embedded recipes, sorted by task and name.
pub fn names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|recipe| recipe.name).collect()
}

/// The embedded recipe with this name.
///
/// # Errors
/// A hint: the nearest name, or all names.
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
