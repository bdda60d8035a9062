//! Front ends and resamplers against the libraries that they follow
//! (`tests/reference/audio_features.py`, `audio_features_tensorflow.py`,
//! `audio_features_tacotron.py`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_datasets::audio::decode::decode;
use zoo_datasets::audio::resample::{KaiserResampler, SincResampler};
use zoo_datasets::audio::{Features, FrontEnd};
use zoo_recipes::{FeaturesSpec, KaiserBest};

/// Tolerance where the library computes in FP32, relative to each frame's largest magnitude.
/// librosa's own FP32 and FP64 results differ by 1.3e-5 on the recording.
const FEATURES_FP32: f32 = 1e-4;
/// Tolerance where the library computes in FP64. Fixtures, features and the weights of mel filters
/// are stored in FP32.
const FEATURES_FP64: f32 = 3e-7;
/// Tolerance relative to the largest sample. resampy adds up to 128 products in FP32.
const SAMPLES: f32 = 2e-6;

#[derive(Deserialize, Default)]
struct Description {
    features: Vec<FeatureCase>,
    #[serde(default)]
    resampled: Vec<ResampleCase>,
    /// Start and end of the resampled part of the recording.
    #[serde(default)]
    short: [usize; 2],
}

#[derive(Deserialize)]
struct FeatureCase {
    name: String,
    sound: String,
    rate: u32,
    /// Precision of the library's numbers in bits.
    bits: u32,
    spec: FeaturesSpec,
}

#[derive(Deserialize)]
struct ResampleCase {
    name: String,
    by: String,
    from: u32,
    to: u32,
}

#[derive(Default)]
struct Fixture {
    description: Description,
    /// Samples in [-1, 1).
    sounds: BTreeMap<String, Vec<f32>>,
    /// Shapes and values by name.
    made: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::default();
    for file in ["audio_features_tensorflow", "audio_features_tacotron", "audio_features"] {
        add(&mut fixture, &std::fs::read(folder().join(format!("{file}.safetensors"))).unwrap());
    }
    fixture
}

fn add(fixture: &mut Fixture, bytes: &[u8]) {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let described = &metadata.metadata().as_ref().unwrap()["zoo"];
    let Description { features, resampled, short } = serde_json::from_str(described).unwrap();
    fixture.description.features.extend(features);
    fixture.description.resampled.extend(resampled);
    fixture.description.short = short;
    for (name, tensor) in SafeTensors::deserialize(bytes).unwrap().tensors() {
        match tensor.dtype() {
            Dtype::I16 => {
                let samples = tensor.data().chunks_exact(2);
                let samples = samples.map(|two| f32::from(i16::from_le_bytes([two[0], two[1]])) / 32_768.0);
                fixture.sounds.insert(name, samples.collect());
            }
            Dtype::F32 => {
                let values = tensor.data().chunks_exact(4);
                let values = values.map(|four| f32::from_le_bytes(four.try_into().unwrap()));
                fixture.made.insert(name, (tensor.shape().to_vec(), values.collect()));
            }
            other => panic!("{name} is {other:?}"),
        }
    }
}

/// The largest difference, relative to the largest magnitude of its row.
fn worst_of_rows(ours: &[f32], theirs: &[f32], width: usize) -> f32 {
    let row = |(ours, theirs): (&[f32], &[f32])| {
        let largest = theirs.iter().fold(f32::MIN_POSITIVE, |most, one| most.max(one.abs()));
        ours.iter().zip(theirs).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f32::max)
    };
    ours.chunks_exact(width).zip(theirs.chunks_exact(width)).map(row).fold(0.0, f32::max)
}

#[test]
fn features_are_those_of_the_libraries() {
    let Fixture { description, sounds, made } = fixture();
    assert!(description.features.len() >= 23);
    for FeatureCase { name, sound, rate, bits, spec } in &description.features {
        let front_end = FrontEnd::new(spec, *rate).unwrap();
        let Features { values, width } = front_end.features(&sounds[sound], None);
        let (shape, theirs) = &made[name];
        assert_eq!([values.len() / width, width], shape[..], "{name}");
        // The number of trimmed samples depends on the sound.
        let due = front_end.frames(sounds[sound].len());
        assert!(if name.ends_with(".trimmed") { shape[0] < due } else { shape[0] == due }, "{name}");
        let worst = worst_of_rows(&values, theirs, width);
        println!("{name}: {worst:.1e}");
        let limit = if *bits == 64 { FEATURES_FP64 } else { FEATURES_FP32 };
        assert!(worst < limit, "{name}: {worst:e}");
    }
}

#[test]
fn resampled_waveforms_are_those_of_the_libraries() {
    let Fixture { description, sounds, made } = fixture();
    let [start, end] = description.short;
    let short = &sounds["recording"][start..end];
    assert!(description.resampled.len() >= 13);
    for ResampleCase { name, by, from, to } in &description.resampled {
        let ours = match by.as_str() {
            "resampy-0.2" => KaiserResampler::new(KaiserBest::Resampy02, *from, *to).resample(short),
            "resampy-0.4" => KaiserResampler::new(KaiserBest::Resampy04, *from, *to).resample(short),
            "lhotse" => SincResampler::new(*from, *to).resample(short),
            other => panic!("{other}"),
        };
        let theirs = &made[name].1;
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let worst = worst_of_rows(&ours, theirs, ours.len());
        println!("{name}: {worst:.1e}");
        assert!(worst < SAMPLES, "{name}: {worst:e}");
    }
}

#[test]
fn flac_has_the_samples_that_were_written() {
    let audio = decode(&folder().join("speech.flac"), Some(16_000)).unwrap();
    assert_eq!(audio.samples, fixture().sounds["recording"]);
}

#[test]
fn threads_share_a_front_end() {
    let Fixture { description, sounds, .. } = fixture();
    for FeatureCase { name, sound, rate, spec, .. } in &description.features {
        let front_end = FrontEnd::new(spec, *rate).unwrap();
        let alone = front_end.features(&sounds[sound], None);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|_| scope.spawn(|| front_end.features(&sounds[sound], None))).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), alone, "{name}");
            }
        });
    }
}
