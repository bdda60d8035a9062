//! A recipe file: read, put upon its base, taken apart into body, arms and tiers.

use std::io;
use std::path::{Path, PathBuf};

use crate::check::check_block;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::did_you_mean;
use crate::registry;
use crate::spec::{About, DataStatus};
use crate::tree::{self, Node, Origin, Table, Value};

/// A recipe file and what it inherits. Its arms and tiers are not applied yet; [`Document::resolve`] does.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) about: About,
    file: String,
    folder: PathBuf,
    text: String,
    base: Option<String>,
    base_text: Option<String>,
    /// The base's body, then this file's.
    pub(crate) bodies: Vec<Node>,
    pub(crate) arms: Vec<Overlay>,
    pub(crate) tiers: Vec<Overlay>,
}

/// A named arm or tier: what the base says of it, then what this file says.
#[derive(Debug, Clone)]
pub(crate) struct Overlay {
    pub(crate) name: String,
    pub(crate) layers: Vec<Layer>,
}

/// What one file says of an arm or tier.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) node: Node,
    /// Said by the base. What its `without` names may be gone already: the file upon it has the last word on the body.
    pub(crate) inherited: bool,
}

/// Why a recipe could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No embedded recipe has this name.
    #[error("there is no recipe `{name}`\nhint: {hint}")]
    Unknown {
        /// As asked for.
        name: String,
        /// What to ask for instead.
        hint: String,
    },
    /// The file cannot be read.
    #[error("cannot read the recipe {}: {source}\nhint: a path works wherever a name does; `zoo list` shows the names", path.display())]
    Read {
        /// As asked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is wrong.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

/// Does this name a file rather than an embedded recipe? It does if it has a `/` or ends in `.toml`.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".toml")
}

impl Document {
    /// Loads a recipe by name, or from a path. Syntax, base, arms and tiers are checked; [`Self::check`] checks the rest.
    ///
    /// # Errors
    /// See [`LoadError`]. A file that is wrong is reported with all that is wrong in it.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        let source = Source::open(name_or_path, Path::new(""))?;
        let folder = source.folder.clone();
        Ok(Self::read_upon(source, Bases::In(&folder))?)
    }

    /// Loads from text. `file` is what messages call it; its stem is the recipe's name. Relative paths of the recipe start
    /// at `folder`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, Diagnostics> {
        let bases = Bases::In(folder);
        Self::read_upon(
            Source { text: text.to_owned(), file: file.to_owned(), folder: folder.to_owned() },
            bases,
        )
    }

    /// As [`Self::parse`], without reading any file: the base is `base`, where that is given, else an embedded recipe. For recipes
    /// that somebody else sent.
    ///
    /// # Errors
    /// All that is wrong with it; so is a base that is a path, where `base` is not given.
    pub fn parse_sealed(text: &str, file: &str, base: Option<&str>) -> Result<Self, Diagnostics> {
        let source = Source { text: text.to_owned(), file: file.to_owned(), folder: PathBuf::new() };
        Self::read_upon(source, Bases::Given(base))
    }

    fn read_upon(source: Source, bases: Bases<'_>) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::default();
        let mut own = Parts::split(tree::parse(&source.text, &source.file)?, &mut found);
        let mut bodies = Vec::new();
        let mut arms = Vec::new();
        let mut tiers = Vec::new();
        let (mut base, mut base_text) = (None, None);
        let mut base_found = true;
        if let Some((name, origin)) = own.base.take() {
            let parts = base_parts(&name, &origin, bases, &mut found);
            base_found = parts.is_some();
            if let Some((mut parts, text)) = parts {
                base_text = Some(text);
                // What somebody published for the base was not published for this.
                if let Some(table) = parts.body.table_mut() {
                    table.remove("claim");
                }
                bodies.push(parts.body);
                arms = inherit(parts.arms);
                tiers = inherit(parts.tiers);
            }
            base = Some(name);
        }
        add(&mut arms, own.arms);
        add(&mut tiers, own.tiers);
        bodies.push(own.body);

        // Without its base everything would be missing.
        let about = if base_found { about(&bodies, &source.file, &mut found) } else { None };
        let refused = about.is_none() || !found.is_empty();
        let document = Self {
            about: about.unwrap_or_else(unknown),
            file: source.file,
            folder: source.folder,
            text: source.text,
            base,
            base_text,
            bodies,
            arms,
            tiers,
        };
        if !refused {
            return Ok(document);
        }
        // The file is refused: say at once everything that is wrong with it.
        if base_found && let Err(more) = document.check() {
            found.extend(more);
        }
        found.into_result(document)
    }

    /// The `[recipe]` block.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// `recipe.name`.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// `recipe.task`.
    pub fn task(&self) -> &str {
        &self.about.task
    }

    /// Can anybody get the data?
    pub fn data_status(&self) -> DataStatus {
        self.about.status
    }

    /// Names of the arms, inherited ones first, in the order in which they were written.
    pub fn arms(&self) -> Vec<&str> {
        self.arms.iter().map(|overlay| overlay.name.as_str()).collect()
    }

    /// Names of the tiers, as [`Self::arms`].
    pub fn tiers(&self) -> Vec<&str> {
        self.tiers.iter().map(|overlay| overlay.name.as_str()).collect()
    }

    /// The recipe that this one is built upon, as the file names it.
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// The file as messages name it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where the recipe's relative paths start. Empty for an embedded recipe.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the claim of that place, from 0, was written: claims are never inherited, so in the file itself. Its first line where
    /// there is no such claim.
    pub fn claim_origin(&self, at: usize) -> Origin {
        let start = Origin::File { file: self.file.as_str().into(), line: 1, column: 1 };
        self.claims().get(at).map_or(start, |item| item.origin.clone())
    }

    /// How many claims the file makes.
    pub fn claim_count(&self) -> usize {
        self.claims().len()
    }

    fn claims(&self) -> &[Node] {
        let claims = self.bodies.last().and_then(Node::table).and_then(|table| table.get("claim"));
        match claims.map(|claims| &claims.value) {
            Some(Value::Array(items)) => items,
            _ => &[],
        }
    }

    /// The file's own text, without its base.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of the base, where there is one.
    pub fn base_text(&self) -> Option<&str> {
        self.base_text.as_deref()
    }
}

