//! Embeds every recipe, `recipes/catalog/<task>/<name>.toml`, and every part,
//! `recipes/parts/<folder>/<name>.toml`, so that no list of them has to be maintained.

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
    println!("cargo::rerun-if-changed=build.rs");

    let recipes = files(&root.join("../catalog"))?;
    let mut names = BTreeMap::new();
    let mut code = String::from("static EMBEDDED: &[Embedded] = &[\n");
    for ((task, name), path) in &recipes {
        if let Some(other) = names.insert(name, path) {
            return Err(io::Error::other(format!("{other} and {path} have one name")));
        }
        let file = format!("recipes/catalog/{task}/{name}.toml");
        writeln!(
            code,
            "    Embedded {{ task: {task:?}, name: {name:?}, file: {file:?}, text: include_str!({path:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    code.push_str("];\n\nstatic PARTS: &[EmbeddedPart] = &[\n");
    for ((folder, name), path) in &files(&root.join("../parts"))? {
        let name = format!("{folder}/{name}");
        writeln!(code, "    EmbeddedPart {{ name: {name:?}, text: include_str!({path:?}) }},")
            .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    fs::write(out.join("embedded.rs"), code)
}

/// The TOML files in the folders of `root`, by folder and stem.
fn files(root: &Path) -> io::Result<BTreeMap<(String, String), String>> {
    // Watch the folder itself, so that the next build finds a new file or a new folder in it.
    println!("cargo::rerun-if-changed={}", root.display());
    let mut found = BTreeMap::new();
    for (folder, path) in entries(root)?.into_iter().filter(|(_, path)| path.is_dir()) {
        for (file, path) in entries(&path)? {
            let Some(name) = file.strip_suffix(".toml") else { continue };
            let path = path.to_str().ok_or_else(|| io::Error::other("the path is not UTF-8"))?;
            found.insert((folder.clone(), name.to_owned()), path.to_owned());
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}
