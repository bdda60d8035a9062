//! Checks that a schema cannot express: ranges, combinations, and names that must exist.

mod audio;
mod claim;
mod data;
mod precision;
mod problems;
mod train;

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::did_you_mean;
use crate::schema::find_path;
use crate::spec::{DataStatus, Recipe};
use crate::split::is_name;
use crate::tree::Node;

pub(crate) use data::{eval_sets, generated, own_splits};
pub use problems::Problem;
pub(crate) use problems::Problems;

/// Checks a recipe that matches the schema. `root` is its tree; `arms` are the arms that claims may
/// name.
pub(crate) fn validate(recipe: &Recipe, root: &Node, arms: &[&str], found: &mut Diagnostics) {
    let mut findings = Findings { root, found };
    about(recipe, &mut findings);
    recipe.check_blocks(&mut findings);
    for name in recipe.searches() {
        findings.named(name, &format!("decode.{name}"));
    }
    train::validate(recipe, &mut findings);
    precision::validate(recipe, &mut findings);
    claim::validate(recipe, arms, &mut findings);
}

/// Collects errors at dotted paths.
pub(crate) struct Findings<'r, 'f> {
    root: &'r Node,
    found: &'f mut Diagnostics,
}

impl Findings<'_, '_> {
    /// Adds an error at `path`.
    pub(crate) fn report(&mut self, path: &str, message: impl Into<String>) {
        self.found.push(Diagnostic::new(self.root.locate(path), message));
    }

    /// Adds an error with a hint at `path`.
    pub(crate) fn report_with(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(Diagnostic::new(self.root.locate(path), message).hint(hint));
    }

    /// Adds an error unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, path: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.report(path, message());
        }
    }

    /// Requires at least 1.
    pub(crate) fn positive(&mut self, value: u64, path: &str) {
        self.require(value >= 1, path, || format!("`{path}` is 0; it must be at least 1"));
    }

    /// Requires a value greater than 0.
    pub(crate) fn above_zero(&mut self, value: f64, path: &str) {
        self.require(value > 0.0, path, || format!("`{path}` is {value}; it must be greater than 0"));
    }

    /// Requires 0 or more.
    pub(crate) fn not_negative(&mut self, value: f64, path: &str) {
        self.require(value >= 0.0, path, || format!("`{path}` is {value}; it must not be negative"));
    }

    /// Requires a value in [0, 1): dropout rates, decays, smoothing.
    pub(crate) fn share(&mut self, value: f64, path: &str) {
        self.require((0.0..1.0).contains(&value), path, || {
            format!("`{path}` is {value}; it must be at least 0 and less than 1")
        });
    }

    /// Requires one of `names`.
    pub(crate) fn exists<'n>(
        &mut self,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
        path: &str,
        what: &str,
    ) {
        if !names.clone().any(|known| known == name) {
            let hint = did_you_mean(name, names, &format!("{what}s"));
            self.report_with(
                path,
                format!("`{path}` names the {what} `{name}`, which the recipe does not have"),
                hint,
            );
        }
    }

    /// Requires a text that is not empty.
    pub(crate) fn said(&mut self, text: &str, path: &str) {
        self.require(!text.trim().is_empty(), path, || format!("`{path}` is empty"));
    }

    /// Requires that there are characters, and that none is listed twice.
    pub(crate) fn distinct(&mut self, characters: &str, path: &str, empty: &str) {
        self.require(!characters.is_empty(), path, || empty.to_owned());
        let mut seen = BTreeSet::new();
        for c in characters.chars() {
            self.require(seen.insert(c), path, || format!("{c:?} is there twice"));
        }
    }

    /// Adds the errors of a block that was checked separately.
    pub(crate) fn blame(&mut self, block: &str, problems: Vec<Problem>) {
        for Problem { key, message, hint } in problems {
            let path = if key.is_empty() { block.to_owned() } else { format!("{block}.{key}") };
            match hint {
                Some(hint) => self.report_with(&path, message, hint),
                None => self.report(&path, message),
            }
        }
    }

    /// Requires a name that is valid in file names.
    pub(crate) fn named(&mut self, name: &str, path: &str) {
        if !is_name(name) {
            let hint = "lower-case letters, digits, `-` and `_`, and a letter or digit first";
            self.report_with(path, format!("`{name}` is not a valid name"), hint);
        }
    }
}

fn about(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let about = &recipe.recipe;
    findings.named(&about.name, "recipe.name");
    if let Some(rows) = about.vocabulary_rows {
        findings.positive(u64::from(rows), "recipe.vocabulary_rows");
    }
    for (text, path) in [(&about.summary, "recipe.summary"), (&about.origin, "recipe.origin")] {
        findings.said(text, path);
        findings.require(!text.contains('\n'), path, || format!("`{path}` has more than one line"));
    }
    for (at, free) in about.free.iter().enumerate() {
        if let Err((segment, known)) = find_path(free) {
            let hint = did_you_mean(&segment, known.iter().map(String::as_str), "keys");
            findings.report_with(&format!("recipe.free.{at}"), format!("no recipe has a key `{free}`"), hint);
        }
    }
    if about.status == DataStatus::Generated && !recipe.data().is_generated() {
        findings.report_with(
            "recipe.status",
            "the status is `generated`, but `data.reader` reads files",
            "status = \"private\", if they are files of your own",
        );
    }
}
