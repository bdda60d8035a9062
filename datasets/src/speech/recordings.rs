//! Finds the recordings of a corpus in its folders, with their transcripts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use zoo_recipes::{TranscriptText, untrusted};

use super::error::SpeechError;
use super::listing::Candidate;
use crate::corpora::{FetchedRecordings, NameField, TRANS_TXT, Transcripts};

/// The recordings of a split, folder by folder, sorted by path in each, with one of the transcripts
/// that the corpus has for them.
pub(super) fn find(
    recordings: &FetchedRecordings,
    transcript: Option<TranscriptText>,
) -> Result<Vec<Candidate>, SpeechError> {
    let definition = &recordings.definition;
    if transcript.is_some() && !matches!(definition.transcripts, Transcripts::Metadata { .. }) {
        let problem = "the corpus has one text for each recording";
        return Err(SpeechError::recipe("reader.transcript", problem, "leave it out"));
    }
    let mut found = Vec::new();
    for (root, folder) in (0..).zip(&recordings.folders) {
        let mut files = Files::default();
        files.collect(folder, "", &definition.suffix)?;
        files.audio.sort_unstable();
        let texts = match &definition.transcripts {
            Transcripts::TransTxt => trans_txt(folder, &files.transcripts)?,
            Transcripts::Metadata { file } => {
                metadata(&folder.join(file), transcript.unwrap_or(TranscriptText::Normalized))?
            }
            Transcripts::FileName { .. } => BTreeMap::new(),
        };
        for audio in files.audio {
            let name = audio.rsplit('/').next().unwrap_or_default();
            let id = name.strip_suffix(definition.suffix.as_str()).unwrap_or(name);
            let error = |problem: String| SpeechError::Corpus { file: folder.join(&audio), problem };
            let (text, speaker, number) = match &definition.transcripts {
                Transcripts::FileName { words, fields } => from_name(id, words, fields).map_err(error)?,
                Transcripts::TransTxt | Transcripts::Metadata { .. } => {
                    let text = texts.get(id).ok_or_else(|| error("it has no transcript".into()))?;
                    let named = definition.transcripts == Transcripts::TransTxt;
                    let speaker = id.split_once('-').filter(|_| named).map(|(speaker, _)| speaker.into());
                    (text.clone(), speaker, None)
                }
            };
            let place = found.len() as u64;
            let taken = definition.select.as_ref().is_none_or(|select| select.takes(place, id, number));
            let (id, audio) = (id.into(), audio.into());
            let candidate = Candidate { id, root, audio, text, speaker, line: None };
            found.push(taken.then_some(candidate));
        }
    }
    Ok(found.into_iter().flatten().collect())
}

#[derive(Default)]
struct Files {
    audio: Vec<String>,
    transcripts: Vec<String>,
}

impl Files {
    fn collect(&mut self, folder: &Path, prefix: &str, suffix: &str) -> Result<(), SpeechError> {
        for entry in fs::read_dir(folder).map_err(SpeechError::io(folder))? {
            let entry = entry.map_err(SpeechError::io(folder))?;
            let path = entry.path();
            let not_utf8 =
                |_| SpeechError::Corpus { file: path.clone(), problem: "its name is not UTF-8".into() };
            let name = entry.file_name().into_string().map_err(not_utf8)?;
            let below = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if entry.file_type().map_err(SpeechError::io(&path))?.is_dir() {
                self.collect(&path, &below, suffix)?;
            } else if below.ends_with(suffix) {
                self.audio.push(below);
            } else if below.ends_with(TRANS_TXT) {
                self.transcripts.push(below);
            }
        }
        Ok(())
    }
}

/// Transcripts by the names of their recordings, from `*.trans.txt` files.
fn trans_txt(folder: &Path, files: &[String]) -> Result<BTreeMap<String, Box<str>>, SpeechError> {
    let mut texts = BTreeMap::new();
    for file in files {
        let path = folder.join(file);
        let text = untrusted::read_to_string(&path).map_err(SpeechError::io(&path))?;
        for (number, line) in (1_u64..).zip(text.lines()) {
            let error = |problem: &str| SpeechError::Corpus {
                file: path.clone(),
                problem: format!("line {number}: {problem}"),
            };
            let (id, said) = line.split_once(' ').ok_or_else(|| error("it is not a name and a text"))?;
            if texts.insert(id.to_owned(), said.into()).is_some() {
                return Err(error("another line names the same recording"));
            }
        }
    }
    Ok(texts)
}

