//! Shell completions of recipes, runs, arms, tiers, seeds, evaluation sets and searches.
//!
//! The script of a shell calls this program with the variable [`VARIABLE`]; `clap_complete` then
//! asks the completers here. They read names only: those of built-in recipes, and those of the
//! folders of the home's runs.

mod line;
mod runs;
mod script;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::MAIN_SEPARATOR;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use zoo_recipes::{Document, Recipe};

use self::line::Line;
use self::runs::RunFolder;
use crate::runs::{FULL, LAST};

pub use self::script::script;

/// Variable that makes this program complete a command line, and its value the name of a shell.
pub const VARIABLE: &str = "ZOO_COMPLETE";

/// Completes the name or path of a recipe.
pub fn recipes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        complete(current, |_, text| fitting(text, zoo_recipes::names()), is_recipe_file)
    })
}

/// Completes the name or path of a run: first names, then arms and seeds after a colon.
pub fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        complete(current, |line, text| run_names(&line.runs(), text), |_| true)
    })
}

/// Completes a recipe or a run.
pub fn recipes_and_runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = |line: &Line, text: &str| {
            let mut found = fitting(text, zoo_recipes::names());
            found.extend(run_names(&line.runs(), text));
            found
        };
        complete(current, names, |_| true)
    })
}

/// Completes the name of a recipe that has runs.
pub fn run_recipes() -> ArgValueCompleter {
    named(|line| line.runs().into_iter().map(|run| run.name).collect())
}

/// Completes an arm of the recipe that the line names, else of the runs that it names.
pub fn arms() -> ArgValueCompleter {
    named(|line| match line.recipe() {
        Some(recipe) => recipe.arms().into_iter().map(str::to_owned).collect(),
        None => line.chosen_runs().into_iter().map(|run| run.arm).collect(),
    })
}

/// Completes an evaluation set of the recipe or the runs that the line names.
pub fn eval_sets() -> ArgValueCompleter {
    named(|line| {
        let sets = |recipe: Recipe| recipe.data().eval_sets().into_iter().map(str::to_owned).collect();
        line.recipes().into_iter().flat_map::<Vec<String>, _>(sets).collect()
    })
}

/// Completes a search of the recipe or the runs that the line names.
pub fn searches() -> ArgValueCompleter {
    named(|line| {
        let searches = |recipe: Recipe| recipe.searches().into_iter().map(str::to_owned).collect();
        line.recipes().into_iter().flat_map::<Vec<String>, _>(searches).collect()
    })
}

/// Completes an arm of the runs that the line names.
pub fn run_arms() -> ArgValueCompleter {
    named(|line| line.chosen_runs().into_iter().map(|run| run.arm).collect())
}

/// Completes a tier of the recipe that the line names.
pub fn tiers() -> ArgValueCompleter {
    named(|line| match line.recipe() {
        Some(recipe) => recipe.tiers().into_iter().map(str::to_owned).collect(),
        None => all_tiers(),
    })
}

/// Completes a tier of the runs that the line names.
pub fn run_tiers() -> ArgValueCompleter {
    named(|line| {
        let tier = |run: RunFolder| run.tier().map_or_else(|| FULL.to_owned(), str::to_owned);
        line.chosen_runs().into_iter().map(tier).collect()
    })
}

/// Completes a seed of the runs that the line names.
pub fn run_seeds() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(text) = current.to_str() else { return Vec::new() };
        let seeds: BTreeSet<u64> = Line::of_process().chosen_runs().into_iter().map(|run| run.seed).collect();
        // In the order of numbers.
        let seeds = seeds.into_iter().map(|seed| seed.to_string());
        let ordered = (0..).zip(seeds.filter(|seed| seed.starts_with(text)));
        ordered.map(|(at, seed)| CompletionCandidate::new(seed).display_order(Some(at))).collect()
    })
}

/// Tiers of all built-in recipes.
fn all_tiers() -> Vec<String> {
    let documents = zoo_recipes::names().into_iter().filter_map(|name| Document::load(name).ok());
    let tiers: BTreeSet<String> = documents
        .flat_map(|document| document.tiers().into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    tiers.into_iter().collect()
}

/// Completes one of the words that `words` makes.
fn named(words: impl Fn(&Line) -> Vec<String> + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let Some(text) = current.to_str() else { return Vec::new() };
        let words: BTreeSet<String> = words(&Line::of_process()).into_iter().collect();
        candidates(fitting(text, words.iter().map(String::as_str)))
    })
}

