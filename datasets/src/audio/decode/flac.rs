//! FLAC files, decoded by symphonia.

use std::io::Cursor;
use std::path::Path;

use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};

use super::{AudioError, AudioHeader};

pub(super) fn header(source: impl MediaSource + 'static, file: &Path) -> Result<AudioHeader, AudioError> {
    Ok(open(source, file)?.1)
}

fn open<'s>(
    source: impl MediaSource + 's,
    file: &Path,
) -> Result<(Box<dyn FormatReader + 's>, AudioHeader), AudioError> {
    let corrupt = |what: &str| AudioError::Corrupt { file: file.to_path_buf(), what: what.to_owned() };
    let stream = MediaSourceStream::new(Box::new(source), Default::default());
    let format = symphonia::default::get_probe()
        .probe(&Hint::new(), stream, Default::default(), Default::default())
        .map_err(|error| failed(error, file))?;
    let track = format.default_track(TrackType::Audio).ok_or_else(|| corrupt("it has no audio"))?;
    let parameters = track
        .codec_params
        .as_ref()
        .and_then(|parameters| parameters.audio())
        .ok_or_else(|| corrupt("its stream is not described"))?;
    let rate = parameters.sample_rate.filter(|rate| *rate > 0).ok_or_else(|| corrupt("it states no rate"))?;
    let channels = parameters.channels.as_ref().map(|channels| channels.count()).filter(|count| *count > 0);
    let channels = channels.ok_or_else(|| corrupt("it states no channels"))?;
    let header = AudioHeader { samples: track.num_frames, rate, channels };
    Ok((format, header))
}

/// Decodes all samples of a mono file. Also returns the value that `accept` returns for the header.
pub(super) fn decode<T>(
    bytes: Vec<u8>,
    file: &Path,
    accept: impl Fn(&AudioHeader) -> Result<T, AudioError>,
) -> Result<(T, Vec<f32>), AudioError> {
    let corrupt = |what: &str| AudioError::Corrupt { file: file.to_path_buf(), what: what.to_owned() };
    let most = bytes.len() * 64;
    let (mut format, header) = open(Cursor::new(bytes), file)?;
    let accepted = accept(&header)?;
    let track = format.default_track(TrackType::Audio).ok_or_else(|| corrupt("it has no audio"))?;
    let id = track.id;
    let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
    let parameters = parameters.ok_or_else(|| corrupt("its stream is not described"))?;
    let mut options = AudioDecoderOptions::default();
    options.verify = true;
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(parameters, &options)
        .map_err(|error| failed(error, file))?;

    // The header may state more samples than there are.
    let mut samples = Vec::with_capacity(header.samples.map_or(0, |stated| stated.min(most as u64) as usize));
    let mut frame = Vec::new();
    let mut broken = None;
    loop {
        let packet = match format.next_packet() {
            Ok(Some(packet)) if packet.track_id == id => packet,
            Ok(Some(_)) => continue,
            Ok(None) => break,
            Err(error) => {
                broken = Some(error);
                break;
            }
        };
        match decoder.decode(&packet) {
            Ok(decoded) => {
                if decoded.spec().channels().count() != 1 {
                    return Err(corrupt("a frame has several channels"));
                }
                decoded.copy_to_vec_interleaved::<f32>(&mut frame);
                samples.extend_from_slice(&frame);
            }
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    let found = samples.len() as u64;
    match header.samples {
        // Either a damaged frame was skipped or the stream ended early. The last error tells which.
        Some(expected) if found < expected => match broken {
            Some(Error::DecodeError(what)) => Err(corrupt(what)),
            _ => Err(AudioError::Truncated { file: file.to_path_buf(), found, expected }),
        },
        Some(expected) if found > expected => {
            Err(corrupt(&format!("it has {found} samples and states {expected}")))
        }
        _ => match (broken, decoder.finalize().verify_ok) {
            (Some(error), _) => Err(failed(error, file)),
            (None, Some(false)) => Err(corrupt("its MD5 is not that of its samples")),
            (None, _) => Ok((accepted, samples)),
        },
    }
}

fn failed(error: Error, file: &Path) -> AudioError {
    let file = file.to_path_buf();
    match error {
        Error::IoError(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            AudioError::Corrupt { file, what: "it ends within its header".to_owned() }
        }
        Error::IoError(source) => AudioError::Io { file, source },
        Error::Unsupported(what) => AudioError::Unsupported { file, what: what.to_owned() },
        other => AudioError::Corrupt { file, what: other.to_string() },
    }
}
