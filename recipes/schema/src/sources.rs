//! Finds the texts that a recipe file refers to: its bases and its parts.

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load_error::{LoadError, is_path};
use crate::nearest::did_you_mean;
use crate::origin::Origin;
use crate::registry;
use crate::tree::{self, Node};

/// The text of a file, and its name in messages.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) file: String,
    pub(crate) folder: PathBuf,
}

impl Source {
    /// Reads an embedded recipe or a file. A relative path starts at `folder`.
    pub(crate) fn open(name_or_path: &str, folder: &Path) -> Result<Self, LoadError> {
        if !is_path(name_or_path) {
            return match registry::find(name_or_path) {
                Ok(found) => Ok(Self {
                    text: found.text.to_owned(),
                    file: found.file.to_owned(),
                    folder: PathBuf::new(),
                }),
                Err(hint) => {
                    let file = format!("{name_or_path}.toml");
                    let hint = match folder.join(&file).is_file() {
                        true => format!("the file {file} is named by its path: ./{file}"),
                        false => hint,
                    };
                    Err(LoadError::Unknown { name: name_or_path.to_owned(), hint })
                }
            };
        }
        let path = folder.join(name_or_path);
        match crate::untrusted::read_to_string(&path) {
            Ok(text) => {
                let folder = path.parent().map(Path::to_owned).unwrap_or_default();
                Ok(Self { text, file: path.display().to_string(), folder })
            }
            Err(source) => Err(LoadError::Read { path, source }),
        }
    }
}

/// Where to look for a base.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bases<'a> {
    /// Embedded recipes, and files with paths relative to this folder.
    In(&'a Path),
    /// These texts, nearest base first, and after them embedded recipes. No file is read.
    Given(&'a [String]),
}

impl Bases<'_> {
    /// Opens the base with this name. `depth` is 1 for the document's own base.
    pub(crate) fn open(self, name: &str, depth: usize) -> Result<Source, LoadError> {
        let texts = match self {
            Self::In(folder) => return Source::open(name, folder),
            Self::Given(texts) => texts,
        };
        // Texts of parts may be among them.
        match texts.iter().filter(|text| part_name(text).is_none()).nth(depth - 1) {
            Some(text) => Ok(Source { text: text.clone(), file: name.to_owned(), folder: PathBuf::new() }),
            None if is_path(name) => {
                let hint = "the recipe came without the text of its base".to_owned();
                Err(LoadError::Unknown { name: name.to_owned(), hint })
            }
            None => Source::open(name, Path::new("")),
        }
    }
}

/// Largest total size in bytes of the parts that a file and its bases use, counting each use.
/// Without it, a file from others could use a large part many times.
const MOST_BYTES: usize = 4 << 20;

/// Start of a part's first line, before the part's name.
const PART: &str = "# zoo part ";

/// The name of a part, from its first line. `None` if the text is that of a recipe.
pub(crate) fn part_name(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix(PART).map(str::trim)
}

/// The parts available to a file and its bases, and those that they have used.
pub(crate) struct Shelf<'a> {
    /// Texts that came with the file. They replace the embedded ones.
    given: &'a [String],
    /// Names and texts of the used parts, in the order of their first use.
    used: Vec<(String, String)>,
    /// Bytes that may still be used.
    left: usize,
}

impl<'a> Shelf<'a> {
    /// The parts available to a file whose bases are looked for in `bases`.
    pub(crate) fn of(bases: Bases<'a>) -> Self {
        let given = match bases {
            Bases::In(_) => &[],
            Bases::Given(texts) => texts,
        };
        Self { given, used: Vec::new(), left: MOST_BYTES }
    }

    /// Opens a part, such as `arm/mixed-backoff`. The file names it at `at`, by `word` within
    /// `folder`. If there is none, this adds an error and returns `None`.
    pub(crate) fn open(
        &mut self,
        folder: &str,
        word: &str,
        at: &Origin,
        found: &mut Diagnostics,
    ) -> Option<Node> {
        let name = if folder.is_empty() { word.to_owned() } else { format!("{folder}/{word}") };
        let given = self.given.iter().find(|text| part_name(text) == Some(&name)).cloned();
        let Some(text) = given.or_else(|| registry::part(&name).map(|part| part.text.to_owned())) else {
            found.push(unknown_part(folder, word, at));
            return None;
        };
        let Some(left) = self.left.checked_sub(text.len()) else {
            let message =
                format!("the parts that the recipe uses have more than {MOST_BYTES} bytes together");
            found.push(
                Diagnostic::new(at.clone(), message).hint("name a part once, or write out what it states"),
            );
            return None;
        };
        self.left = left;
        match tree::parse(&text, &format!("recipes/parts/{name}.toml")) {
            Ok(node) => {
                if !self.used.iter().any(|(known, _)| *known == name) {
                    self.used.push((name, text));
                }
                Some(node)
            }
            Err(more) => {
                found.extend(more);
                None
            }
        }
    }

    /// The texts of the used parts.
    pub(crate) fn into_texts(self) -> impl Iterator<Item = String> {
        self.used.into_iter().map(|(_, text)| text)
    }
}

fn unknown_part(folder: &str, word: &str, at: &Origin) -> Diagnostic {
    let names = registry::parts().iter().map(|part| part.name);
    // `use` names a part with its folder. For presets, their position determines the folder.
    let here = |name: &&'static str| match folder {
        "" => !name.starts_with("arm/") && !name.starts_with("tier/"),
        _ => name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
    };
    let short = |name: &'static str| if folder.is_empty() { name } else { &name[folder.len() + 1..] };
    let known: Vec<&str> = names.filter(here).map(short).collect();
    let (message, many) = match folder {
        "" => (format!("there is no part `{word}`"), "parts"),
        "arm" => (format!("there is no preset `{word}` of an arm"), "presets"),
        _ => (format!("there is no preset `{word}` of a {folder}"), "presets"),
    };
    Diagnostic::new(at.clone(), message).hint(did_you_mean(word, known.iter().copied(), many))
}
