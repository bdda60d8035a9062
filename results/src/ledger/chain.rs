//! Lines of the ledger, their hashes, and the detection of changes.

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::record::Record;

/// Version of the line format.
pub const SCHEMA: u64 = 1;

/// `previous` of the first record.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Text between the hashed bytes of a line and its hash.
const HASH_KEY: &str = ",\"hash\":\"";

/// A record with its position in the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Number, from 0: the line number less 1.
    pub sequence: u64,
    /// Hash of the previous record.
    pub previous: String,
    /// Hash of this record.
    pub hash: String,
    /// The record.
    pub record: Record,
}

impl Entry {
    /// Parses a single line and checks that it is complete and unchanged. Whether it belongs to a
    /// chain can only be checked with the rest of the chain.
    ///
    /// # Errors
    /// Words on what was changed.
    pub fn parse(line: &str) -> Result<Self, String> {
        let fields: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let (Some(sequence), Some(previous)) = (fields["sequence"].as_u64(), fields["previous"].as_str())
        else {
            return Err("not a ledger line: it has no position in the chain".to_owned());
        };
        decode(line.as_bytes(), sequence, previous).map_err(|fault| fault.what)
    }
}

/// A place where a line differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub field: Option<String>,
    pub what: String,
}

fn fault<T>(field: Option<&str>, what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { field: field.map(str::to_owned), what: what.into() })
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Short digest of a field, long enough to identify which field was changed. The line's hash is the
/// protection.
fn seal(value: &Value) -> String {
    sha256(value.to_string().as_bytes())[..12].to_owned()
}

/// The line of a record, without its newline.
pub(super) fn encode(sequence: u64, previous: &str, record: &Record) -> Result<String, serde_json::Error> {
    let mut fields = Map::new();
    fields.insert("schema".into(), SCHEMA.into());
    fields.insert("sequence".into(), sequence.into());
    fields.insert("previous".into(), previous.into());
    if let Value::Object(said) = serde_json::to_value(record)? {
        fields.extend(said);
    }
    let seals: Map<String, Value> =
        fields.iter().map(|(key, value)| (key.clone(), seal(value).into())).collect();
    fields.insert("seals".into(), seals.into());
    let mut line = Value::Object(fields).to_string();
    // Remove the closing brace to append the hash, which covers everything before it.
    line.pop();
    let hash = sha256(line.as_bytes());
    Ok(format!("{line}{HASH_KEY}{hash}\"}}"))
}

/// Reads a line, which must be number `sequence` and follow a record with the hash `previous`.
pub(super) fn decode(line: &[u8], sequence: u64, previous: &str) -> Result<Entry, Fault> {
    let Ok(text) = std::str::from_utf8(line) else { return fault(None, "not UTF-8: bytes were changed") };
    let Some((sealed, hash)) =
        text.rsplit_once(HASH_KEY).and_then(|(sealed, rest)| Some((sealed, rest.strip_suffix("\"}")?)))
    else {
        return fault(Some("hash"), "the line does not end with its hash: it was changed or cut");
    };
    let fields = match serde_json::from_str::<Value>(&format!("{sealed}}}")) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return fault(None, "the line is not an object"),
        Err(error) => {
            return fault(None, format!("not JSON at column {}: bytes were changed", error.column()));
        }
    };
    if sha256(sealed.as_bytes()) != hash {
        let changed = changed_fields(&fields);
        return match changed.first() {
            Some(first) => {
                let names = changed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                fault(Some(first), format!("the hash does not match: changed after it was written: {names}"))
            }
            None => fault(
                None,
                "the hash does not match, but every field matches its seal: the hash, a space or the order of fields was changed",
            ),
        };
    }
    if fields.get("schema") != Some(&SCHEMA.into()) {
        let found = fields.get("schema").map_or("none".to_owned(), ToString::to_string);
        return fault(Some("schema"), format!("schema {found}; this program reads {SCHEMA}"));
    }
    let found = fields.get("sequence").and_then(Value::as_u64);
    if found != Some(sequence) {
        let found = found.map_or("none".to_owned(), |n| n.to_string());
        return fault(
            Some("sequence"),
            format!(
                "record {found} stands where record {sequence} belongs: lines were moved, added or removed"
            ),
        );
    }
    if fields.get("previous").and_then(Value::as_str) != Some(previous) {
        return fault(
            Some("previous"),
            "does not contain the hash of the previous line: that line was replaced and given a new hash",
        );
    }
    let record = match Record::deserialize(Value::Object(fields)) {
        Ok(record) => record,
        Err(error) => return fault(None, format!("not a record of schema {SCHEMA}: {error}")),
    };
    Ok(Entry { sequence, previous: previous.to_owned(), hash: hash.to_owned(), record })
}

/// The hash of a line that is unchanged and in its place of the chain. `None` if it is not, or if its
/// first fields were written in another form: then [`decode`] tells.
pub(super) fn unchanged<'l>(line: &'l str, sequence: u64, previous: &str) -> Option<&'l str> {
    let (sealed, end) = line.rsplit_once(HASH_KEY)?;
    let hash = end.strip_suffix("\"}")?;
    let place = format!("{{\"schema\":{SCHEMA},\"sequence\":{sequence},\"previous\":\"{previous}\",");
    (sealed.starts_with(&place) && sha256(sealed.as_bytes()) == hash).then_some(hash)
}

/// Fields that do not match their seal, were added, or are missing.
fn changed_fields(fields: &Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(seals)) = fields.get("seals") else { return vec!["seals".to_owned()] };
    let mut changed: Vec<String> = fields
        .iter()
        .filter(|(key, value)| *key != "seals" && seals.get(*key) != Some(&seal(value).into()))
        .map(|(key, _)| key.clone())
        .collect();
    changed.extend(seals.keys().filter(|key| !fields.contains_key(*key)).cloned());
    changed
}
