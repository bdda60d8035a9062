//! Writes samples as a WAV file: one channel, 16-bit PCM.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use hound::{SampleFormat, WavSpec, WavWriter};
use zoo_recipes::atomic::write_whole;

/// The integer for a sample of 1; the inverse of [`decode`](super::decode::decode).
const SCALE: f32 = 32_768.0;
/// Maximum number of samples that a header can state, with room for the header.
const MOST: usize = (u32::MAX as usize - 64) / 2;

/// Level at which samples are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// Unchanged. Samples beyond full scale are clipped and counted.
    Kept,
    /// Scaled so that the largest magnitude is this value, above 0 and at most 1. Silence stays
    /// silence.
    Peak(f32),
}

/// Statistics of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Number of samples that were beyond full scale.
    pub clipped: usize,
}

/// Why no file was written. An existing file of that name is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The file could not be written.
    #[error("{}: {source}\nhint: check that the folder is there, its permissions and the free space", file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A sample is infinite or not a number.
    #[error("{}: sample {at} is {value}\nhint: the samples come from features that are not finite", file.display())]
    NotFinite {
        /// Path of the file.
        file: PathBuf,
        /// Index of the sample, from 0.
        at: usize,
        /// Value of the sample.
        value: f32,
    },
    /// There are more samples than WAV can hold, the rate is 0 or too large, or the peak is not
    /// valid.
    #[error("{}: {what}\nhint: WAV holds up to 4 GiB, rates of 1 hertz and more, peaks above 0 and up to 1", file.display())]
    Unsupported {
        /// Path of the file.
        file: PathBuf,
        /// The invalid request.
        what: String,
    },
}

/// Writes samples of `rate` hertz, with full scale at 1. The file is written under a temporary name
/// and then renamed.
///
/// # Errors
/// See [`EncodeError`]. Each error names the file.
pub fn write_wav(path: &Path, samples: &[f32], rate: u32, level: Level) -> Result<Written, EncodeError> {
    let unsupported = |what| EncodeError::Unsupported { file: path.to_path_buf(), what };
    if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
        return Err(EncodeError::NotFinite { file: path.to_path_buf(), at, value: samples[at] });
    }
    if samples.len() > MOST || rate == 0 || rate > u32::MAX / 2 {
        return Err(unsupported(format!("{} samples at {rate} Hz", samples.len())));
    }
    let gain = match level {
        Level::Kept => 1.0,
        Level::Peak(peak) if peak > 0.0 && peak <= 1.0 => {
            let largest = samples.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
            // In FP64, because the quotient may exceed FP32's range for the smallest peaks.
            if largest > 0.0 { f64::from(peak) / f64::from(largest) } else { 1.0 }
        }
        Level::Peak(peak) => return Err(unsupported(format!("a peak of {peak}"))),
    };
    let mut clipped = 0;
    let integers = samples.iter().map(|sample| {
        let scaled = (f64::from(*sample) * gain * f64::from(SCALE)).round();
        let kept = scaled.clamp(f64::from(i16::MIN), f64::from(i16::MAX));
        // A peak of 1 is one step beyond the largest integer, which does not count as clipping.
        clipped += usize::from(kept != scaled && level == Level::Kept);
        kept as i16
    });
    let bytes = wav(integers, rate).map_err(|error| match error {
        hound::Error::IoError(source) => EncodeError::Io { file: path.to_path_buf(), source },
        other => unsupported(other.to_string()),
    })?;
    write_whole(path, &bytes).map_err(|source| EncodeError::Io { file: path.to_path_buf(), source })?;
    Ok(Written { clipped })
}

fn wav(integers: impl Iterator<Item = i16>, rate: u32) -> Result<Vec<u8>, hound::Error> {
    let spec =
        WavSpec { channels: 1, sample_rate: rate, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec)?;
    for integer in integers {
        writer.write_sample(integer)?;
    }
    writer.finalize()?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::decode::decode;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wav");
        let samples: Vec<f32> =
            (-32_768_i32..32_768).step_by(7).map(|sample| sample as f32 / SCALE).collect();
        assert_eq!(write_wav(&file, &samples, 22_050, Level::Kept).unwrap(), Written { clipped: 0 });
        let audio = decode(&file, Some(22_050)).unwrap();
        assert_eq!(audio.samples, samples);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn loud_samples_are_cut_and_counted_or_scaled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wav");
        let loud = [0.5, -1.0, 1.0, -3.0, 2.0];
        assert_eq!(write_wav(&file, &loud, 8_000, Level::Kept).unwrap().clipped, 3);
        let most = 32_767.0 / SCALE;
        assert_eq!(decode(&file, None).unwrap().samples, [0.5, -1.0, most, -1.0, most]);
        assert_eq!(write_wav(&file, &loud, 8_000, Level::Peak(0.75)).unwrap().clipped, 0);
        assert_eq!(decode(&file, None).unwrap().samples, [0.125, -0.25, 0.25, -0.75, 0.5]);
        assert_eq!(write_wav(&file, &[1e-45, 3e38], 8_000, Level::Peak(1.0)).unwrap().clipped, 0);
        assert_eq!(decode(&file, None).unwrap().samples, [0.0, most]);
        write_wav(&file, &[0.0; 3], 8_000, Level::Peak(1.0)).unwrap();
    }

    #[test]
    fn errors_name_the_file_and_leave_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wav");
        write_wav(&file, &[0.5], 8_000, Level::Kept).unwrap();
        let before = std::fs::read(&file).unwrap();
        for (samples, rate, level) in [
            ([0.0, f32::NAN], 8_000, Level::Kept),
            ([f32::INFINITY, 0.0], 8_000, Level::Peak(1.0)),
            ([0.0; 2], 0, Level::Kept),
            ([0.0; 2], u32::MAX, Level::Kept),
            ([0.0; 2], 8_000, Level::Peak(0.0)),
            ([0.0; 2], 8_000, Level::Peak(f32::NAN)),
        ] {
            let error = write_wav(&file, &samples, rate, level).unwrap_err().to_string();
            assert!(error.contains("a.wav") && error.contains("hint: "), "{error}");
            assert_eq!(std::fs::read(&file).unwrap(), before);
        }
        let nowhere = file.join("b.wav");
        let error = write_wav(&nowhere, &[0.5], 8_000, Level::Kept).unwrap_err();
        assert!(matches!(&error, EncodeError::Io { .. }) && error.to_string().contains("b.wav"));
    }
}
