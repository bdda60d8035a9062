//! Prepared data on disk: written whole or not at all, verified when read.
//!
//! A folder has `manifest.jsonl` (settings, statistics and the SHA-256 of every other file, and in a second line its
//! own), `codes`, the vocabularies, and for each split its text in tokens, its references and its ids.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zoo_recipes::DataSpec;

use super::error::PrepareError;
use super::pipeline::{TextPipeline, Treatment};
use super::translation::{
    EncodedText, PrepareOptions, PreparedSplit, PreparedTranslation, SplitReferences, SplitStatistics,
    prepare_with_text,
};
use crate::readers::{SplitText, TRAIN};
use crate::text::bpe::Codes;
use crate::text::vocabulary::{Vocabulary, hexadecimal};

const MANIFEST: &str = "manifest.jsonl";
const CODES: &str = "codes";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    settings: Value,
    splits: BTreeMap<String, SplitStatistics>,
    /// SHA-256 of each file.
    files: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestDigest {
    sha256: String,
}

/// What the prepared ids depend on beside the text itself.
fn settings(data: &DataSpec, options: PrepareOptions) -> Value {
    json!({
        "reader": data.reader,
        "tokenizer": data.tokenizer,
        "filter": data.filter,
        "begin_token_in_source": data.begin_token_in_source,
        "begin_token_in_target": options.begin_token_in_target,
    })
}

/// Loads what lies in `folder`, or reads the text, prepares it and keeps it there. The caller names the folder after
/// everything that the text depends on; the settings are compared.
pub fn prepare_cached<E: From<PrepareError>>(
    folder: &Path,
    data: &DataSpec,
    options: PrepareOptions,
    read: impl FnOnce() -> Result<BTreeMap<String, SplitText>, E>,
) -> Result<PreparedTranslation, E> {
    if !folder.exists() {
        let splits = read()?;
        let (prepared, text) = prepare_with_text(data, &splits, options)?;
        save(&prepared, &text, folder, settings(data, options))?;
        return Ok(prepared);
    }
    Ok(load(folder, data, options)?)
}

/// Name and bytes of the files to write.
struct Files {
    files: Vec<(String, Vec<u8>)>,
}

impl Files {
    fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.push((name.into(), bytes.into()));
    }
}

fn save(
    prepared: &PreparedTranslation,
    text: &EncodedText,
    folder: &Path,
    settings: Value,
) -> Result<(), PrepareError> {
    let pipeline = &prepared.pipeline;
    let mut files = Files { files: Vec::new() };
    if let Some(codes) = &pipeline.codes {
        files.add(CODES, codes.to_text());
    }
    files.add(vocabulary_file(pipeline.joined(), "source"), pipeline.source.to_file_text());
    if !pipeline.joined() {
        files.add(vocabulary_file(false, "target"), pipeline.target.to_file_text());
    }
    let mut statistics = BTreeMap::new();
    for (name, split) in &prepared.splits {
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(valid) {
            return Err(PrepareError::SplitName(name.clone()));
        }
        if let Some((source, target)) = text.get(name) {
            files.add(format!("{name}.source"), lines_text(source));
            files.add(format!("{name}.target"), lines_text(target));
        }
        if let Some(references) = &split.references {
            files.add(format!("{name}.raw"), lines_text(&references.raw));
            files.add(format!("{name}.normalized"), lines_text(&references.normalized));
        }
        files.add(format!("{name}.ids"), super::sequences::to_bytes(split));
        statistics.insert(name.clone(), split.statistics.clone());
    }
    let digests = files.files.iter().map(|(name, bytes)| (name.clone(), hexadecimal(&Sha256::digest(bytes))));
    let manifest = Manifest { format: FORMAT, settings, splits: statistics, files: digests.collect() };
    let first = serde_json::to_string(&manifest).expect("a manifest is plain data");
    let digest = ManifestDigest { sha256: hexadecimal(&Sha256::digest(first.as_bytes())) };
    let second = serde_json::to_string(&digest).expect("a digest is plain data");
    files.add(MANIFEST, format!("{first}\n{second}\n"));
    write_folder(folder, &files)
}

/// Writes the files into a folder beside `folder`, which then takes its name.
fn write_folder(folder: &Path, files: &Files) -> Result<(), PrepareError> {
    let parent = folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(PrepareError::io(parent))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".preparing-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any folder, what the user's mask leaves: the default is for the user alone.
        builder.permissions(std::fs::Permissions::from_mode(0o777));
    }
    let temporary = builder.tempdir_in(parent).map_err(PrepareError::io(parent))?;
    for (name, bytes) in &files.files {
        let file = temporary.path().join(name);
        let written = std::fs::File::create(&file).and_then(|mut open| {
            std::io::Write::write_all(&mut open, bytes)?;
            open.sync_all()
        });
        written.map_err(PrepareError::io(&file))?;
    }
    match std::fs::rename(temporary.path(), folder) {
        Ok(()) => {
            // It has its name now: nothing is left to remove.
            let _ = temporary.keep();
            Ok(())
        }
        // Another process was faster; what it wrote is the same.
        Err(_) if folder.join(MANIFEST).exists() => Ok(()),
        Err(error) => Err(PrepareError::io(folder)(error)),
    }
}

fn vocabulary_file(joined: bool, side: &str) -> String {
    if joined { "vocabulary".into() } else { format!("vocabulary.{side}") }
}

