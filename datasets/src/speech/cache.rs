//! Cache of the frames that a synthesiser learns to predict, reused in later epochs: one file per
//! recording, verified when it is read.
//!
//! A file's name is a digest of everything that its frames depend on: the front end, the version of
//! this code, and the recording's path, length, modification time and samples. Damaged frames are
//! computed again. The cache does not change any batch.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use zoo_recipes::FeaturesSpec;
use zoo_recipes::atomic::file_in;
use zoo_recipes::untrusted;

use super::error::SpeechError;
use super::manifest::add_state;
use crate::audio::Features;
use crate::temporary::remove_dead;

/// Version of the computation. Increase it when frames change.
const VERSION: u32 = 2;

/// Maximum size of the cache in bytes; frames beyond it are not stored. LJSpeech takes 18 GB with
/// 593 features per frame, and 2.4 GB with 80.
const MOST: u64 = 20 << 30;

/// Magic at the start of a file. 4 bytes of width and 32 bytes of SHA-256 over the rest follow.
const MAGIC: &[u8; 8] = b"zooframe";
const HEAD: usize = 8 + 4 + 32;

/// A folder of cached frames.
#[derive(Debug)]
pub(super) struct FrameCache {
    folder: PathBuf,
    /// Digest of the front end.
    front_end: String,
    width: usize,
    bytes: AtomicU64,
    most: u64,
}

impl FrameCache {
    /// A cache for this front end. `folder` may hold frames of other front ends, and does not need
    /// to exist.
    pub fn new(folder: &Path, features: &FeaturesSpec, rate: u32) -> Self {
        Self::bounded(folder, features, rate, MOST)
    }

    fn bounded(folder: &Path, features: &FeaturesSpec, rate: u32, most: u64) -> Self {
        let described = serde_json::json!({"version": VERSION, "features": features, "rate": rate});
        Self {
            folder: folder.to_path_buf(),
            front_end: hex::encode(Sha256::digest(described.to_string())),
            width: features.features() as usize,
            bytes: AtomicU64::new(size(folder)),
            most,
        }
    }

    /// Path of a recording's frames.
    pub fn place(&self, recording: &Path, samples: u64) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(&self.front_end);
        hash.update(recording.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(samples.to_le_bytes());
        add_state(&mut hash, recording);
        let name = hex::encode(hash.finalize());
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// Reads the frames at a path, if they exist and are undamaged.
    pub fn read(&self, place: &Path) -> Option<Features> {
        let bytes = fs::read(place).ok()?;
        let (width, values) = whole(&bytes)?;
        let fits = width as usize == self.width && values.len().is_multiple_of(4 * self.width.max(1));
        let (values, _) = values.as_chunks::<4>();
        fits.then(|| Features {
            values: values.iter().map(|four| f32::from_le_bytes(*four)).collect(),
            width: self.width,
        })
    }

    /// Stores frames, if there is room. A failure to write is not an error: the frames are computed
    /// again later.
    pub fn write(&self, place: &Path, features: &Features) {
        let bytes: Vec<u8> = features.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let all = (HEAD + bytes.len()) as u64;
        if self.bytes.fetch_add(all, Ordering::Relaxed).saturating_add(all) > self.most {
            self.bytes.fetch_sub(all, Ordering::Relaxed);
            return;
        }
        let written = || -> std::io::Result<()> {
            let folder = place.parent().unwrap_or(&self.folder);
            fs::create_dir_all(folder)?;
            let mut file = file_in(folder)?;
            file.write_all(MAGIC)?;
            file.write_all(&(self.width as u32).to_le_bytes())?;
            file.write_all(&Sha256::digest(&bytes))?;
            file.write_all(&bytes)?;
            // Not synced to disk: an incomplete file does not match its digest.
            file.persist(place).map_err(|e| e.error)?;
            Ok(())
        };
        if written().is_err() {
            self.bytes.fetch_sub(all, Ordering::Relaxed);
        }
    }
}

/// Width and values in the bytes of a file; `None` if they do not match their digest.
fn whole(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, values) = bytes.split_at_checked(HEAD)?;
    let rest = head.strip_prefix(MAGIC)?;
    let (width, digest) = rest.split_first_chunk::<4>()?;
    (*digest == Sha256::digest(values)[..]).then(|| (u32::from_le_bytes(*width), values))
}

