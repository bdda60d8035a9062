//! A recipe file: read, put upon its base, taken apart into body, arms and tiers.

use std::io;
use std::path::{Path, PathBuf};

use crate::check::check_block;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::did_you_mean;
use crate::overlay;
use crate::registry;
use crate::smoke::SMOKE;
use crate::spec::{About, DataStatus, Task};
use crate::tree::{self, Node, Origin, Table, Value};

/// Longest chain of recipes that are built upon one another.
const MOST_BASES: usize = 8;

/// A recipe file and what it inherits. Its arms and tiers are not applied yet; [`Document::resolve`] does.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) about: About,
    file: String,
    folder: PathBuf,
    text: String,
    base: Option<String>,
    pub(crate) stack: Stack,
}

/// A file upon its base, and that upon its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stack {
    /// The texts of the bases, the nearest base's first.
    base_texts: Vec<String>,
    /// The bodies, the lowest base's first, this file's last.
    pub(crate) bodies: Vec<Node>,
    pub(crate) arms: Vec<Overlay>,
    /// The tiers that this file states.
    pub(crate) tiers: Vec<Overlay>,
    /// The tiers of the nearest base that states them, sized for that one's model and data. A file inherits one by `inherit = true`.
    pub(crate) base_tiers: Vec<Overlay>,
}

/// A named arm or tier: what the base says of it, then what this file says.
#[derive(Debug, Clone)]
pub(crate) struct Overlay {
    pub(crate) name: String,
    pub(crate) layers: Vec<Layer>,
    /// Of a tier: how many of the bodies are those of its file and of what that is built upon.
    pub(crate) bodies: usize,
    /// Where a tier says that the base's lies below it.
    inherit: Option<Origin>,
}

impl Overlay {
    /// Lays all layers over `root`.
    pub(crate) fn apply(&self, root: &mut Node, found: &mut Diagnostics) {
        for layer in &self.layers {
            let mut missing = Diagnostics::default();
            overlay::apply(root, &layer.node, &mut missing);
            if !layer.inherited {
                found.extend(missing);
            }
        }
    }
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

    /// As [`Self::parse`], without reading any file: its base is the first of `bases`, the base of that the second, and so on;
    /// where they end, an embedded recipe. For recipes that somebody else sent.
    ///
    /// # Errors
    /// All that is wrong with it; so is a base that is a path where `bases` has no text of it.
    pub fn parse_sealed(text: &str, file: &str, bases: &[String]) -> Result<Self, Diagnostics> {
        let source = Source { text: text.to_owned(), file: file.to_owned(), folder: PathBuf::new() };
        Self::read_upon(source, Bases::Given(bases))
    }