/// What a document carries while its `[recipe]` block is unusable; never handed out.
fn unknown() -> About {
    About {
        name: String::new(),
        task: String::new(),
        summary: String::new(),
        origin: String::new(),
        status: DataStatus::Private,
        tags: Vec::new(),
        free: Vec::new(),
    }
}

fn about(bodies: &[Node], file: &str, found: &mut Diagnostics) -> Option<About> {
    let mut merged = bodies.first()?.clone();
    for body in bodies.iter().skip(1) {
        // `without` has been looked at where bodies are put together; here only `[recipe]` counts.
        crate::overlay::merge(&mut merged, body);
    }
    let Some(entry) = merged.table().and_then(|table| table.entry("recipe")) else {
        found.push(
            Diagnostic::new(merged.origin.clone(), "the recipe lacks `recipe`")
                .hint("recipe: Who published what, where."),
        );
        return None;
    };
    let mut wrong = Diagnostics::default();
    check_block("recipe", &entry.node, &entry.key_origin, &mut wrong);
    if !wrong.is_empty() {
        found.extend(wrong);
        return None;
    }
    let about: About = match serde_json::from_value(entry.node.to_json()) {
        Ok(about) => about,
        Err(error) => {
            found.push(Diagnostic::new(entry.key_origin.clone(), error.to_string()));
            return None;
        }
    };
    let stem =
        Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if about.name != stem {
        let message = format!("the recipe calls itself `{}`, but its file is `{stem}.toml`", about.name);
        let at = entry.node.locate("name");
        found.push(Diagnostic::new(at, message).hint(format!("name = \"{stem}\"")));
    }
    Some(about)
}

/// A file's text and what it is called.
struct Source {
    text: String,
    file: String,
    folder: PathBuf,
}

