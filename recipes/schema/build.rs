//! Embeds every `recipes/catalog/<task>/<name>.toml`, so that there is no list of recipes to keep.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

fn main() {
    if let Err(error) = run() {
        eprintln!("cannot embed the recipes: {error}");
        process::exit(1);
    }
}

fn run() -> io::Result<()> {
    let missing = |name: &str| io::Error::other(format!("cargo did not set {name}"));
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| missing("CARGO_MANIFEST_DIR"))?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| missing("OUT_DIR"))?);
    let catalog = root.join("../catalog");
    println!("cargo::rerun-if-changed=build.rs");
    // The catalog's own folder: a new task is a new folder in it.
    println!("cargo::rerun-if-changed=../catalog");

    let mut recipes: BTreeMap<(String, String), PathBuf> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for (task, folder) in entries(&catalog)?.into_iter().filter(|(_, path)| path.is_dir()) {
        for (file, path) in entries(&folder)? {
            let Some(name) = file.strip_suffix(".toml") else { continue };
            if let Some(other) = names.insert(name.to_owned(), path.clone()) {
                let both = format!("{} and {} have one name", other.display(), path.display());
                return Err(io::Error::other(both));
            }
            recipes.insert((task.clone(), name.to_owned()), path);
        }
    }

    let mut code = String::from("static EMBEDDED: &[Embedded] = &[\n");
    for ((task, name), path) in &recipes {
        let file = format!("recipes/catalog/{task}/{name}.toml");
        let path = path.to_str().ok_or_else(|| io::Error::other("the path is not UTF-8"))?;
        writeln!(
            code,
            "    Embedded {{ task: {task:?}, name: {name:?}, file: {file:?}, text: include_str!({path:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    fs::write(out.join("embedded.rs"), code)
}

fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