/// Completes a word by names, or by paths if it looks like one, or if no name fits.
fn complete(
    current: &OsStr,
    names: impl Fn(&Line, &str) -> Vec<String>,
    is_wanted: fn(&std::path::Path) -> bool,
) -> Vec<CompletionCandidate> {
    let text = current.to_str().unwrap_or_default();
    let is_path = text.contains(['/', MAIN_SEPARATOR]) || text.starts_with(['.', '~']);
    let found = if is_path { Vec::new() } else { names(&Line::of_process(), text) };
    match found.is_empty() {
        true => PathCompleter::any().filter(is_wanted).complete(current),
        false => candidates(found),
    }
}

/// Whether a path can be a recipe file.
fn is_recipe_file(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml")
}

fn fitting<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    names.into_iter().filter(|name| name.starts_with(text)).map(str::to_owned).collect()
}

/// Candidates in the order of the names, each once: a recipe and a run can have one name.
fn candidates(names: Vec<String>) -> Vec<CompletionCandidate> {
    let mut taken = BTreeSet::new();
    let ordered = (0..).zip(names.into_iter().filter(|name| taken.insert(name.clone())));
    ordered.map(|(at, name)| CompletionCandidate::new(name).display_order(Some(at))).collect()
}

/// Names of runs that begin with a text: `NAME` of all recipes, `NAME:ARM` if one recipe fits or the
/// text has a colon, `NAME:ARM:SEED` if one arm fits or the text has two.
fn run_names(runs: &[RunFolder], text: &str) -> Vec<String> {
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let fits = |run: &&RunFolder| match rest {
        Some(_) => name == LAST || run.name == name,
        None => run.name.starts_with(name),
    };
    let fitting: Vec<&RunFolder> = runs.iter().filter(fits).collect();
    let last = !runs.is_empty() && LAST.starts_with(name);
    let mut names: BTreeSet<&str> = fitting.iter().map(|run| run.name.as_str()).collect();
    if rest.is_none() {
        names.extend(Some(LAST).filter(|_| last));
        if names.len() != 1 {
            return names.into_iter().map(str::to_owned).collect();
        }
    }
    let head = match rest {
        Some(_) => name,
        None => names.first().copied().unwrap_or(name),
    };
    let of_head = runs.iter().filter(|run| head == LAST || run.name == head);
    let mut arms: BTreeSet<String> = BTreeSet::new();
    let mut all: BTreeSet<(String, u64)> = BTreeSet::new();
    for run in of_head {
        let arm = format!("{head}:{}", run.arm);
        all.insert((arm.clone(), run.seed));
        arms.insert(arm);
    }
    arms.retain(|arm| arm.starts_with(text) || text.starts_with(&format!("{arm}:")));
    let mut found: Vec<String> = Vec::new();
    if head.starts_with(text) {
        found.push(head.to_owned());
    }
    found.extend(arms.iter().filter(|arm| arm.starts_with(text)).cloned());
    // The seeds, when no other part is open.
    if let (1, Some(arm)) = (arms.len(), arms.first())
        && rest.is_some()
    {
        let seeds = all.iter().filter(|(of, _)| of == arm).map(|(arm, seed)| format!("{arm}:{seed}"));
        found.extend(seeds.filter(|name| name.starts_with(text)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<RunFolder> {
        let run = |name: &str, arm: &str, seed| RunFolder { name: name.into(), arm: arm.into(), seed };
        vec![
            run("toy", "fp32", 1),
            run("toy", "fp32", 2),
            run("toy", "fp32", 10),
            run("toy", "mixed", 1),
            run("toy-big.smoke", "fp32", 1),
            run("word", "bf16-no-masters", 3),
        ]
    }

    #[test]
    fn names_of_runs_are_completed_part_by_part() {
        let names = |text: &str| run_names(&all(), text);
        assert_eq!(names(""), ["@last", "toy", "toy-big.smoke", "word"]);
        assert_eq!(names("to"), ["toy", "toy-big.smoke"]);
        assert_eq!(names("toy-"), ["toy-big.smoke", "toy-big.smoke:fp32"]);
        assert_eq!(names("wo"), ["word", "word:bf16-no-masters"]);
        assert_eq!(names("toy:"), ["toy:fp32", "toy:mixed"]);
        assert_eq!(names("toy:f"), ["toy:fp32", "toy:fp32:1", "toy:fp32:2", "toy:fp32:10"]);
        assert_eq!(names("toy:fp32:"), ["toy:fp32:1", "toy:fp32:2", "toy:fp32:10"]);
        assert_eq!(names("toy:fp32:1"), ["toy:fp32:1", "toy:fp32:10"]);
        assert_eq!(names("@"), ["@last", "@last:bf16-no-masters", "@last:fp32", "@last:mixed"]);
        assert_eq!(names("@last:mi"), ["@last:mixed", "@last:mixed:1"]);
        for none in ["x", "toy:x", "to:", "toy:fp32:3", "toy:fp32:1:"] {
            assert_eq!(names(none), [""; 0], "{none}");
        }
        assert_eq!(run_names(&[], ""), [""; 0]);
    }
}
