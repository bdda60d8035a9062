//! Names of runs on the command line: `NAME[:ARM[:SEED]]` and `@last`.

use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use zoo_recipes::nearest;

use super::found::{Found, all, below, names};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::is_below;
use crate::run::folder::Run;

/// The newest run of the home, in the place of a recipe's name.
pub const LAST: &str = "@last";

/// Maximum number of runs in a message.
const MOST_LISTED: usize = 8;

/// Parts of a name. An absent part fits every run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RunName<'n> {
    name: Option<&'n str>,
    arm: Option<&'n str>,
    seed: Option<u64>,
}

/// Reason why a name selects no run. Each has a message with a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NameError {
    #[error(
        "`{0}` is not a valid run name\nhint: NAME[:ARM[:SEED]], for example reversal-transformer:fp32:1"
    )]
    Invalid(String),
    #[error("{given} is not a run folder, and no run in {runs} has that name\nhint: {hint}")]
    Unknown { given: String, runs: String, hint: String },
    #[error("no run of {name} has {parts}\nhint: there is {there}")]
    OtherParts { name: String, parts: String, there: String },
    #[error("`{given}` fits runs of several names: {fits}\nhint: give more letters of the name")]
    Ambiguous { given: String, fits: String },
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::usage(error.to_string())
    }
}

/// The run that the user named: a path that exists, a path below the home's folder of runs, or a
/// name. The path of a file in a run is kept. For a name, a line on stderr states the folder.
///
/// # Errors
/// No run, or runs of several recipes, fit the name.
pub fn folder_of(context: &Context, given: &Path) -> Result<PathBuf> {
    let Some(text) = given.to_str().filter(|_| !given.exists()) else { return Ok(given.to_owned()) };
    if let Some(folder) = below_runs(&context.runs_dir(), text) {
        return Ok(folder);
    }
    if is_path(text) {
        return Ok(given.to_owned());
    }
    Ok(noted(context, text, find(&context.runs_dir(), text)?))
}