    fn read_upon(source: Source, bases: Bases<'_>) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::default();
        let mut own = Parts::split(tree::parse(&source.text, &source.file)?, &mut found);
        let base = own.base.take();
        let below = match &base {
            Some((name, origin)) => Stack::of_base(name, origin, bases, 1, &mut found),
            None => Some(Stack::default()),
        };
        let base_found = below.is_some();
        let stack = below.unwrap_or_default().under(own, &mut found);

        // Without its base everything would be missing.
        let about = if base_found { about(&stack.bodies, &source.file, &mut found) } else { None };
        let refused = about.is_none() || !found.is_empty();
        let document = Self {
            about: about.unwrap_or_else(unknown),
            file: source.file,
            folder: source.folder,
            text: source.text,
            base: base.map(|(name, _)| name),
            stack,
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
    pub fn task(&self) -> Task {
        self.about.task
    }

    /// Can anybody get the data?
    pub fn data_status(&self) -> DataStatus {
        self.about.status
    }

    /// Names of the arms, inherited ones first, in the order in which they were written.
    pub fn arms(&self) -> Vec<&str> {
        self.stack.arms.iter().map(|overlay| overlay.name.as_str()).collect()
    }

    /// Names of the tiers that the file states, in their order, and [`SMOKE`](crate::smoke::SMOKE), which every recipe has.
    pub fn tiers(&self) -> Vec<&str> {
        let stated = self.stack.tiers.iter().map(|overlay| overlay.name.as_str());
        stated.chain(self.has_usual_smoke().then_some(SMOKE)).collect()
    }

    /// Whether the file leaves the tier `smoke` to the program: see [`crate::smoke`].
    pub(crate) fn has_usual_smoke(&self) -> bool {
        !self.stack.tiers.iter().any(|overlay| overlay.name == SMOKE)
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
        let claims = self.stack.bodies.last().and_then(Node::table).and_then(|table| table.get("claim"));
        match claims.map(|claims| &claims.value) {
            Some(Value::Array(items)) => items,
            _ => &[],
        }
    }

    /// The file's own text, without its base.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The texts of what it is built upon, the nearest base's first.
    pub fn base_texts(&self) -> &[String] {
        &self.stack.base_texts
    }
}

/// What a document carries while its `[recipe]` block is unusable; never handed out.
fn unknown() -> About {
    About {
        name: String::new(),
        task: Task::Translation,
        summary: String::new(),
        origin: String::new(),
        status: DataStatus::Private,
        tags: Vec::new(),
        free: Vec::new(),
        vocabulary_rows: None,
        differs: Vec::new(),
    }
}

fn about(bodies: &[Node], file: &str, found: &mut Diagnostics) -> Option<About> {
    let mut merged = bodies.first()?.clone();
    for body in bodies.iter().skip(1) {
        // `without` has been looked at where bodies are put together; here only `[recipe]` counts.
        overlay::merge(&mut merged, body);
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
enum Bases<'a> {
    /// Among the embedded recipes and the files below this folder.
    In(&'a Path),
    /// These texts, the nearest base's first; beyond them, embedded recipes. No file is read.
    Given(&'a [String]),
}

impl Bases<'_> {
    /// The base with this name; `depth` is 1 for the base of the document itself.
    fn open(self, name: &str, depth: usize) -> Result<Source, LoadError> {
        let texts = match self {
            Self::In(folder) => return Source::open(name, folder),
            Self::Given(texts) => texts,
        };
        match texts.get(depth - 1) {
            Some(text) => Ok(Source { text: text.clone(), file: name.to_owned(), folder: PathBuf::new() }),
            None if is_path(name) => {
                let hint = "the recipe came without the text of its base".to_owned();
                Err(LoadError::Unknown { name: name.to_owned(), hint })
            }
            None => Source::open(name, Path::new("")),
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
                    let message = format!("`recipe.base` is {}; expected a name or path", other.type_name());
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
            let message = format!("`{}` is not a valid name in `{what}`", entry.key);
            let one = Diagnostic::new(entry.key_origin.clone(), message);
            found.push(one.hint("lower-case letters, digits, `-` and `_`; `any` means any arm"));
        }
        let Some(layer) = entry.node.table() else {
            let message = format!("`{place}` is {}; expected a table", entry.node.value.type_name());
            found.push(Diagnostic::new(entry.node.origin, message));
            continue;
        };
        forbid(layer, &place, found);
        let mut node = entry.node;
        let inherit = if what == "tier" { inherits(&mut node, &place, found) } else { None };
        let layers = vec![Layer { node, inherited: false }];
        overlays.push(Overlay { name: entry.key, layers, bodies: 0, inherit });
    }
    overlays
}

/// Takes a tier's `inherit` out of it: where it says that the base's tier lies below.
fn inherits(tier: &mut Node, place: &str, found: &mut Diagnostics) -> Option<Origin> {
    let entry = tier.table_mut()?.remove("inherit")?;
    match entry.node.value {
        Value::Boolean(inherit) => inherit.then_some(entry.key_origin),
        other => {
            let message = format!("`{place}.inherit` is {}; expected a boolean", other.type_name());
            found.push(Diagnostic::new(entry.node.origin, message));
            None
        }
    }
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

impl Stack {
    /// The recipe that a file names as its base, with what that is built upon. `None`, and why, if it cannot be read.
    fn of_base(
        name: &str,
        origin: &Origin,
        bases: Bases<'_>,
        depth: usize,
        found: &mut Diagnostics,
    ) -> Option<Self> {
        let mut refuse = |one: Diagnostic| found.push(one);
        if depth > MOST_BASES {
            let message = format!("more than {MOST_BASES} recipes are built upon one another");
            refuse(Diagnostic::new(origin.clone(), message).hint("is one of them its own base?"));
            return None;
        }
        let source = match bases.open(name, depth) {
            Ok(source) => source,
            Err(LoadError::Unknown { name, hint }) => {
                let message = format!("there is no recipe `{name}` to build upon");
                refuse(Diagnostic::new(origin.clone(), message).hint(hint));
                return None;
            }
            Err(other) => {
                refuse(Diagnostic::new(origin.clone(), other.to_string()));
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
        let mut own = Parts::split(root, found);
        let below = match own.base.take() {
            Some((further, at)) => {
                let bases = match bases {
                    Bases::In(_) => Bases::In(&source.folder),
                    given => given,
                };
                Self::of_base(&further, &at, bases, depth + 1, found)?
            }
            None => Self::default(),
        };
        let mut stack = below.under(own, found);
        stack.base_texts.insert(0, source.text);
        Some(stack)
    }

    /// With a file laid upon it.
    fn under(mut self, own: Parts, found: &mut Diagnostics) -> Self {
        // What somebody published for the base was not published for this; nor has this the base's source to differ from, or its data.
        for table in self.bodies.iter_mut().filter_map(Node::table_mut) {
            table.remove("claim");
            if let Some(about) = table.get_mut("recipe").and_then(Node::table_mut) {
                about.remove("differs");
                about.remove("vocabulary_rows");
            }
        }
        self.bodies.push(own.body);
        let overlays = self.arms.iter_mut().chain(&mut self.tiers);
        overlays.flat_map(|overlay| &mut overlay.layers).for_each(|layer| layer.inherited = true);
        for arm in own.arms {
            match self.arms.iter_mut().find(|known| known.name == arm.name) {
                Some(known) => known.layers.extend(arm.layers),
                None => self.arms.push(arm),
            }
        }
        let stated = |name: &str| self.tiers.iter().any(|tier| tier.name == name);
        self.base_tiers.retain(|tier| !stated(&tier.name));
        self.base_tiers.append(&mut self.tiers);
        self.tiers = own.tiers;
        for tier in &mut self.tiers {
            tier.bodies = self.bodies.len();
            let Some(origin) = &tier.inherit else { continue };
            match pick(&self.base_tiers, "tier", &tier.name, origin.clone()) {
                Ok(below) => tier.layers = below.layers.iter().chain(&tier.layers).cloned().collect(),
                Err(one) => {
                    let message = format!("there is no tier `{}` to inherit: no base states one", tier.name);
                    found.push(Diagnostic { message, ..one });
                }
            }
        }
        self
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
