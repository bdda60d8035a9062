//! Checks that no code outside `tasks/` names a task, so that a new task needs only a folder here
//! and a line in the registry.

use std::fs;
use std::path::{Path, PathBuf};

use zoo_recipes::Task;

/// Names of parts that only some tasks have. Code outside `tasks/` that matches on one depends on a
/// task.
const PARTS_OF_TASKS: [&str; 9] = [
    "BatchingSpec::",
    "DecoderSpec::",
    "EncoderSpec::",
    "LossSpec::",
    "ReaderSpec::",
    "TokenizerSpec::",
    "SearchSpec::",
    "sample_rate_hz",
    "zoo_datasets::prepare::Prepared",
];

/// Tasks whose code in all other crates is in folders of their own. `zoo-datasets` and the alignment
/// in `zoo-training` still name translation and the two speech tasks elsewhere.
const WITH_FOLDERS: [Task; 2] = [Task::ImageClassification, Task::LanguageModelling];

/// Files of the other crates that name every task: the table of tasks, and the comparison with the
/// fixtures of each.
const REGISTRIES: [&str; 3] = [
    "recipes/schema/src/spec/task.rs",
    "harness/training/src/align/classifier.rs",
    "harness/training/src/align/language.rs",
];

/// Numbered lines of code in a source: without comments, tests, and example commands of help texts.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let runs = |line: &&str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("zoo ");
    let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    (1..).zip(before_tests.lines()).filter(move |(_, line)| runs(line))
}

/// The first of `words` that a line contains.
fn named<'w>(line: &str, words: &'w [String]) -> Option<&'w str> {
    words.iter().map(String::as_str).find(|word| line.contains(word))
}

fn words() -> Vec<String> {
    let of_names =
        Task::ALL.iter().flat_map(|task| [task.as_str().to_owned(), task.as_str().replace('-', "_")]);
    let mut words: Vec<String> = of_names.chain(PARTS_OF_TASKS.map(str::to_owned)).collect();
    words.dedup();
    words
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("tasks") => {}
            true => sources(&path, found),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn no_other_crate_names_a_task_that_has_folders_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = |task: &Task| {
        let variant = format!("{task:?}");
        [task.as_str().to_owned(), task.as_str().replace('-', "_"), variant]
    };
    let words: Vec<String> = WITH_FOLDERS.iter().flat_map(names).collect();
    let mut leaks = Vec::new();
    for crate_of in ["recipes/schema", "datasets", "results", "zoo/ops", "zoo/models", "harness/training"] {
        let mut files = Vec::new();
        sources(&root.join(crate_of).join("src"), &mut files);
        assert!(files.len() > 15, "{crate_of}: {}", files.len());
        for file in files {
            let name = file.strip_prefix(&root).unwrap().display().to_string();
            if REGISTRIES.contains(&name.as_str()) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let of_file = code(&text).filter_map(|(at, line)| Some((at, named(line, &words)?)));
            leaks.extend(of_file.map(|(at, word)| format!("{name}:{at} names {word}")));
        }
    }
    assert!(leaks.is_empty(), "only `tasks/` and the registries name a task:\n{}", leaks.join("\n"));
}

#[test]
fn nothing_outside_of_the_tasks_folder_names_a_task() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 80, "{}", files.len());
    let words = words();
    let mut leaks = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&root).unwrap().display();
        let of_file = code(&text).filter_map(|(at, line)| Some((at, named(line, &words)?)));
        leaks.extend(of_file.map(|(at, word)| format!("src/{name}:{at} names {word}")));
    }
    assert!(leaks.is_empty(), "ask the task instead, through `tasks::of(recipe)`:\n{}", leaks.join("\n"));
}

#[test]
fn a_leak_is_seen_in_code_and_not_in_comments_examples_or_tests() {
    let words = words();
    let leaks = |text: &str| code(text).filter(|(_, line)| named(line, &words).is_some()).count();
    assert_eq!(leaks("match loss { LossSpec::Ctc { .. } => 1 }"), 1);
    assert_eq!(leaks("    if task == \"speech-recognition\" {"), 1);
    assert_eq!(leaks("use crate::tasks::speech_synthesis::parts;"), 1);
    assert_eq!(
        leaks("// a LossSpec::Ctc\n  zoo list --task translation\n#[cfg(test)]\nmod tests {\nLossSpec::Ctc"),
        0
    );
    // A module of tests in a file of its own does not end the code.
    assert_eq!(leaks("#[cfg(test)]\nmod more_tests;\nuse LossSpec::Ctc;"), 1);
}

#[test]
fn every_task_has_a_recipe() {
    let recipes = zoo_recipes::names();
    let of = |name: &&str| zoo_recipes::Document::load(name).unwrap().about().task.to_string();
    let mut used: Vec<String> = recipes.iter().map(of).collect();
    used.sort();
    used.dedup();
    let mut listed: Vec<&str> = Task::ALL.iter().map(|task| task.as_str()).collect();
    listed.sort_unstable();
    assert_eq!(used, listed);
}
