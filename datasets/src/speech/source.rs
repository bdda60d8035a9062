//! The samples of an utterance: read from one recording, joined from several, or generated.

use std::path::PathBuf;

use super::error::{Skipped, SpeechError};
use super::prepared::{SpeechSplit, Utterance};
use super::tones::Tones;
use crate::audio::decode::decode;

/// Source of the utterances of a split.
#[derive(Debug)]
pub(super) enum Sounds {
    Recordings(Recordings),
    Tones(Tones),
}

/// Audio files of a split.
#[derive(Debug)]
pub(super) struct Recordings {
    /// Folders to which paths are relative.
    pub roots: Vec<PathBuf>,
    pub files: Vec<Recording>,
    pub rate: u32,
    /// Silence between two joined recordings, in samples.
    pub gap: usize,
    /// Path of the list with their lengths.
    pub listing: PathBuf,
}

/// One audio file.
#[derive(Debug)]
pub(super) struct Recording {
    pub root: u32,
    pub path: Box<str>,
    pub samples: u64,
}

/// Samples, or why the utterance cannot be used.
pub(super) type Samples = Result<Vec<f32>, Skipped>;

impl Sounds {
    /// The file of recording number `place`.
    pub fn file(&self, place: u32) -> Option<PathBuf> {
        let Self::Recordings(recordings) = self else { return None };
        recordings.files.get(place as usize).map(|recording| recordings.path(recording))
    }
}

impl Recordings {
    fn path(&self, recording: &Recording) -> PathBuf {
        let root = self.roots.get(recording.root as usize).cloned().unwrap_or_default();
        root.join(&*recording.path)
    }

    fn samples(&self, utterance: &Utterance) -> Result<Samples, SpeechError> {
        let mut samples = Vec::with_capacity(utterance.samples as usize);
        let files = utterance.parts.places().iter().filter_map(|place| self.files.get(*place as usize));
        for recording in files {
            let file = self.path(recording);
            let audio = match decode(&file, Some(self.rate)) {
                Ok(audio) => audio,
                Err(error) => return Ok(Err(Skipped::of_audio(&utterance.id, &error))),
            };
            let found = audio.samples.len() as u64;
            if found != recording.samples {
                let (listed, listing) = (recording.samples, self.listing.clone());
                return Err(SpeechError::Changed { file, found, listed, listing });
            }
            if samples.is_empty() {
                samples = audio.samples;
            } else {
                samples.resize(samples.len() + self.gap, 0.0);
                samples.extend(audio.samples);
            }
        }
        Ok(Ok(samples))
    }
}

impl SpeechSplit {
    /// The samples of an utterance of this split, in [-1, 1), or why it cannot be used.
    ///
    /// # Errors
    /// A recording has changed since it was listed.
    pub(super) fn samples(&self, utterance: &Utterance) -> Result<Samples, SpeechError> {
        match &self.sounds {
            Sounds::Recordings(recordings) => recordings.samples(utterance),
            Sounds::Tones(tones) => {
                Ok(Ok(utterance.parts.places().first().map_or_else(Vec::new, |index| tones.samples(*index))))
            }
        }
    }
}
