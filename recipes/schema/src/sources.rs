//! Where the texts come from that a recipe file names: its bases and its parts.

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{LoadError, is_path};
use crate::nearest::did_you_mean;
use crate::registry;
use crate::tree::{self, Node, Origin};

/// A file's text and what it is called.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) file: String,
    pub(crate) folder: PathBuf,
}

impl Source {
    /// A path starts at `folder`.
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

/// Where a base is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bases<'a> {
    /// Among the embedded recipes and the files below this folder.
    In(&'a Path),
    /// These texts, the nearest base's first; beyond them, embedded recipes. No file is read.
    Given(&'a [String]),
}

impl Bases<'_> {
    /// The base with this name; `depth` is 1 for the base of the document itself.
    pub(crate) fn open(self, name: &str, depth: usize) -> Result<Source, LoadError> {
        let texts = match self {
            Self::In(folder) => return Source::open(name, folder),
            Self::Given(texts) => texts,
        };
        // Texts of parts stand among them.
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

/// Bytes of the parts that a file and its bases may read together, a part counted each time. A file from others could name a large one
/// often.
const MOST_BYTES: usize = 4 << 20;

/// What the first line of a part's text says before its name.
const PART: &str = "# zoo part ";

/// The name of a part, by its first line. `None`: the text is a recipe's.
pub(crate) fn part_name(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix(PART).map(str::trim)
}

/// The parts that a file and its bases may use, and those that they have used.
pub(crate) struct Shelf<'a> {
    /// Texts that came with the file; they win over the embedded ones.
    given: &'a [String],
    /// The used parts' names and texts, in the order of their first use.
    used: Vec<(String, String)>,
    /// Bytes that may still be read.
    left: usize,
}

impl<'a> Shelf<'a> {
    /// The shelf of a file whose bases are looked for in `bases`.
    pub(crate) fn of(bases: Bases<'a>) -> Self {
        let given = match bases {
            Bases::In(_) => &[],
            Bases::Given(texts) => texts,
        };
        Self { given, used: Vec::new(), left: MOST_BYTES }
    }

    /// The tree of a part, such as `arm/mixed-backoff`; named at `at` by a word of its `folder`. `None`, and why, if there is none.
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

    /// The texts of the parts that were used.
    pub(crate) fn into_texts(self) -> impl Iterator<Item = String> {
        self.used.into_iter().map(|(_, text)| text)
    }
}

fn unknown_part(folder: &str, word: &str, at: &Origin) -> Diagnostic {
    let names = registry::parts().iter().map(|part| part.name);
    // In `use` a part has its folder's name before it; presets have theirs from where they stand.
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