impl Source {
    /// A path starts at `folder`.
    fn open(name_or_path: &str, folder: &Path) -> Result<Self, LoadError> {
        if !is_path(name_or_path) {
            return match registry::find(name_or_path) {
                Ok(found) => Ok(Self {
                    text: found.text.to_owned(),
                    file: found.file.to_owned(),
                    folder: PathBuf::new(),
                }),
                Err(hint) => Err(LoadError::Unknown { name: name_or_path.to_owned(), hint }),
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
enum Bases<'a> {
    /// Among the embedded recipes and the files below this folder.
    In(&'a Path),
    /// It is this text; else it must be an embedded recipe. No file is read.
    Given(Option<&'a str>),
}

impl Bases<'_> {
    fn open(self, name: &str) -> Result<Source, LoadError> {
        match self {
            Self::In(folder) => Source::open(name, folder),
            Self::Given(Some(text)) => {
                Ok(Source { text: text.to_owned(), file: name.to_owned(), folder: PathBuf::new() })
            }
            Self::Given(None) if is_path(name) => {
                let hint = "the recipe came without the text of its base".to_owned();
                Err(LoadError::Unknown { name: name.to_owned(), hint })
            }
            Self::Given(None) => Source::open(name, Path::new("")),
        }
    }
}

/// A file taken apart.
struct Parts {
    body: Node,
    arms: Vec<Overlay>,
    tiers: Vec<Overlay>,
    base: Option<(String, Origin)>,
}

impl Parts {
    fn split(mut root: Node, found: &mut Diagnostics) -> Self {
        let mut overlays = |name: &str| match root.table_mut().and_then(|table| table.remove(name)) {
            Some(entry) => named_overlays(name, entry.node, found),
            None => Vec::new(),
        };
        let arms = overlays("arm");
        let tiers = overlays("tier");
        let mut base = None;
        let mut without = None;
        if let Some(about) =
            root.table_mut().and_then(|table| table.get_mut("recipe")).and_then(Node::table_mut)
        {
            base = about.remove("base").and_then(|entry| match entry.node.value {
                Value::String(name) => Some((name, entry.node.origin)),
                other => {
                    let message =
                        format!("`recipe.base` is {}; a name or path is due here", other.type_name());
                    found.push(Diagnostic::new(entry.node.origin, message));
                    None
                }
            });
            without = about.remove("without");
        }
        if let Some(entry) = without {
            if base.is_none() {
                let message = "`recipe.without` takes keys out of a base, and this recipe has none";
                found.push(Diagnostic::new(entry.key_origin.clone(), message));
            } else if let Some(table) = root.table_mut() {
                table.entries.push(entry);
            }
        }
        Self { body: root, arms, tiers, base }
    }
}

fn named_overlays(what: &str, node: Node, found: &mut Diagnostics) -> Vec<Overlay> {
    let Value::Table(table) = node.value else {
        let message = format!("`{what}` is {}; tables [{what}.NAME] are due here", node.value.type_name());
        found.push(Diagnostic::new(node.origin, message));
        return Vec::new();
    };
    let mut overlays = Vec::new();
    for entry in table.entries {
        let place = format!("{what}.{}", entry.key);
        if !is_name(&entry.key) || entry.key == "any" {
            let message = format!("`{}` is no name for a part of `{what}`", entry.key);
            let one = Diagnostic::new(entry.key_origin.clone(), message);
            found.push(one.hint("lower-case letters, digits, `-` and `_`; `any` means any arm"));
        }
        let Some(layer) = entry.node.table() else {
            let message = format!("`{place}` is {}; a table is due here", entry.node.value.type_name());
            found.push(Diagnostic::new(entry.node.origin, message));
            continue;
        };
        forbid(layer, &place, found);
        overlays
            .push(Overlay { name: entry.key, layers: vec![Layer { node: entry.node, inherited: false }] });
    }
    overlays
}

/// An overlay changes what is computed, never who published what.
fn forbid(layer: &Table, place: &str, found: &mut Diagnostics) {
    for entry in &layer.entries {
        let why = match entry.key.as_str() {
            "recipe" | "claim" => "what was published is the same for every arm and tier",
            "arm" | "tier" => "arms and tiers stand side by side: [arm.NAME], [tier.NAME]",
            _ => continue,
        };
        let message = format!("`{}` cannot stand in `{place}`", entry.key);
        found.push(Diagnostic::new(entry.key_origin.clone(), message).hint(why));
    }
}

/// Names that end up in file names and on the command line.
pub(crate) fn is_name(text: &str) -> bool {
    let first = text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    first && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
}

/// The base's parts and its text.
fn base_parts(
    name: &str,
    origin: &Origin,
    bases: Bases<'_>,
    found: &mut Diagnostics,
) -> Option<(Parts, String)> {
    let source = match bases.open(name) {
        Ok(source) => source,
        Err(LoadError::Unknown { name, hint }) => {
            found.push(
                Diagnostic::new(origin.clone(), format!("there is no recipe `{name}` to build upon"))
                    .hint(hint),
            );
            return None;
        }
        Err(other) => {
            found.push(Diagnostic::new(origin.clone(), other.to_string()));
            return None;
        }
    };
    let root = match tree::parse(&source.text, &source.file) {
        Ok(root) => root,
        Err(more) => {
            found.extend(more);
            return None;
        }
    };
    let parts = Parts::split(root, found);
    if let Some((further, _)) = &parts.base {
        let message = format!("`{name}` is itself built upon `{further}`; a base has no base");
        found.push(
            Diagnostic::new(origin.clone(), message)
                .hint(format!("base = \"{further}\", and say what differs")),
        );
        return None;
    }
    Some((parts, source.text))
}

fn inherit(mut overlays: Vec<Overlay>) -> Vec<Overlay> {
    overlays.iter_mut().flat_map(|overlay| &mut overlay.layers).for_each(|layer| layer.inherited = true);
    overlays
}

fn add(inherited: &mut Vec<Overlay>, own: Vec<Overlay>) {
    for overlay in own {
        match inherited.iter_mut().find(|known| known.name == overlay.name) {
            Some(known) => known.layers.extend(overlay.layers),
            None => inherited.push(overlay),
        }
    }
}

/// The overlay of that name.
pub(crate) fn pick<'o>(
    overlays: &'o [Overlay],
    what: &str,
    name: &str,
    at: Origin,
) -> Result<&'o Overlay, Diagnostic> {
    overlays.iter().find(|overlay| overlay.name == name).ok_or_else(|| {
        let hint =
            did_you_mean(name, overlays.iter().map(|overlay| overlay.name.as_str()), &format!("{what}s"));
        Diagnostic::new(at, format!("the recipe has no {what} `{name}`")).hint(hint)
    })
}