/// Transcripts by the names of their recordings, from a table with two texts for each.
fn metadata(path: &Path, transcript: TranscriptText) -> Result<BTreeMap<String, Box<str>>, SpeechError> {
    let table = untrusted::read_to_string(path).map_err(SpeechError::io(path))?;
    let mut texts = BTreeMap::new();
    for (number, line) in (1_u64..).zip(table.lines()) {
        let error = |problem: &str| SpeechError::Corpus {
            file: path.into(),
            problem: format!("line {number}: {problem}"),
        };
        let [id, raw, normalized] = line.split('|').collect::<Vec<_>>()[..] else {
            return Err(error("it is not a name and two texts between `|`"));
        };
        let text = match transcript {
            TranscriptText::Raw => raw,
            TranscriptText::Normalized => normalized,
        };
        if texts.insert(id.to_owned(), text.into()).is_some() {
            return Err(error("another line names the same recording"));
        }
    }
    Ok(texts)
}

type Named = (Box<str>, Option<Box<str>>, Option<u32>);

/// Text, speaker and number from the name of a recording.
fn from_name(id: &str, words: &BTreeMap<String, String>, fields: &[NameField]) -> Result<Named, String> {
    let parts: Vec<&str> = id.split('_').collect();
    if !fields.is_empty() && fields.len() != parts.len() {
        return Err(format!("its name has {} parts, {} are due", parts.len(), fields.len()));
    }
    let (mut said, mut speaker, mut number) = (Vec::new(), None, None);
    for (at, part) in parts.into_iter().enumerate() {
        match fields.get(at).unwrap_or(&NameField::Word) {
            NameField::Word => {
                said.push(
                    words.get(part).ok_or_else(|| format!("{part:?} in its name has no text"))?.as_str(),
                );
            }
            NameField::Speaker => speaker = Some(part.into()),
            NameField::Number => {
                number = Some(part.parse().map_err(|_| format!("{part:?} in its name is not a number"))?);
            }
        }
    }
    Ok((said.join(" ").into(), speaker, number))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Read;

    use super::*;
    use crate::corpora::CorpusDefinition;

    /// A list of LJSpeech depends only on its names.
    #[test]
    fn splits_of_ljspeech_are_the_published_lists() {
        let Some(samples) = std::env::var_os("ZOO_SAMPLES") else {
            println!("skipped: ZOO_SAMPLES is not set");
            return;
        };
        let samples = Path::new(&samples);
        let folder = tempfile::tempdir().unwrap();
        let wavs = folder.path().join("LJSpeech-1.1/wavs");
        fs::create_dir_all(&wavs).unwrap();
        let mut metadata = String::new();
        let packed = fs::File::open(samples.join("LJSpeech-1.1-metadata-all.csv.xz")).unwrap();
        lzma_rust2::XzReader::new(packed, true).read_to_string(&mut metadata).unwrap();
        for line in metadata.lines() {
            let (id, _) = line.split_once('|').unwrap();
            fs::write(wavs.join(format!("{id}.wav")), "").unwrap();
        }
        fs::write(folder.path().join("LJSpeech-1.1/metadata.csv"), &metadata).unwrap();
        let corpus = CorpusDefinition::find("ljspeech").unwrap();
        let names = |split: &str| -> BTreeSet<String> {
            let found = corpus.in_folder(folder.path(), &[split]).unwrap();
            let split = &found.splits[split];
            let found = find(split.recordings.as_ref().unwrap(), None).unwrap();
            assert_eq!(Some(found.len() as u64), split.lines);
            found.into_iter().map(|candidate| candidate.id.into()).collect()
        };
        for (split, list) in [("train", "train"), ("valid", "val"), ("test", "test")] {
            let ids = fs::read_to_string(samples.join(format!("LJSpeech-1.1-nvidia-{list}.ids"))).unwrap();
            let due: BTreeSet<String> = ids.lines().map(|line| line.trim().to_owned()).collect();
            assert!(names(split) == due, "{split} is not the published list");
        }
        let (train, valid, test) = (names("train-own"), names("valid-own"), names("test-own"));
        assert!(valid.is_disjoint(&test) && train.is_disjoint(&valid) && train.is_disjoint(&test));
        assert_eq!(train.len() + valid.len() + test.len(), 13_100);
        let first = names("first-32");
        assert_eq!(first.last().map(String::as_str), Some("LJ001-0032"));
        assert!(names("first-8").is_subset(&first));
    }
}
