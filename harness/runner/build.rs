//! Sets the variables that describe the sources (commit, changes, profile). Collects the files that
//! the evidence of recipes is derived from: descriptions of the parity fixtures, traces, and the
//! project's ledger.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    sources(&root)?;
    evidence(&root)
}

/// Files and folders that the program is built from.
const SOURCES: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "harness",
    "zoo",
    "datasets",
    "recipes",
    "results/Cargo.toml",
    "results/src",
    "third_party",
];

/// Sets `ZOO_COMMIT`, `ZOO_DIRTY`, `ZOO_DIRT` and `ZOO_PROFILE`. `ZOO_DIRTY` ignores results/data/,
/// because recording a run does not change the sources. `ZOO_DIRT` is a digest of the sources if
/// they differ from the commit, else empty.
fn sources(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // A missing path would make cargo run this script every time.
    for path in SOURCES.into_iter().chain(["results", ".git/HEAD", ".git/index"]) {
        let path = root.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    // Without the option, git would write to its index, and the next build would run this script
    // again.
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("--no-optional-locks")
            .arg("-C")
            .arg(root)
            .args(arguments)
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changes = git(&["status", "--porcelain", "--", ":/", ":(exclude,top)results/data"]);
    println!("cargo::rustc-env=ZOO_COMMIT={commit}");
    let dirty = changes.is_none_or(|changes| !changes.is_empty());
    println!("cargo::rustc-env=ZOO_DIRTY={dirty}");
    println!("cargo::rustc-env=ZOO_DIRT={}", if dirty { digest_of_sources(root)? } else { String::new() });
    println!("cargo::rustc-env=ZOO_PROFILE={}", env::var("PROFILE")?);
    Ok(())
}

/// SHA-256 over the paths and contents of [`SOURCES`], to distinguish changed trees of one commit.
fn digest_of_sources(root: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut sha256 = Sha256::new();
    let mut left: Vec<PathBuf> = SOURCES.iter().rev().map(PathBuf::from).collect();
    while let Some(path) = left.pop() {
        let here = root.join(&path);
        if here.is_dir() {
            let inside = fs::read_dir(&here)?.map(|entry| Ok(path.join(entry?.file_name())));
            let mut inside = inside.collect::<Result<Vec<_>, std::io::Error>>()?;
            inside.sort_by(|one, other| other.cmp(one));
            left.extend(inside);
        } else if here.is_file() {
            let bytes = fs::read(&here)?;
            sha256.update(format!("{} {}\n", path.display(), bytes.len()));
            sha256.update(bytes);
        }
    }
    Ok(hex::encode(sha256.finalize()))
}

/// Writes `fixtures.json`, `fixture_files.rs` and `ledger.jsonl` to the build's output folder.
fn evidence(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let fixtures = root.join("tests/fixtures");
    let ledger = root.join("results/data/ledger.jsonl");
    println!("cargo::rerun-if-changed={}", fixtures.display());
    let mut described = Map::new();
    let mut optimizers = Vec::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(&fixtures)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "safetensors")) {
        let Some(mut description) = description(file)? else { continue };
        if let Some(Value::Object(rules)) = description.remove("rules") {
            optimizers.extend(rules.into_iter().map(|(_, rule)| rule));
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        described.insert(name.into_owned(), Value::Object(description));
    }
    let traces = |file: &str, key: &str| -> Result<Vec<Value>, Box<dyn std::error::Error>> {
        let text = fs::read_to_string(fixtures.join(file))?;
        let all: Value = serde_json::from_str(&text)?;
        let cases = all["cases"].as_array().cloned().unwrap_or_default();
        Ok(cases.into_iter().map(|mut case| case[key].take()).filter(|value| !value.is_null()).collect())
    };
    let index = json!({
        "described": described,
        "optimizers": optimizers,
        "schedules": traces("schedules.json", "schedule")?,
        "scalers": traces("scalers.json", "scaler")?,
    });

    // `zoo verify` compares with the files themselves, which are built into the program.
    let mut table = String::from("[\n");
    for file in
        files.iter().filter(|file| file.extension().is_some_and(|e| e == "safetensors" || e == "json"))
    {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        table.push_str(&format!("    ({name:?}, include_bytes!({:?}).as_slice()),\n", file.canonicalize()?));
    }
    table.push_str("]\n");

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("fixture_files.rs"), table)?;
    fs::write(out.join("fixtures.json"), index.to_string())?;
    fs::write(out.join("ledger.jsonl"), if ledger.exists() { fs::read(&ledger)? } else { Vec::new() })?;
    Ok(())
}

/// The `zoo` entry of a safetensors file's metadata.
fn description(file: &Path) -> Result<Option<Map<String, Value>>, Box<dyn std::error::Error>> {
    let mut reader = fs::File::open(file)?;
    let mut length = [0; 8];
    reader.read_exact(&mut length)?;
    let mut header = Vec::new();
    reader.take(u64::from_le_bytes(length).min(1 << 26)).read_to_end(&mut header)?;
    let header: Value = serde_json::from_slice(&header)?;
    let Some(text) = header["__metadata__"]["zoo"].as_str() else { return Ok(None) };
    Ok(serde_json::from_str::<Value>(text)?.as_object().cloned())
}
