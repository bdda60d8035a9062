//! The ledger's file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use zoo_recipes::atomic::sync_parent;

use super::chain::{Entry, GENESIS, decode, encode, sha256, unchanged};
use super::error::LedgerError;
use super::record::Record;

/// A ledger file. It does not have to exist yet. Nothing is kept in memory between calls.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

/// The content of a ledger's file.
struct Lines {
    entries: Vec<Entry>,
    /// Size of the file in bytes.
    length: u64,
    /// Whether the last line has its newline; true if there are no lines.
    ended: bool,
}

impl Ledger {
    /// A ledger at `path`. Checks that the existing content is complete.
    ///
    /// # Errors
    /// See [`Ledger::verify`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, LedgerError> {
        let ledger = Self { path: path.into() };
        ledger.entries()?;
        Ok(ledger)
    }

    /// A ledger at `path`, unread. `zoo ledger verify` uses it to report errors instead of failing
    /// to open.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All records in order, each checked against its hash and the previous record.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] names the first line that does not contain what was written, and
    /// the field if it can be identified. [`LedgerError::Torn`] reports an incomplete last line. A
    /// file that does not exist has no records.
    pub fn entries(&self) -> Result<Vec<Entry>, LedgerError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io(error)),
        };
        file.lock_shared().map_err(|e| self.io(e))?;
        Ok(self.read(&mut file)?.entries)
    }

    /// The records of one recipe in order. Every line is checked against its hash and the previous
    /// line. Only the lines that name the recipe are parsed, as this program writes the name.
    ///
    /// # Errors
    /// As [`Ledger::entries`], except for a line of another recipe with the right hash: its fields are
    /// not looked at.
    pub fn entries_of(&self, recipe: &str) -> Result<Vec<Entry>, LedgerError> {
        if let Some(entries) = self.unchanged_entries_of(recipe) {
            return Ok(entries);
        }
        // It finds the fault, or reads what that reader is too strict for.
        let mut entries = self.entries()?;
        entries.retain(|entry| entry.record.recipe == recipe);
        Ok(entries)
    }

    /// For each recipe that has records, a digest that changes when it gets another one. `None` if the
    /// file cannot be read, or a line is damaged or not in its place.
    #[must_use]
    pub fn digests(&self) -> Option<HashMap<String, String>> {
        if !self.path.exists() {
            return Some(HashMap::new());
        }
        let mut hashes: HashMap<String, String> = HashMap::new();
        self.each_unchanged(|line, _, _, hash| {
            let (_, name) = line.split_once("\"recipe\":\"")?;
            let (name, _) = name.split_once('"')?;
            hashes.entry(name.to_owned()).or_default().push_str(hash);
            Some(())
        })?;
        Some(hashes.into_iter().map(|(recipe, hashes)| (recipe, sha256(hashes.as_bytes()))).collect())
    }

    /// `None` if a line is damaged, not in its place, or does not begin as this program writes it.
    fn unchanged_entries_of(&self, recipe: &str) -> Option<Vec<Entry>> {
        let named = format!("\"recipe\":{}", serde_json::Value::from(recipe));
        let mut entries = Vec::new();
        self.each_unchanged(|line, sequence, previous, _| {
            if line.contains(&named) {
                entries.push(decode(line.as_bytes(), sequence, previous).ok()?);
            }
            Some(())
        })?;
        entries.retain(|entry| entry.record.recipe == recipe);
        Some(entries)
    }

    /// Calls `each` with every line, its number, the previous hash and its own. `None` if a line is
    /// damaged or not in its place, or `each` returns `None`.
    fn each_unchanged(&self, mut each: impl FnMut(&str, u64, &str, &str) -> Option<()>) -> Option<()> {
        let mut file = File::open(&self.path).ok()?;
        file.lock_shared().ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let mut previous = GENESIS;
        for (sequence, line) in (0..).zip(text.strip_suffix('\n')?.split('\n')) {
            let hash = unchanged(line, sequence, previous)?;
            each(line, sequence, previous, hash)?;
            previous = hash;
        }
        Some(())
    }

    /// Checks every line. Returns the number of records and the hash of the last one ([`GENESIS`]
    /// if there are none). `head`, if given, is the hash that the last record must have. Without
    /// it, the loss of the last lines cannot be detected.
    ///
    /// # Errors
    /// As [`Ledger::entries`], and [`LedgerError::OtherHead`].
    pub fn verify(&self, head: Option<&str>) -> Result<(usize, String), LedgerError> {
        let entries = self.entries()?;
        let found = entries.last().map_or(GENESIS, |entry| entry.hash.as_str()).to_owned();
        match head {
            Some(expected) if expected != found => {
                Err(LedgerError::OtherHead { path: self.path.clone(), expected: expected.to_owned(), found })
            }
            _ => Ok((entries.len(), found)),
        }
    }

    /// Appends a record under a lock on the file, and returns its entry once it is on the disk. The
    /// existing content is checked first and never rewritten. A damaged ledger is not extended. If
    /// the line cannot be written completely (a full disk), the file is truncated to its former
    /// length before the lock is released.
    ///
    /// # Errors
    /// As [`Ledger::entries`], and errors of the file system.
    pub fn append(&self, record: &Record) -> Result<Entry, LedgerError> {
        let io = |e| self.io(e);
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let fresh = !self.path.exists();
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(&self.path).map_err(io)?;
        file.lock().map_err(io)?;
        let Lines { entries, length, ended } = self.read(&mut file)?;
        let previous = entries.last().map_or(GENESIS, |entry| entry.hash.as_str());
        let sequence = entries.len() as u64;
        let mut line = encode(sequence, previous, record)?;
        // The line must read back as the same record, or it would never verify.
        let entry = decode(line.as_bytes(), sequence, previous)
            .map_err(|fault| self.damaged(entries.len() + 1, fault.field, fault.what))?;
        line.push('\n');
        if !ended {
            line.insert(0, '\n');
        }
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Half a line would make every later append fail. If this truncation fails too,
            // `verify` reports the incomplete line.
            let _ = file.set_len(length).and_then(|()| file.sync_all());
            return Err(io(error));
        }
        if fresh {
            sync_parent(&self.path);
        }
        Ok(entry)
    }

    /// The record with this number, or the one whose hash begins with this text.
    ///
    /// # Errors
    /// As [`Ledger::entries`].
    pub fn find(&self, which: &str) -> Result<Option<Entry>, LedgerError> {
        let entries = self.entries()?;
        let by_number = which.parse::<u64>().ok();
        let by_hash = |entry: &&Entry| which.len() >= 6 && entry.hash.starts_with(which);
        let found = entries.iter().find(|e| Some(e.sequence) == by_number);
        Ok(found.or_else(|| entries.iter().find(by_hash)).cloned())
    }

    /// The line of an entry as it is in the file, without its newline.
    ///
    /// # Errors
    /// As [`Ledger::entries`], and an error if the file no longer has that line.
    pub fn line(&self, entry: &Entry) -> Result<String, LedgerError> {
        let bytes = std::fs::read(&self.path).map_err(|e| self.io(e))?;
        let at = entry.sequence as usize;
        let line =
            bytes.split(|byte| *byte == b'\n').nth(at).map(|line| String::from_utf8_lossy(line).into_owned());
        let line = line.filter(|line| Entry::parse(line).as_ref() == Ok(entry));
        line.ok_or_else(|| {
            self.damaged(at + 1, None, "the line differs from the one that was read before".to_owned())
        })
    }

    fn read(&self, file: &mut File) -> Result<Lines, LedgerError> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(|e| self.io(e))?;
        let length = bytes.len() as u64;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut entries: Vec<Entry> = Vec::new();
        let mut previous = GENESIS.to_owned();
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let line = &line[..line.len() - 1];
            let entry = decode(line, entries.len() as u64, &previous)
                .map_err(|fault| self.damaged(entries.len() + 1, fault.field, fault.what))?;
            previous.clone_from(&entry.hash);
            entries.push(entry);
        }
        let ended = whole == bytes.len();
        if !ended {
            // Only the newline may be missing: the hash at the end of the line shows that the line
            // is complete.
            let Ok(entry) = decode(&bytes[whole..], entries.len() as u64, &previous) else {
                let (path, line) = (self.path.clone(), entries.len() + 1);
                return Err(LedgerError::Torn { path, line, whole: whole as u64, length });
            };
            entries.push(entry);
        }
        Ok(Lines { entries, length, ended })
    }

    fn io(&self, source: std::io::Error) -> LedgerError {
        LedgerError::Io { path: self.path.clone(), source }
    }

    fn damaged(&self, line: usize, field: Option<String>, what: String) -> LedgerError {
        LedgerError::Damaged { path: self.path.clone(), line, field, what }
    }
}