/// The run that the user named, where another kind of word may stand instead, such as a recipe's
/// name: `None` for a path that does not exist, and for a plain word that fits no run.
///
/// # Errors
/// Runs of several recipes fit the name, or none has the arm and seed.
pub fn named_run(context: &Context, text: &str) -> Result<Option<PathBuf>> {
    if Path::new(text).exists() {
        return Ok(Some(PathBuf::from(text)));
    }
    if let Some(folder) = below_runs(&context.runs_dir(), text) {
        return Ok(Some(folder));
    }
    if is_path(text) {
        return Ok(None);
    }
    match find(&context.runs_dir(), text) {
        Ok(folder) => Ok(Some(noted(context, text, folder))),
        Err(NameError::Unknown { .. }) if !text.contains(':') && text != LAST => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The run that the user named, where a recipe may stand instead: `None` for a recipe, and for a
/// word that fits no run.
///
/// # Errors
/// As for [`named_run`].
pub fn run_or_recipe(context: &Context, text: &str) -> Result<Option<PathBuf>> {
    let path = Path::new(text);
    if path.exists() && Run::folder_of(path).is_ok() {
        return Ok(Some(path.to_owned()));
    }
    if zoo_recipes::find(text).is_ok() || zoo_recipes::is_path(text) && path.is_file() {
        return Ok(None);
    }
    named_run(context, text)
}

fn noted(context: &Context, text: &str, folder: PathBuf) -> PathBuf {
    context.progress.note(&format!("{text} is the run {}", context.shown(&folder)));
    folder
}

fn is_path(text: &str) -> bool {
    text.contains(['/', MAIN_SEPARATOR])
}

/// The run with this path below the folder of runs, as the ledger and `zoo runs` print it.
fn below_runs(runs: &Path, text: &str) -> Option<PathBuf> {
    let folder = (is_path(text) && is_below(text)).then(|| runs.join(text))?;
    folder.join("run.json").is_file().then_some(folder)
}

impl<'n> RunName<'n> {
    fn parse(text: &'n str) -> std::result::Result<Self, NameError> {
        let invalid = || NameError::Invalid(text.to_owned());
        let mut parts = text.split(':');
        let name = parts.next().filter(|name| !name.is_empty()).ok_or_else(invalid)?;
        if name.starts_with('@') && name != LAST {
            return Err(invalid());
        }
        let arm = parts.next().filter(|arm| !arm.is_empty());
        let seed = parts.next().map(|seed| seed.parse().map_err(|_| invalid())).transpose()?;
        match parts.next() {
            Some(_) => Err(invalid()),
            None => Ok(Self { name: (name != LAST).then_some(name), arm, seed }),
        }
    }

    /// Whether the arm and the seed are those of the run.
    fn fits(&self, found: &Found) -> bool {
        match &found.identity {
            Some(identity) => {
                self.arm.is_none_or(|arm| arm == identity.arm)
                    && self.seed.is_none_or(|seed| seed == identity.seed)
            }
            // Opening the run reports what is damaged.
            None => self.arm.is_none() && self.seed.is_none(),
        }
    }

    /// The arm and the seed in words.
    fn parts(&self) -> String {
        let arm = self.arm.map(|arm| format!("the arm {arm}"));
        let seed = self.seed.map(|seed| format!("the seed {seed}"));
        arm.into_iter().chain(seed).collect::<Vec<_>>().join(" and ")
    }
}

/// The folder of the newest run that fits a name.
fn find(runs: &Path, text: &str) -> std::result::Result<PathBuf, NameError> {
    let wanted = RunName::parse(text)?;
    let candidates = match wanted.name {
        None => all(runs),
        Some(name) => candidates(runs, name),
    };
    let mut fitting = candidates.iter().filter(|found| wanted.fits(found));
    let Some(newest) = fitting.next() else {
        return Err(match candidates.is_empty() {
            true => unknown(runs, text, wanted.name),
            false => NameError::OtherParts {
                name: wanted.name.unwrap_or("this home").to_owned(),
                parts: wanted.parts(),
                there: listed(candidates.iter().map(Found::full_name)),
            },
        });
    };
    if wanted.name.is_some() && fitting.any(|other| other.name != newest.name) {
        let fits =
            listed(candidates.iter().filter(|found| wanted.fits(found)).map(|found| found.name.clone()));
        return Err(NameError::Ambiguous { given: text.to_owned(), fits });
    }
    Ok(newest.folder.clone())
}

/// The runs below exactly this name, else those below the names that begin with it; newest first.
fn candidates(runs: &Path, name: &str) -> Vec<Found> {
    // A name is one step of a path, so that `..` is not followed.
    if !names(runs).iter().any(|known| known.starts_with(name)) {
        return Vec::new();
    }
    let exact = below(runs, name);
    if !exact.is_empty() {
        return exact;
    }
    all(runs).into_iter().filter(|found| found.name.starts_with(name)).collect()
}

/// Error for a name that no run has, with the nearest one.
fn unknown(runs: &Path, given: &str, name: Option<&str>) -> NameError {
    let name = name.unwrap_or_default();
    let known = all(runs);
    // With a tier at its end, a name is unlike a misspelt recipe.
    let recipes = known.iter().filter_map(|found| Some(found.identity.as_ref()?.recipe.as_str()));
    let near = nearest(name, known.iter().map(|found| found.name.as_str()).chain(recipes));
    let hint = match near {
        _ if zoo_recipes::find(name).is_ok() => format!("`zoo reproduce {name}` makes a run"),
        _ if known.is_empty() => {
            "`zoo reproduce RECIPE` makes a run; `zoo list` shows the recipes".to_owned()
        }
        Some(near) => format!("did you mean `{near}`? `zoo runs` lists the runs"),
        None => {
            format!("`zoo runs` lists the runs: {}", listed(known.iter().map(|found| found.name.clone())))
        }
    };
    NameError::Unknown { given: given.to_owned(), runs: runs.display().to_string(), hint }
}

/// Names for a message, each once, in their order.
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    let more = found.len().saturating_sub(MOST_LISTED);
    found.truncate(MOST_LISTED);
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{and}", found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::found::tests::made;
    use super::*;

    /// A home with five runs: the newest is `toy-big:mixed:2`.
    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path();
        made(runs, "toy", "fp32", 1, "aaa", 10);
        made(runs, "toy", "fp32", 1, "bbb", 20);
        made(runs, "toy", "mixed", 1, "ccc", 5);
        made(runs, "toy-big", "mixed", 2, "ddd", 30);
        made(runs, "word.smoke", "fp32", 3, "eee", 15);
        home
    }

    fn selected(home: &tempfile::TempDir, text: &str) -> String {
        match find(home.path(), text) {
            Ok(folder) => folder.strip_prefix(home.path()).unwrap().display().to_string(),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    #[test]
    fn an_exact_name_selects_its_newest_run() {
        let home = home();
        assert_eq!(selected(&home, "toy"), "toy/fp32-seed1-bbb");
        assert_eq!(selected(&home, "toy:mixed"), "toy/mixed-seed1-ccc");
        assert_eq!(selected(&home, "toy:fp32:1"), "toy/fp32-seed1-bbb");
        assert_eq!(selected(&home, "toy::1"), "toy/fp32-seed1-bbb");
    }

    #[test]
    fn a_unique_prefix_selects_a_run_of_any_tier() {
        let home = home();
        for name in ["word", "w", "word.smoke", "word.s", "w:fp32", "w:fp32:3"] {
            assert_eq!(selected(&home, name), "word.smoke/fp32-seed3-eee", "{name}");
        }
        assert_eq!(selected(&home, "toy-"), "toy-big/mixed-seed2-ddd");
    }

    #[test]
    fn the_last_run_is_the_newest_of_the_home() {
        let home = home();
        assert_eq!(selected(&home, "@last"), "toy-big/mixed-seed2-ddd");
        assert_eq!(selected(&home, "@last:fp32"), "toy/fp32-seed1-bbb");
        let error = find(tempfile::tempdir().unwrap().path(), "@last").unwrap_err().to_string();
        assert!(error.contains("`zoo reproduce RECIPE` makes a run"), "{error}");
    }

    #[test]
    fn an_ambiguous_name_lists_what_fits() {
        let home = home();
        let error = find(home.path(), "to").unwrap_err();
        assert_eq!(error.to_string().lines().next(), Some("`to` fits runs of several names: toy-big, toy"));
        // Only one of the two has the arm.
        assert_eq!(selected(&home, "to:fp32"), "toy/fp32-seed1-bbb");
        assert!(matches!(find(home.path(), "to:mixed"), Err(NameError::Ambiguous { .. })));
    }

    #[test]
    fn a_name_that_fits_nothing_names_the_nearest() {
        let home = home();
        let said = |text: &str| find(home.path(), text).unwrap_err().to_string();
        assert!(said("wrod").contains("did you mean `word`?"), "{}", said("wrod"));
        assert!(said("zzz").contains("toy-big, toy, word.smoke"), "{}", said("zzz"));
        assert!(said("yesno-tdnn").contains("`zoo reproduce yesno-tdnn`"), "{}", said("yesno-tdnn"));
        let other = said("toy:bf16:9");
        assert!(other.contains("no run of toy has the arm bf16 and the seed 9"), "{other}");
        assert!(other.contains("there is toy:fp32:1, toy:mixed:1"), "{other}");
    }

    #[test]
    fn what_is_not_a_name_is_said() {
        let home = home();
        for text in ["", ":fp32", "toy:fp32:one", "toy:fp32:1:2", "@first"] {
            assert_eq!(find(home.path(), text), Err(NameError::Invalid(text.to_owned())));
        }
        assert!(matches!(find(home.path(), ".."), Err(NameError::Unknown { .. })));
    }

    #[test]
    fn a_path_below_the_folder_of_runs_is_a_name_too() {
        let home = home();
        let below = |text: &str| below_runs(home.path(), text);
        assert_eq!(below("toy/fp32-seed1-aaa"), Some(home.path().join("toy/fp32-seed1-aaa")));
        for none in ["toy", "toy/none", "../toy/fp32-seed1-aaa", "/toy/fp32-seed1-aaa"] {
            assert_eq!(below(none), None, "{none}");
        }
    }
}
