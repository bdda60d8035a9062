//! The layers of the metrics: the contract, the families, the registry, the scores. Each uses only
//! those before it.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers that are not families, from the lowest.
const CONTRACT: &str = "contract";
const REGISTRY: &str = "registry";
const SCORING: &str = "scoring";

/// The module of the metrics that a file belongs to: its folder, or the file itself.
fn module(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Whether a file of one module may use another module.
fn may_use(own: &str, other: &str) -> bool {
    match (own, other) {
        _ if own == other => true,
        (CONTRACT, _) => false,
        (SCORING, _) => other == CONTRACT || other == REGISTRY,
        (REGISTRY, _) => other != SCORING,
        (_family, _) => other == CONTRACT,
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// The modules of the metrics that a source uses by their paths. Tests and comments do not count.
fn used<'t>(text: &'t str, path: &Path) -> Vec<&'t str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    // A file beside `mod.rs` reaches its neighbours with one `super`, a file in a folder with two.
    let up = "super::".repeat(path.iter().count());
    let starts = ["crate::metrics::".to_owned(), up];
    let named = |line: &'t str| {
        let start = starts.iter().find_map(|start| Some(line.find(start.as_str())? + start.len()))?;
        let word = line[start..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        Some(word)
    };
    lines.filter_map(named).collect()
}

#[test]
fn families_use_the_contract_alone_and_only_the_registry_names_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/metrics");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 50, "{}", files.len());
    let mut leaks = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let own = module(path);
        if own == "mod" || path.to_str().unwrap().ends_with("_tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let wrong = used(&text, path).into_iter().filter(|other| !may_use(&own, other));
        leaks.extend(wrong.map(|other| format!("{} uses {other}", path.display())));
    }
    assert!(leaks.is_empty(), "the layers of results/src/metrics/mod.rs:\n{}", leaks.join("\n"));
}
