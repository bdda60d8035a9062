//! A corpus that the user has already unpacked in a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zoo_recipes::{AudioManifestSpec, RecordingDataSpec, RecordingReaderSpec, TranscriptText};

use super::error::SpeechError;
use super::manifest::add_state;
use super::recordings::find;
use crate::corpora::{CorpusDefinition, FetchedCorpus, FetchedRecordings};
use crate::readers::split_names;

/// The splits of the recipe's corpus in the folder.
pub(super) fn corpus<L>(
    data: &RecordingDataSpec<L>,
    folder: &Path,
    splits: &BTreeSet<String>,
) -> Result<FetchedCorpus, SpeechError> {
    let Some(corpus) = data.corpus.as_deref().filter(|name| !name.is_empty()) else {
        let problem = "a folder holds a corpus, and `data.corpus` does not say which";
        return Err(SpeechError::recipe("reader.folder", problem, "corpus = \"ljspeech\""));
    };
    let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
    Ok(CorpusDefinition::find(corpus)?.in_folder(folder, &splits)?)
}

/// SHA-256 over the name, text, length and modification time of every recording of a split. A
/// different digest means that a recording may have changed.
pub(super) fn state(
    recordings: &FetchedRecordings,
    transcript: Option<TranscriptText>,
) -> Result<String, SpeechError> {
    let mut hash = Sha256::new();
    for candidate in find(recordings, transcript)? {
        for text in [&candidate.audio, &candidate.text] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(&**text);
        }
        let root = recordings.folders.get(candidate.root as usize).map_or(Path::new(""), PathBuf::as_path);
        add_state(&mut hash, &root.join(&*candidate.audio));
    }
    Ok(hex::encode(hash.finalize()))
}

/// Path of the folder that the recipe names instead of fetching its corpus, and a digest over the
/// state of the recordings of all splits that the recipe uses. The recordings themselves are not
/// read.
///
/// # Errors
/// The folder does not hold the corpus.
pub fn stamp<L>(data: &RecordingDataSpec<L>, base: &Path) -> Result<Option<(String, String)>, SpeechError> {
    let RecordingReaderSpec::AudioManifest(AudioManifestSpec { folder: Some(own), transcript, .. }) =
        &data.reader
    else {
        return Ok(None);
    };
    let folder = base.join(own);
    let corpus = corpus(data, &folder, &split_names(data))?;
    let mut hash = Sha256::new();
    for recordings in corpus.splits.values().filter_map(|split| split.recordings.as_ref()) {
        hash.update(state(recordings, *transcript)?);
    }
    Ok(Some((folder.display().to_string(), hex::encode(hash.finalize()))))
}
