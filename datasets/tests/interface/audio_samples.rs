//! Real recordings. Needs `ZOO_SAMPLES`, a folder with `librispeech_hubert.tar.xz`,
//! `speechbrain.tar.xz` and `LJSpeech-1.1-first32.tar.bz2`; without it the test prints that it was
//! skipped.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use zoo_datasets::audio::decode::{Reason, decode, header};

fn unpack(archive: impl Read, folder: &Path) {
    tar::Archive::new(archive).unpack(folder).unwrap();
}

#[test]
fn recordings_are_read_and_their_headers_are_right() {
    let Some(samples) = std::env::var_os("ZOO_SAMPLES") else {
        eprintln!("skipped: ZOO_SAMPLES is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| BufReader::new(File::open(Path::new(&samples).join(name)).unwrap());
    unpack(lzma_rust2::XzReader::new(open("librispeech_hubert.tar.xz"), false), folder.path());
    unpack(lzma_rust2::XzReader::new(open("speechbrain.tar.xz"), false), folder.path());
    unpack(bzip2::read::BzDecoder::new(open("LJSpeech-1.1-first32.tar.bz2")), folder.path());

    let flac = folder.path().join("librispeech_hubert/6313-76958-0021.flac");
    let audio = decode(&flac, Some(16_000)).unwrap();
    assert_eq!(header(&flac).unwrap().samples, Some(audio.samples.len() as u64));
    // Expected values from libsndfile: the number of samples, and the sum of the magnitudes of the
    // 16-bit integers.
    let magnitudes: u64 = audio.samples.iter().map(|sample| (sample.abs() * 32_768.0) as u64).sum();
    assert_eq!((audio.samples.len(), magnitudes), (190_800, 113_103_077));
    assert_eq!(decode(&flac, Some(8_000)).unwrap_err().reason(), Reason::Rate);

    let mut seconds = 0.0;
    for row in std::fs::read_to_string(folder.path().join("LJSpeech-1.1/metadata.csv")).unwrap().lines() {
        let file = folder.path().join(format!("LJSpeech-1.1/wavs/{}.wav", row.split('|').next().unwrap()));
        let audio = decode(&file, Some(22_050)).unwrap();
        assert_eq!(header(&file).unwrap().samples, Some(audio.samples.len() as u64));
        seconds += audio.seconds();
    }
    assert!((seconds - 221.7).abs() < 0.05, "{seconds}");

    let table = std::fs::read_to_string(folder.path().join("speechbrain/transcripts.tsv")).unwrap();
    assert_eq!(table.lines().count(), 11);
    for row in table.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let audio =
            decode(&folder.path().join(format!("speechbrain/{}.wav", columns[0])), Some(16_000)).unwrap();
        assert!((audio.seconds() - columns[3].parse::<f64>().unwrap()).abs() < 0.011, "{row}");
    }
}
