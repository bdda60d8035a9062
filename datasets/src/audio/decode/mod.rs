//! Decodes WAV and FLAC files to samples, or returns a typed error.
//!
//! The format is recognised by the file's first bytes, not by its name. The samples are checked:
//! against the stated length, against the MD5 of a FLAC file, and for numbers that are not finite.

mod error;
mod flac;
mod wav;

use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zoo_recipes::untrusted;

pub use error::{AudioError, Reason};

/// One channel of audio.
#[derive(Debug, Clone, PartialEq)]
pub struct Audio {
    /// Samples in [-1, 1): integers divided by 2^(bits - 1). Float samples are used unchanged and
    /// may be beyond this range.
    pub samples: Vec<f32>,
    /// Sample rate in hertz.
    pub rate: u32,
}

impl Audio {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }
}

/// Contents of a file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioHeader {
    /// Number of samples per channel; `None` if the header does not state it.
    pub samples: Option<u64>,
    /// Sample rate in hertz.
    pub rate: u32,
    /// Number of channels.
    pub channels: usize,
}

impl AudioHeader {
    /// Length in seconds, if known.
    pub fn seconds(&self) -> Option<f64> {
        self.samples.map(|samples| samples as f64 / f64::from(self.rate))
    }
}

/// Number of first bytes that identify a file's format.
const START: usize = 12;

#[derive(Clone, Copy)]
enum Container {
    Wav,
    Flac,
}

/// Decodes a mono file that is not silent. If `rate` is given, the sample rate must be this many
/// hertz.
///
/// # Errors
/// Why the file gives no valid audio.
pub fn decode(file: &Path, rate: Option<u32>) -> Result<Audio, AudioError> {
    let bytes =
        untrusted::read(file).map_err(|source| AudioError::Io { file: file.to_path_buf(), source })?;
    decode_bytes(bytes, file, rate)
}

/// Decodes the contents of a file, like [`decode`]. `file` is used in messages only.
///
/// # Errors
/// Why the bytes give no valid audio.
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

/// Reads only the header: rate, channels and stated length.
///
/// # Errors
/// The file cannot be read, or does not have a WAV or FLAC header.
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
        // Some writers put an ID3 tag before FLAC data. MP3 files also begin with one, and are
        // refused when they are probed.
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