/// Compares a file of cached frames with the digest in it.
///
/// # Errors
/// [`SpeechError::Damaged`], or the file cannot be read.
pub fn check_frames(file: &Path) -> Result<(), SpeechError> {
    let bytes = untrusted::read(file).map_err(SpeechError::io(file))?;
    let damaged =
        || SpeechError::Damaged { file: file.into(), problem: "it does not match its digest".into() };
    whole(&bytes).map(|_| ()).ok_or_else(damaged)
}

/// Total bytes of the files in a folder and its subfolders, after the remains of dead processes are
/// removed.
fn size(folder: &Path) -> u64 {
    remove_dead(folder);
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(folder: &Path, features: &str, most: u64) -> FrameCache {
        let features = serde_json::from_str(&format!("{{\"kind\": \"tacotron\", {features}}}")).unwrap();
        FrameCache::bounded(folder, &features, 22_050, most)
    }

    fn frames() -> Features {
        Features { values: vec![1.5, -0.0, f32::MIN_POSITIVE, 4.0], width: 2 }
    }

    #[test]
    fn frames_come_back_bit_for_bit_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("a.wav");
        fs::write(&recording, "sound").unwrap();
        let cache = cache(&folder.path().join("frames"), "\"filters\": 2", 1 << 20);
        let place = cache.place(&recording, 5);
        assert_eq!(cache.read(&place), None);
        cache.write(&place, &frames());
        let read = cache.read(&place).unwrap();
        let bits = |features: &Features| features.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!((bits(&read), read.width), (bits(&frames()), 2));
        let whole = fs::read(&place).unwrap();
        for at in [0, 9, 20, HEAD, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&place, damaged).unwrap();
            assert_eq!(cache.read(&place), None, "{at}");
        }
        for length in [0, 8, HEAD - 1, whole.len() - 4] {
            fs::write(&place, &whole[..length]).unwrap();
            assert_eq!(cache.read(&place), None, "{length}");
        }
    }

    #[test]
    fn a_place_depends_on_everything_that_frames_depend_on() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("a.wav");
        fs::write(&recording, "sound").unwrap();
        let one = cache(folder.path(), "\"filters\": 2", 0);
        let mut places = vec![
            one.place(&recording, 5),
            one.place(&recording, 6),
            one.place(&folder.path().join("b.wav"), 5),
            cache(folder.path(), "\"filters\": 2, \"floor\": 1e-2", 0).place(&recording, 5),
        ];
        let file = fs::File::options().write(true).open(&recording).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        places.push(one.place(&recording, 5));
        fs::write(&recording, "other sound").unwrap();
        places.push(one.place(&recording, 5));
        let distinct: std::collections::BTreeSet<_> = places.iter().collect();
        assert_eq!(distinct.len(), places.len());
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let frames_take = (HEAD + 16) as u64;
        let full = cache(folder.path(), "\"filters\": 2", 2 * frames_take + 1);
        let places: Vec<PathBuf> = (0..3).map(|at| full.place(Path::new("a.wav"), at)).collect();
        places.iter().for_each(|place| full.write(place, &frames()));
        assert_eq!(
            places.iter().map(|place| full.read(place).is_some()).collect::<Vec<_>>(),
            [true, true, false]
        );
        // Existing files count towards the limit.
        let again = cache(folder.path(), "\"filters\": 2", 2 * frames_take + 1);
        again.write(&places[2], &frames());
        assert!(again.read(&places[2]).is_none());
    }
}
