//! The list as the last call made it. A recipe's part is valid as long as the program and the recipe's
//! records are the same.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Listed;
use crate::context::Context;
use crate::files::{Stamp, write_whole};

/// Name of the file in the home.
pub const FILE: &str = "list.json";

/// A recipe's part of the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    /// Digest of the recipe's records in the home's ledger; `None` if it has none.
    pub records: Option<String>,
    pub listed: Listed,
}

/// `program` is the program's file. The catalog and the project's ledger are in it.
#[derive(Serialize, Deserialize)]
struct Remembered<P> {
    program: Stamp,
    recipes: P,
}

fn file(context: &Context) -> PathBuf {
    context.home.join(FILE)
}

/// The parts that this program made, by the recipe's name.
pub fn recall(context: &Context) -> HashMap<String, Part> {
    let read = || -> Option<Vec<Part>> {
        let bytes = fs::read(file(context)).ok()?;
        let Remembered { program, recipes } = serde_json::from_slice(&bytes).ok()?;
        (program == Stamp::of_program()?).then_some(recipes)
    };
    let parts = read().into_iter().flatten();
    parts.map(|part: Part| (part.listed.name.clone(), part)).collect()
}

/// Keeps the parts in a home that exists. Those that cannot be kept are made again the next time.
pub fn remember(context: &Context, parts: &[Part]) {
    let Some(program) = Stamp::of_program().filter(|_| context.home.is_dir()) else { return };
    if let Ok(bytes) = serde_json::to_vec(&Remembered { program, recipes: parts }) {
        write_whole(&file(context), &bytes).ok();
    }
}
