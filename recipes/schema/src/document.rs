//! A recipe file: reading it, laying it over its base, and splitting it into body, arms and tiers.

use std::path::{Path, PathBuf};

use crate::check::check_about;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load_error::LoadError;
use crate::origin::Origin;
use crate::overlay;
use crate::smoke::SMOKE;
use crate::sources::{Bases, Shelf, Source};
use crate::spec::{About, DataStatus, Task};
use crate::split::Split;
use crate::stack::Stack;
use crate::tree::{self, Node, Value};

/// A recipe file with everything that it inherits. Arms and tiers are not applied yet;
/// [`Document::resolve`] applies them.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) about: About,
    file: String,
    folder: PathBuf,
    text: String,
    base: Option<String>,
    pub(crate) stack: Stack,
}

impl Document {
    /// Loads a recipe by name, or from a path. This checks syntax, base, arms and tiers;
    /// [`Self::check`] checks the rest.
    ///
    /// # Errors
    /// See [`LoadError`]. For a file with errors, all of them are reported together.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        let source = Source::open(name_or_path, Path::new(""))?;
        let folder = source.folder.clone();
        Ok(Self::read_upon(source, Bases::In(&folder))?)
    }

    /// Loads a recipe from text. `file` is the file's name in messages, and its stem is the
    /// recipe's name. The recipe's relative paths start at `folder`.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, Diagnostics> {
        let bases = Bases::In(folder);
        Self::read_upon(
            Source { text: text.to_owned(), file: file.to_owned(), folder: folder.to_owned() },
            bases,
        )
    }

    /// [`Self::parse`] without reading any file, for recipes that somebody else sent. The recipe's
    /// base is the first of `bases`, the base's own base is the second, and so on. After the last
    /// one, a base is an embedded recipe. Texts of parts among `bases` ([`Self::base_texts`])
    /// replace the embedded parts.
    ///
    /// # Errors
    /// All errors of the text, including a base that is a path and has no text in `bases`.
    pub fn parse_sealed(text: &str, file: &str, bases: &[String]) -> Result<Self, Diagnostics> {
        let source = Source { text: text.to_owned(), file: file.to_owned(), folder: PathBuf::new() };
        Self::read_upon(source, Bases::Given(bases))
    }

    fn read_upon(source: Source, bases: Bases<'_>) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::default();
        let mut shelf = Shelf::of(bases);
        let mut own = Split::of(tree::parse(&source.text, &source.file)?, &mut shelf, &mut found);
        let base = own.base.take();
        let below = match &base {
            Some((name, origin)) => Stack::of_base((name, origin), bases, 1, &mut shelf, &mut found),
            None => Some(Stack::default()),
        };
        let base_found = below.is_some();
        let mut stack = below.unwrap_or_default().under(own, &mut found);
        stack.base_texts.extend(shelf.into_texts());

        // Without the base, every key would be reported as missing.
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
        // The file is refused in any case, so report all of its errors at once.
        if base_found && let Err(more) = document.check() {
            found.extend(more);
        }
        found.into_result(document)
    }

    /// The `[recipe]` block.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The value of `recipe.name`.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// The value of `recipe.task`.
    pub fn task(&self) -> Task {
        self.about.task
    }

    /// Availability of the recipe's data.
    pub fn data_status(&self) -> DataStatus {
        self.about.status
    }

    /// Names of the arms, inherited ones first, each group in the order of its file.
    pub fn arms(&self) -> Vec<&str> {
        self.stack.arms.iter().map(|overlay| overlay.name.as_str()).collect()
    }

    /// Names of the tiers that the file defines, in its order, and [`SMOKE`](crate::smoke::SMOKE),
    /// which every recipe has.
    pub fn tiers(&self) -> Vec<&str> {
        let stated = self.stack.tiers.iter().map(|overlay| overlay.name.as_str());
        stated.chain(self.has_usual_smoke().then_some(SMOKE)).collect()
    }

    /// Whether the file does not define the tier `smoke`, so that the program provides it: see
    /// [`crate::smoke`].
    pub(crate) fn has_usual_smoke(&self) -> bool {
        !self.stack.tiers.iter().any(|overlay| overlay.name == SMOKE)
    }

    /// The recipe's base, as the file names it.
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// The file's name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The folder where the recipe's relative paths start. Empty for an embedded recipe.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Position in the file of claim number `at`, counted from 0. Claims are never inherited, so it
    /// is in this file. The file's first line if there is no such claim.
    pub fn claim_origin(&self, at: usize) -> Origin {
        let start = Origin::File { file: self.file.as_str().into(), line: 1, column: 1 };
        self.claims().get(at).map_or(start, |item| item.origin.clone())
    }

    /// Number of claims in the file.
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

    /// The text of the file, without its base.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The texts that the recipe depends on: its bases, nearest first, then the parts and presets
    /// that it or a base uses. The text of a part starts with the part's name.
    pub fn base_texts(&self) -> &[String] {
        &self.stack.base_texts
    }
}

/// The `[recipe]` block of a document whose own is unusable. Such a document is never returned.
fn unknown() -> About {
    About {
        name: String::new(),
        task: Task::ALL[0],
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
        // `without` is handled where bodies are laid over one another; here only `[recipe]` counts.
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
    check_about(&entry.node, &entry.key_origin, &mut wrong);
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
