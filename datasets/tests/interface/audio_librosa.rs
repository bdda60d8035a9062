//! Mel scales, mel filters and transforms against librosa's test data. Needs `ZOO_PARITY`, a folder
//! with `librosa/librosa_fixtures.tar.xz`; without it the tests print that they were skipped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use serde::Deserialize;
use zoo_datasets::audio::mel::{MelFilters, hertz, mel};
use zoo_datasets::audio::stft::Stft;
use zoo_recipes::{MelScale, MelSpec, WindowFunction};

type Files = BTreeMap<String, Vec<u8>>;

fn files() -> Option<Files> {
    let Some(parity) = std::env::var_os("ZOO_PARITY") else {
        eprintln!("skipped: ZOO_PARITY is not set");
        return None;
    };
    let packed = File::open(Path::new(&parity).join("librosa/librosa_fixtures.tar.xz")).unwrap();
    let mut archive = tar::Archive::new(lzma_rust2::XzReader::new(BufReader::new(packed), false));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().map(|name| name.to_string_lossy().into_owned());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.extend(name.map(|name| (name, bytes)));
    }
    Some(files)
}

/// The numbers after the header of a numpy file of version 1, with `size` bytes each.
fn numbers<'f>(files: &'f Files, name: &str, size: usize) -> impl Iterator<Item = &'f [u8]> {
    let bytes = &files[name];
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].chunks_exact(size)
}

/// The rows of a table after its first line, split into columns.
fn rows(files: &Files, name: &str) -> Vec<Vec<String>> {
    let text = String::from_utf8(files[name].clone()).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn scale(htk: bool) -> MelScale {
    if htk { MelScale::Htk } else { MelScale::Slaney }
}

#[test]
fn mels_and_hertz_are_those_of_the_tables() {
    #[derive(Deserialize)]
    struct Table {
        htk: bool,
        r#in: Vec<f64>,
        out: Vec<f64>,
    }
    let Some(files) = files() else { return };
    let tables: BTreeMap<String, Table> = serde_json::from_slice(&files["hz_mel.json"]).unwrap();
    assert_eq!(tables.len(), 8);
    for (name, Table { htk, r#in, out }) in tables {
        let made = r#in.iter().map(|x| match name.starts_with("hz_to_mel") {
            true => mel(scale(htk), *x),
            false => hertz(scale(htk), *x),
        });
        for (ours, theirs) in made.zip(out) {
            // The tables have about ten digits.
            assert!((ours - theirs).abs() < 1e-8 * theirs.abs(), "{name}: {ours} {theirs}");
        }
    }
}

#[test]
fn mel_filters_are_those_of_the_tables() {
    let Some(files) = files() else { return };
    let rows = rows(&files, "melfb.tsv");
    assert_eq!(rows.len(), 145);
    for row in rows {
        let number = |at: usize| row[at].parse::<f64>().unwrap();
        let spec = MelSpec {
            scale: scale(row[7] == "1"),
            area_normalized: row[1] == "mel_filterbank_slaney_norm",
            low_hz: number(5),
            high_hz: Some(number(6)),
        };
        let ours =
            MelFilters::triangular(number(2) as u32, number(3) as usize, number(4) as usize, &spec).dense();
        let theirs: Vec<f64> =
            numbers(&files, &row[0], 8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(ours.len(), theirs.len(), "{}", row[0]);
        let largest = theirs.iter().fold(0.0_f64, |most, one| most.max(*one));
        let worst =
            ours.iter().zip(theirs).map(|(a, b)| (f64::from(*a) - b).abs() / largest).fold(0.0, f64::max);
        // Weights are stored in FP32.
        assert!(worst < 1e-7, "{}: {worst:e}", row[0]);
    }
}

#[test]
fn transforms_are_those_of_the_tables() {
    let Some(files) = files() else { return };
    let wav = hound::WavReader::new(Cursor::new(&files["test1_22050.wav"])).unwrap();
    let samples: Vec<i32> = wav.into_samples::<i16>().map(|sample| i32::from(sample.unwrap())).collect();
    let mono: Vec<f32> = samples.chunks_exact(2).map(|two| (two[0] + two[1]) as f32 / 65_536.0).collect();
    let rows = rows(&files, "stft.tsv");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let number = |at: usize| row[at].parse::<usize>().unwrap();
        let window = if number(5) == 0 { WindowFunction::Rectangular } else { WindowFunction::HannPeriodic };
        let stft = Stft::new(number(3), number(4), window, number(3), None);
        let (bins, ours) = (stft.bins(), stft.complex(&mono));
        // [bins, frames], the complex conjugate of the result of today's numpy.
        let theirs: Vec<[f32; 2]> = numbers(&files, &row[0], 8)
            .map(|two| {
                [
                    f32::from_le_bytes(two[..4].try_into().unwrap()),
                    -f32::from_le_bytes(two[4..].try_into().unwrap()),
                ]
            })
            .collect();
        assert_eq!(ours.len(), theirs.len(), "{}", row[0]);
        let frames = ours.len() / bins;
        let largest = theirs.iter().flatten().fold(0.0_f32, |most, one| most.max(one.abs()));
        for (at, theirs) in theirs.iter().enumerate() {
            let ours = ours[at % frames * bins + at / frames];
            let apart = (ours.re - theirs[0]).abs().max((ours.im - theirs[1]).abs());
            assert!(apart < 1e-6 * largest, "{} at {at}: {ours} {theirs:?}", row[0]);
        }
    }
}
