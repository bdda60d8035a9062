//! WAV and FLAC files become samples, or a typed reason why not.
//!
//! A file's first bytes say what it is, not its name. Every sample is checked for: a stated length that is not reached, a FLAC
//! whose MD5 is another, numbers that are not finite.

mod error;
mod flac;
mod wav;

use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zoo_recipes::untrusted;

pub use error::{AudioError, Reason};

/// One channel of sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Audio {
    /// Samples in [-1, 1): integers over 2^(bits - 1). Files of floats are taken as they are, also beyond.
    pub samples: Vec<f32>,
    /// Samples a second.
    pub rate: u32,
}

impl Audio {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }
}

/// What a file's header states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioHeader {
    /// Samples of each channel; `None` where the writer did not know.
    pub samples: Option<u64>,
    /// Samples a second.
    pub rate: u32,
    /// Channels.
    pub channels: usize,
}

impl AudioHeader {
    /// Length in seconds, where it is known.
    pub fn seconds(&self) -> Option<f64> {
        self.samples.map(|samples| samples as f64 / f64::from(self.rate))
    }
}

/// Bytes that tell what a file is.
const START: usize = 12;

#[derive(Clone, Copy)]
enum Container {
    Wav,
    Flac,
}

/// Reads a mono file that is not silent, at `rate` hertz if one is given.
///
/// # Errors
/// Why there is no such audio.
pub fn decode(file: &Path, rate: Option<u32>) -> Result<Audio, AudioError> {
    let bytes =
        untrusted::read(file).map_err(|source| AudioError::Io { file: file.to_path_buf(), source })?;
    decode_bytes(bytes, file, rate)
}

/// The same of a file's content; `file` is for messages.
///
/// # Errors
/// Why there is no such audio.
pub fn decode_bytes(bytes: Vec<u8>, file: &Path, rate: Option<u32>) -> Result<Audio, AudioError> {
    let accept = |header: &AudioHeader| match rate {
        _ if header.channels != 1 => {
            Err(AudioError::Channels { file: file.to_path_buf(), found: header.channels })
        }
        Some(expected) if expected != header.rate => {
            Err(AudioError::Rate { file: file.to_path_buf(), found: header.rate, expected })
        }
        _ => Ok(header.rate),
    };
    let (rate, samples) = match container(&bytes[..START.min(bytes.len())], file)? {
        Container::Wav => wav::decode(&bytes, file, accept)?,
        Container::Flac => flac::decode(bytes, file, accept)?,
    };
    if samples.is_empty() {
        return Err(AudioError::Empty { file: file.to_path_buf() });
    }
    if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
        let what = format!("sample {at} is {}", samples[at]);
        return Err(AudioError::Corrupt { file: file.to_path_buf(), what });
    }
    if samples.iter().all(|sample| *sample == 0.0) {
        return Err(AudioError::Silent { file: file.to_path_buf(), samples: samples.len() });
    }
    Ok(Audio { samples, rate })
}

/// Reads no more than the header: rate, channels, and how long the file says it is.
///
/// # Errors
/// The file cannot be read, or has no header of WAV or FLAC.
pub fn header(file: &Path) -> Result<AudioHeader, AudioError> {
    let io = |source| AudioError::Io { file: file.to_path_buf(), source };
    let mut opened = untrusted::open(file).map_err(io)?;
    let mut start = Vec::with_capacity(START);
    opened.by_ref().take(START as u64).read_to_end(&mut start).map_err(io)?;
    let container = container(&start, file)?;
    opened.rewind().map_err(io)?;
    match container {
        Container::Wav => wav::header(BufReader::new(opened), file),
        Container::Flac => flac::header(opened, file),
    }
}

fn container(start: &[u8], file: &Path) -> Result<Container, AudioError> {
    let named = |what: &str| AudioError::Unsupported { file: file.to_path_buf(), what: what.to_owned() };
    match start {
        [] => Err(AudioError::Empty { file: file.to_path_buf() }),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Ok(Container::Wav),
        // Some writers put an ID3 tag before FLAC; MP3 begins with one, too, and is refused when it is probed.
        [b'f', b'L', b'a', b'C', ..] | [b'I', b'D', b'3', ..] => Ok(Container::Flac),
        [b'R', b'I', b'F', b'F', ..] => Err(AudioError::Corrupt {
            file: file.to_path_buf(),
            what: "it begins as RIFF and is no WAVE".to_owned(),
        }),
        [b'O', b'g', b'g', b'S', ..] => Err(named("it is Ogg")),
        [0xff, 0xe0..=0xff, ..] => Err(named("it seems to be MP3")),
        [b'<', ..] => Err(named("it seems to be a web page")),
        _ => Err(named("it is neither WAV nor FLAC")),
    }
}

#[cfg(test)]
mod tests;
