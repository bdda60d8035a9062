//! `zoo ledger merge`: takes over the records of another ledger, for example of another machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use zoo_results::exit::Exit;
use zoo_results::ledger::{HypothesesFile, Kept, Ledger, Record};

use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::records::HYPOTHESES;

/// What a merge took over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Number of records that were appended.
    pub records: usize,
    /// Number of records that the ledger had already.
    pub known: usize,
    /// Number of files of hypotheses that were copied.
    pub files: usize,
    /// Hash of the ledger's last record.
    pub head: String,
}

/// Appends the records of `other` that `ledger` lacks, in their order, and copies their hypotheses.
/// All files are read and checked before anything is written. The records keep their time; their
/// numbers and hashes are those of the new chain.
///
/// # Errors
/// One of the ledgers is damaged, or hypotheses are missing or do not have their digest.
pub fn merge(ledger: &Ledger, other: &Ledger) -> Result<Merged> {
    let (own, theirs) = (ledger.entries()?, other.entries()?);
    let is_new = |record: &&Record| !own.iter().any(|entry| entry.record == **record);
    let new: Vec<&Record> = theirs.iter().map(|entry| &entry.record).filter(is_new).collect();
    let folder = |ledger: &Ledger| ledger.path().parent().unwrap_or(Path::new("")).join(HYPOTHESES);
    let (from, to) = (folder(other), folder(ledger));
    let mut missing: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for file in
        new.iter().flat_map(|record| record.all_scores()).filter_map(|score| score.hypotheses.as_ref())
    {
        let place = to.join(&file.path);
        if !place.exists() {
            missing.insert(&file.path, content(&from, file)?);
        } else {
            content(&to, file)?;
        }
    }
    for (path, bytes) in &missing {
        let place = to.join(path);
        let parent = place.parent().unwrap_or(&to);
        fs::create_dir_all(parent).map_err(|error| Failure::io("make", parent, &error))?;
        write_whole(&place, bytes)?;
    }
    for record in &new {
        ledger.append(record)?;
    }
    let (_, head) = ledger.verify(None)?;
    Ok(Merged { records: new.len(), known: theirs.len() - new.len(), files: missing.len(), head })
}

/// The bytes of a kept file.
fn content(folder: &PathBuf, file: &HypothesesFile) -> Result<Vec<u8>> {
    let damaged = |why: String| {
        Failure::new(Exit::Damaged, format!("{}: {why}", folder.display()))
            .hint("nothing was taken over; the folder `hypotheses` beside each ledger must be complete")
    };
    let bytes = folder.bytes(file).map_err(damaged)?;
    match hex::encode(Sha256::digest(&bytes)) == file.sha256 {
        true => Ok(bytes),
        false => Err(damaged(format!("{} does not have the digest that was recorded", file.path))),
    }
}