fn lines_text(lines: &[String]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|l| l.len() + 1).sum());
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Loads a prepared folder. Every file is checked against its digest; an error names the one that differs.
pub fn load(
    folder: &Path,
    data: &DataSpec,
    options: PrepareOptions,
) -> Result<PreparedTranslation, PrepareError> {
    let folder = Folder { path: folder };
    let manifest = folder.manifest()?;
    let expected = settings(data, options);
    if manifest.settings != expected {
        let differs = |(key, value): &(&String, &Value)| manifest.settings.get(key.as_str()) != Some(value);
        let what = expected.as_object().into_iter().flatten().find(differs).map_or("keys", |(key, _)| key);
        return Err(PrepareError::OtherSettings { folder: folder.path.into(), what: what.into() });
    }
    // All files, also those that are only there to be looked at.
    let mut files = BTreeMap::new();
    for (name, digest) in &manifest.files {
        files.insert(name.as_str(), folder.read(name, digest)?);
    }
    let mut file = |name: &str| {
        files.remove(name).ok_or_else(|| folder.damaged(MANIFEST, format!("it does not list `{name}`")))
    };
    let codes = match data.tokenizer {
        zoo_recipes::TokenizerSpec::SubwordNmt { .. } => {
            Some(Codes::parse(&folder.text(CODES, file(CODES)?)?, &folder.path.join(CODES))?)
        }
        _ => None,
    };
    let joined = manifest.files.contains_key(&vocabulary_file(true, ""));
    let mut vocabulary = |side| -> Result<Arc<Vocabulary>, PrepareError> {
        let name = vocabulary_file(joined, side);
        let text = folder.text(&name, file(&name)?)?;
        Ok(Arc::new(Vocabulary::parse(&text, &folder.path.join(&name))?))
    };
    let source = vocabulary("source")?;
    let target = if joined { source.clone() } else { vocabulary("target")? };
    let begin = (data.begin_token_in_source, options.begin_token_in_target);
    let pipeline = TextPipeline::new(Treatment::new(data)?, codes, (source, target), begin);

    let mut splits = BTreeMap::new();
    for (name, statistics) in manifest.splits {
        let ids = format!("{name}.ids");
        let rows = (pipeline.source.len() as u32, pipeline.target.len() as u32);
        let (source, target, lines) = super::sequences::from_bytes(&file(&ids)?, rows)
            .map_err(|problem| folder.damaged(&ids, problem))?;
        let references = if name == TRAIN {
            None
        } else {
            let mut lines_of = |kind: &str| -> Result<Vec<String>, PrepareError> {
                let file_name = format!("{name}.{kind}");
                let text = folder.text(&file_name, file(&file_name)?)?;
                Ok(text.split_terminator('\n').map(String::from).collect())
            };
            Some(SplitReferences { raw: lines_of("raw")?, normalized: lines_of("normalized")? })
        };
        let split = PreparedSplit { name: name.clone(), source, target, lines, references, statistics };
        splits.insert(name, Arc::new(split));
    }
    let prepared = PreparedTranslation { pipeline, splits };
    prepared.check_eval_sets(data)?;
    Ok(prepared)
}

struct Folder<'p> {
    path: &'p Path,
}

impl Folder<'_> {
    fn damaged(&self, name: &str, problem: impl Into<String>) -> PrepareError {
        PrepareError::Damaged {
            file: self.path.join(name),
            problem: problem.into(),
            folder: self.path.into(),
        }
    }

    fn read(&self, name: &str, digest: &str) -> Result<Vec<u8>, PrepareError> {
        let file = self.path.join(name);
        let bytes = std::fs::read(&file).map_err(|e| self.damaged(name, e.to_string()))?;
        let found = hexadecimal(&Sha256::digest(&bytes));
        if found != digest {
            let problem = format!("its SHA-256 is {found}, the manifest says {digest}");
            return Err(self.damaged(name, problem));
        }
        Ok(bytes)
    }

    fn text(&self, name: &str, bytes: Vec<u8>) -> Result<String, PrepareError> {
        Ok(crate::readers::parallel_text::decode_utf8(bytes, &self.path.join(name))?)
    }

    fn manifest(&self) -> Result<Manifest, PrepareError> {
        let bytes =
            std::fs::read(self.path.join(MANIFEST)).map_err(|e| self.damaged(MANIFEST, e.to_string()))?;
        let text = self.text(MANIFEST, bytes)?;
        let mut lines = text.split_terminator('\n');
        let (Some(first), Some(second), None) = (lines.next(), lines.next(), lines.next()) else {
            return Err(self.damaged(MANIFEST, "it does not have two lines"));
        };
        let digest: ManifestDigest =
            serde_json::from_str(second).map_err(|e| self.damaged(MANIFEST, format!("line 2: {e}")))?;
        if digest.sha256 != hexadecimal(&Sha256::digest(first.as_bytes())) {
            return Err(self.damaged(MANIFEST, "its first line does not have the SHA-256 of its second"));
        }
        let value: Value =
            serde_json::from_str(first).map_err(|e| self.damaged(MANIFEST, format!("line 1: {e}")))?;
        if value["format"] != json!(FORMAT) {
            let what = format!("format {}, this version reads {FORMAT}", value["format"]);
            return Err(PrepareError::OtherSettings { folder: self.path.into(), what });
        }
        serde_json::from_value(value).map_err(|e| self.damaged(MANIFEST, format!("line 1: {e}")))
    }
}
