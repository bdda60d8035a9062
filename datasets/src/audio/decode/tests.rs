use std::io::Cursor;
use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;

use super::*;

const FLAC: &[u8] = include_bytes!("../../../../tests/fixtures/speech.flac");

fn wav_of(
    channels: u16,
    bits: u16,
    format: SampleFormat,
    write: impl Fn(&mut WavWriter<&mut Cursor<Vec<u8>>>),
) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let spec = WavSpec { channels, sample_rate: 8_000, bits_per_sample: bits, sample_format: format };
    let mut writer = WavWriter::new(&mut bytes, spec).unwrap();
    write(&mut writer);
    writer.finalize().unwrap();
    bytes.into_inner()
}

fn integers(bits: u16, samples: &[i32]) -> Vec<u8> {
    wav_of(1, bits, SampleFormat::Int, |writer| {
        samples.iter().for_each(|sample| writer.write_sample(*sample).unwrap())
    })
}

fn decoded(bytes: &[u8]) -> Result<Audio, AudioError> {
    decode_bytes(bytes.to_vec(), Path::new("a.wav"), Some(8_000))
}

fn reason(bytes: &[u8]) -> Reason {
    decoded(bytes).unwrap_err().reason()
}

#[test]
fn every_width_has_the_same_scale() {
    for bits in [8, 16, 24, 32] {
        let one = 1_i64 << (bits - 1);
        let samples = [0, one / 2, -one, one - 1, -one / 4].map(|sample| sample as i32);
        let audio = decoded(&integers(bits, &samples)).unwrap();
        // FP32 cannot represent the last of 32 bits: 1 - 2^-31 rounds to 1.
        let largest = if bits == 32 { 1.0 } else { 1.0 - 1.0 / one as f32 };
        assert_eq!(audio, Audio { samples: vec![0.0, 0.5, -1.0, largest, -0.25], rate: 8_000 }, "{bits}");
    }
    let floats = wav_of(1, 32, SampleFormat::Float, |writer| {
        [0.25_f32, -1.5].iter().for_each(|sample| writer.write_sample(*sample).unwrap());
    });
    assert_eq!(decoded(&floats).unwrap().samples, [0.25, -1.5]);
}

#[test]
fn each_reason_is_named_with_its_file() {
    let good = integers(16, &[1, 2, 3, 4]);
    assert_eq!(reason(&integers(16, &[])), Reason::Empty);
    assert_eq!(reason(b""), Reason::Empty);
    assert_eq!(reason(&integers(16, &[0; 100])), Reason::Silent);
    assert_eq!(reason(&good[..good.len() - 3]), Reason::Truncated);
    assert_eq!(reason(&good[..30]), Reason::Corrupt);
    assert_eq!(reason(b"OggS and more"), Reason::Unsupported);
    assert_eq!(reason(b"<html><head>"), Reason::Unsupported);
    assert_eq!(reason(b"RIFFxxxxAVI "), Reason::Corrupt);
    let stereo = wav_of(2, 16, SampleFormat::Int, |writer| {
        (0..4).for_each(|sample| writer.write_sample(sample).unwrap());
    });
    assert_eq!(reason(&stereo), Reason::Channels);
    let infinite = wav_of(1, 32, SampleFormat::Float, |writer| writer.write_sample(f32::INFINITY).unwrap());
    assert_eq!(reason(&infinite), Reason::Corrupt);
    let missing = decode(Path::new("no/such.wav"), None).unwrap_err();
    assert_eq!(missing.reason(), Reason::Unreadable);
    let wrong = decode_bytes(good, Path::new("a/b.wav"), Some(16_000)).unwrap_err();
    assert_eq!(wrong.reason(), Reason::Rate);
    assert!(wrong.to_string().starts_with("a/b.wav: 8000 Hz, expected 16000 Hz\nhint: "), "{wrong}");
}

#[test]
fn a_header_is_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (wav, flac) = (folder.path().join("a"), folder.path().join("b"));
    // The files' names do not show the format, and most of the samples are missing.
    std::fs::write(&wav, &integers(16, &[7; 1000])[..60]).unwrap();
    std::fs::write(&flac, &FLAC[..2000]).unwrap();
    assert_eq!(header(&wav).unwrap(), AudioHeader { samples: Some(1000), rate: 8_000, channels: 1 });
    assert_eq!(header(&flac).unwrap(), AudioHeader { samples: Some(9600), rate: 16_000, channels: 1 });
    assert_eq!(header(&flac).unwrap().seconds(), Some(0.6));
    assert_eq!(decode(&flac, None).unwrap_err().reason(), Reason::Truncated);
}

#[test]
fn flac_with_a_changed_byte_is_never_taken_for_whole() {
    let whole = decode_bytes(FLAC.to_vec(), Path::new("a.flac"), None).unwrap();
    // Change bytes after the stream information and its MD5, in steps that hit all frames.
    for at in (FLAC.len() / 8..FLAC.len()).step_by(97) {
        let mut bytes = FLAC.to_vec();
        bytes[at] ^= 0x10;
        match decode_bytes(bytes, Path::new("a.flac"), None) {
            Ok(audio) => assert_eq!(audio, whole, "byte {at}"),
            Err(error) => {
                assert!(matches!(error.reason(), Reason::Corrupt | Reason::Truncated), "byte {at}: {error}")
            }
        }
    }
}

/// Truncations and changes of a file.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = whole.len();
    // Half of the changes hit the header.
    let place = prop_oneof![0..length.min(64), 0..length];
    (prop::collection::vec((place, any::<u8>()), 0..6), prop_oneof![Just(length), 0..length]).prop_map(
        move |(changes, end)| {
            let mut bytes = whole.clone();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes.truncate(end);
            bytes
        },
    )
}

fn survives(bytes: Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged");
    std::fs::write(&file, &bytes).unwrap();
    let _ = header(&file);
    match decode(&file, None) {
        Ok(audio) => assert!(!audio.samples.is_empty() && audio.rate > 0),
        Err(error) => assert!(error.to_string().starts_with(file.to_str().unwrap()), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn damaged_wav_never_panics(bytes in prop_oneof![
        damaged(integers(16, &[1, -2, 3, -4, 5])), damaged(integers(24, &[1, -2, 3])), damaged(integers(8, &[1, -2, 3])),
    ]) {
        survives(bytes);
    }

    #[test]
    fn damaged_flac_never_panics(bytes in damaged(FLAC.to_vec())) {
        survives(bytes);
    }

    #[test]
    fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0..4_usize) {
        let starts: [&[u8]; 4] = [b"", b"RIFF\x64\0\0\0WAVEfmt ", b"fLaC\0\0\0\x22", b"ID3\x04\0\0\0\0\0\x10"];
        bytes.splice(0..0, starts[start].iter().copied());
        survives(bytes);
    }
}
