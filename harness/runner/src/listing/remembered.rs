//! The list as the last call made it. It is valid as long as program and ledger are the same.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Listed;
use crate::context::Context;
use crate::files::{Stamp, write_whole};
use crate::records;

/// Name of the file in the home.
pub const FILE: &str = "list.json";

/// What a list depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The program's file. The catalog and the project's ledger are in it.
    program: Stamp,
    /// SHA-256 of the home's ledger; `None` if there is none.
    ledger: Option<String>,
}

impl Key {
    /// The present key; `None` if the program's file cannot be found.
    pub fn of(context: &Context) -> Option<Self> {
        let program = Stamp::of_program()?;
        let ledger = fs::read(context.ledger_path()).ok();
        Some(Self { program, ledger: ledger.map(|bytes| hex::encode(Sha256::digest(bytes))) })
    }
}

#[derive(Serialize, Deserialize)]
struct Remembered<L> {
    key: Key,
    recipes: L,
}

fn file(context: &Context) -> PathBuf {
    context.home.join(FILE)
}

/// The list that was made for this key.
pub fn recall(context: &Context, key: &Option<Key>) -> Option<Vec<Listed>> {
    let bytes = fs::read(file(context)).ok()?;
    let Remembered { key: of, recipes } = serde_json::from_slice(&bytes).ok()?;
    (Some(&of) == key.as_ref()).then_some(recipes)
}

/// Keeps a list in a home that exists. A list that cannot be kept is made again the next time. With a
/// damaged ledger it always is, because making it reports the damage.
pub fn remember(context: &Context, key: Option<Key>, list: &[Listed]) {
    let Some(key) = key else { return };
    if !context.home.is_dir() || records::ledger(context, None).entries().is_err() {
        return;
    }
    if let Ok(bytes) = serde_json::to_vec(&Remembered { key, recipes: list }) {
        write_whole(&file(context), &bytes).ok();
    }
}
