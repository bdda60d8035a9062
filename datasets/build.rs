//! Embeds every `corpora/*.toml`, so adding a file there adds a corpus.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=corpora");
    let mut paths = Vec::new();
    for entry in fs::read_dir("corpora")? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            paths.push(fs::canonicalize(path)?);
        }
    }
    paths.sort();
    let mut code = String::from("&[");
    for path in paths {
        println!("cargo:rerun-if-changed={}", path.display());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        write!(code, "({stem:?}, include_str!({path:?})),").map_err(io::Error::other)?;
    }
    code.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("corpora.rs"), code)
}
