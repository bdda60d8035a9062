//! The samples of an utterance: read from one recording, joined from several, or generated.

use std::path::PathBuf;

use super::error::{Skipped, SpeechError};
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

    /// The samples of the utterance `id`, in [-1, 1), or why it cannot be used. `places` are the
    /// numbers of its recordings, or of its tones.
    ///
    /// # Errors
    /// A recording has changed since it was listed.
    pub fn samples(&self, id: &str, places: &[u32]) -> Result<Samples, SpeechError> {
        match self {
            Self::Recordings(recordings) => recordings.samples(id, places),
            Self::Tones(tones) => Ok(Ok(places.first().map_or_else(Vec::new, |index| tones.samples(*index)))),
        }
    }
}

impl Recordings {
    fn path(&self, recording: &Recording) -> PathBuf {
        let root = self.roots.get(recording.root as usize).cloned().unwrap_or_default();
        root.join(&*recording.path)
    }

    /// The samples of the recordings `places`, joined. `id` is the name of their utterance.
    fn samples(&self, id: &str, places: &[u32]) -> Result<Samples, SpeechError> {
        let files = places.iter().filter_map(|place| self.files.get(*place as usize));
        let mut samples = Vec::new();
        for recording in files {
            let file = self.path(recording);
            let audio = match decode(&file, Some(self.rate)) {
                Ok(audio) => audio,
                Err(error) => return Ok(Err(Skipped::of_audio(id, &error))),
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
