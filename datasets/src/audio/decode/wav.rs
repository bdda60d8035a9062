//! WAV files: PCM of 8, 16, 24 and 32 bits, floats of 32 bits.

use std::io::{Cursor, Read};
use std::path::Path;

use hound::{Error, SampleFormat, WavReader};

use super::{AudioError, AudioHeader};

pub(super) fn header(reader: impl Read, file: &Path) -> Result<AudioHeader, AudioError> {
    Ok(open(reader, file)?.1)
}

fn open<R: Read>(reader: R, file: &Path) -> Result<(WavReader<R>, AudioHeader), AudioError> {
    let reader = WavReader::new(reader).map_err(|error| failed(error, file))?;
    let spec = reader.spec();
    check(&spec, file)?;
    let header = AudioHeader {
        samples: Some(u64::from(reader.duration())),
        rate: spec.sample_rate,
        channels: usize::from(spec.channels),
    };
    Ok((reader, header))
}

/// Decodes all samples, with the channels interleaved. Also returns the value that `accept` returns
/// for the header.
pub(super) fn decode<T>(
    bytes: &[u8],
    file: &Path,
    accept: impl Fn(&AudioHeader) -> Result<T, AudioError>,
) -> Result<(T, Vec<f32>), AudioError> {
    let (mut reader, header) = open(Cursor::new(bytes), file)?;
    let accepted = accept(&header)?;
    let spec = reader.spec();
    let expected = reader.len() as usize;
    // The header may state more samples than there are.
    let mut samples = Vec::with_capacity(expected.min(bytes.len()));
    let mut broken = None;
    match spec.sample_format {
        SampleFormat::Int => {
            let scale = 1.0 / (1_u64 << (spec.bits_per_sample - 1)) as f32;
            for sample in reader.samples::<i32>() {
                match sample {
                    Ok(sample) => samples.push(sample as f32 * scale),
                    Err(error) => {
                        broken = Some(error);
                        break;
                    }
                }
            }
        }
        SampleFormat::Float => {
            for sample in reader.samples::<f32>() {
                match sample {
                    Ok(sample) => samples.push(sample),
                    Err(error) => {
                        broken = Some(error);
                        break;
                    }
                }
            }
        }
    }
    let truncated = || AudioError::Truncated {
        file: file.to_path_buf(),
        found: samples.len() as u64 / u64::from(spec.channels),
        expected: expected as u64 / u64::from(spec.channels),
    };
    match broken {
        // hound reports the end of the file as a failed read.
        Some(Error::IoError(_)) => Err(truncated()),
        Some(error) => Err(failed(error, file)),
        None if samples.len() < expected => Err(truncated()),
        None => Ok((accepted, samples)),
    }
}

fn check(spec: &hound::WavSpec, file: &Path) -> Result<(), AudioError> {
    let corrupt = |what: &str| AudioError::Corrupt { file: file.to_path_buf(), what: what.to_owned() };
    if spec.sample_rate == 0 {
        return Err(corrupt("its sample rate is 0"));
    }
    match (spec.sample_format, spec.bits_per_sample) {
        (SampleFormat::Int, 8 | 16 | 24 | 32) | (SampleFormat::Float, 32) => Ok(()),
        (format, bits) => Err(AudioError::Unsupported {
            file: file.to_path_buf(),
            what: format!("WAV of {bits} bits ({format:?})"),
        }),
    }
}

fn failed(error: Error, file: &Path) -> AudioError {
    let file = file.to_path_buf();
    match error {
        Error::IoError(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            AudioError::Corrupt { file, what: "it ends within its header".to_owned() }
        }
        // hound's error for a file that ends within its header.
        Error::IoError(source) if source.kind() == std::io::ErrorKind::Other => {
            AudioError::Corrupt { file, what: source.to_string() }
        }
        Error::IoError(source) => AudioError::Io { file, source },
        Error::Unsupported => AudioError::Unsupported { file, what: "WAV that is not PCM".to_owned() },
        other => AudioError::Corrupt { file, what: other.to_string() },
    }
}
