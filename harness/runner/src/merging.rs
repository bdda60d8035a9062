//! `zoo ledger merge`: takes over the records of another ledger, for example of another machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use zoo_results::exit::Exit;
use zoo_results::ledger::{
    Contradiction, Entry, HypothesesFile, Kept, Ledger, Record, contradicts, references_key,
};

use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::records::{HYPOTHESES, kept_path};

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

/// Appends the records of `other` that `ledger` lacks, in their order, and copies their hypotheses
/// and references. All files are read and checked before anything is written. The records keep their
/// time; their numbers and hashes are those of the new chain. After an error while writing, the same
/// merge completes what is missing.
///
/// # Errors
/// One of the ledgers is damaged; files are missing, differ, or do not have their digest; a verdict
/// does not know what an earlier record of this ledger spent of its level.
pub fn merge(ledger: &Ledger, other: &Ledger) -> Result<Merged> {
    let (own, theirs) = (ledger.entries()?, other.entries()?);
    let is_new = |entry: &&Entry| !own.iter().any(|known| known.record == entry.record);
    let new: Vec<&Entry> = theirs.iter().filter(is_new).collect();
    let mut earlier: Vec<&Record> = own.iter().map(|entry| &entry.record).collect();
    for entry in &new {
        if let Some(Contradiction { what, how }) = contradicts(&entry.record, &earlier) {
            let place = format!("{}:{}: {}", other.path().display(), entry.sequence + 1, entry.record.recipe);
            return Err(Failure::new(Exit::Damaged, format!("{place}: {what}: {how}"))
                .hint("both ledgers judge this claim; copy the other's run folders into this home and judge them here"));
        }
        earlier.push(&entry.record);
    }
    let folder = |ledger: &Ledger| ledger.path().parent().unwrap_or(Path::new("")).join(HYPOTHESES);
    let (from, to) = (folder(other), folder(ledger));
    let mut missing: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for file in new.iter().flat_map(|entry| files(&entry.record, &from)) {
        let bytes = content(&from, &file)?;
        match fs::read(to.join(&file.path)) {
            Ok(kept) if kept == bytes => {}
            Ok(_) => {
                let place = to.join(&file.path);
                let message = format!(
                    "{} is the output of another run than that of {}",
                    place.display(),
                    from.display()
                );
                return Err(Failure::new(Exit::Damaged, message).hint(
                    "begin with a copy of `hypotheses` on the other machine: its names are then chosen anew",
                ));
            }
            Err(_) => drop(missing.insert(file.path, bytes)),
        }
    }
    for (path, bytes) in &missing {
        let place = to.join(path);
        let parent = place.parent().unwrap_or(&to);
        fs::create_dir_all(parent).map_err(|error| Failure::io("make", parent, &error))?;
        write_whole(&place, bytes)?;
    }
    for entry in &new {
        ledger.append(&entry.record)?;
    }
    let (_, head) = ledger.verify(None)?;
    Ok(Merged { records: new.len(), known: theirs.len() - new.len(), files: missing.len(), head })
}

/// The files that a record names: its hypotheses, and references that are kept in the folder.
fn files(record: &Record, folder: &Path) -> Vec<HypothesesFile> {
    let references = record.data.iter().filter(|(key, _)| key.starts_with(&references_key("")));
    let references = references
        .map(|(_, sha256)| HypothesesFile { path: kept_path(sha256), sha256: sha256.clone() })
        .filter(|file| folder.join(&file.path).is_file());
    record.all_scores().filter_map(|score| score.hypotheses.clone()).chain(references).collect()
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
