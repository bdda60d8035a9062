//! Inverse transforms, Griffin-Lim, inverse mels and trimming against librosa
//! (`tests/reference/griffin_lim.py`). The test with recordings needs `ZOO_SAMPLES`, a folder with
//! `LJSpeech-1.1-first32.tar.bz2`; without it that test prints that it was skipped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use realfft::num_complex::Complex;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_datasets::audio::decode::decode;
use zoo_datasets::audio::encode::{Level, write_wav};
use zoo_datasets::audio::mel::MelFilters;
use zoo_datasets::audio::stft::Stft;
use zoo_datasets::audio::synthesis::{
    GriffinLim, GriffinLimSpec, InverseStft, MelInverse, MelMethod, Start, Vocoder, VocoderSpec,
};
use zoo_datasets::audio::trim::{Nonsilent, Trim};
use zoo_recipes::{MelSpec, Padding, WindowFunction};

/// Tolerance relative to the largest sample. Both sides compute in FP64, with inputs and results
/// stored in FP32. At the first samples of frames that are not centred, the window is close to 0.
const INVERSE: f32 = 1e-6;
/// Tolerance as a multiple of the difference between librosa's own FP32 and FP64 results, which
/// counts as at least `ROUNDING`. Each iteration amplifies the rounding of FP32, most where a bin
/// is close to 0 and its phase is nearly arbitrary. The rounding here differs from librosa's, and
/// between processors. Measured: up to 4.3 times. A wrong momentum, window or edge gives a
/// difference of 1e-3 or more.
const OWN: f32 = 10.0;
const ROUNDING: f32 = 1e-5;
/// Tolerance relative to the largest value: FP64 on both sides, stored in FP32.
const FP64: f32 = 3e-7;
/// Maximum ratio of a result's error to librosa's.
const WORSE: f64 = 1.02;
/// Maximum relative difference between the means of random starts. Single starts differ by up to a
/// fifth; a mean is over twelve.
const RANDOM: f64 = 0.1;

#[derive(Deserialize)]
struct Description {
    rate: u32,
    mels: BTreeMap<String, MelSpec>,
    istft: Vec<InverseCase>,
    phases: Vec<PhaseCase>,
    features: FeatureCase,
    inverses: Vec<MelCase>,
    trims: Vec<TrimCase>,
    nonsilent: Vec<NonsilentCase>,
    clips: Vec<Clip>,
}

#[derive(Deserialize)]
struct InverseCase {
    name: String,
    n_fft: usize,
    hop: usize,
    window: WindowFunction,
    window_length: usize,
    centred: bool,
    length: Option<usize>,
}

#[derive(Deserialize)]
struct PhaseCase {
    name: String,
    padding: Padding,
    n_fft: usize,
    hop: usize,
    momentum: f64,
    iterations: u32,
    /// Difference between librosa's FP32 and FP64 results, relative to the largest sample.
    own: f32,
}

#[derive(Deserialize)]
struct FeatureCase {
    /// Frames whose magnitudes are stored.
    frames: Vec<usize>,
    floor: f64,
}

#[derive(Deserialize)]
struct MelCase {
    name: String,
    filters: String,
    power: f64,
    residual: f64,
}

#[derive(Deserialize)]
struct TrimCase {
    #[serde(default = "frame_length")]
    frame_length: usize,
    #[serde(default = "hop")]
    hop: usize,
    top_db: f64,
    interval: [usize; 2],
}

/// Frame length for clips.
fn frame_length() -> usize {
    512
}

fn hop() -> usize {
    128
}

#[derive(Deserialize)]
struct NonsilentCase {
    window: usize,
    below_db: f64,
    interval: [usize; 2],
}

#[derive(Deserialize)]
struct Clip {
    name: String,
    reached: Vec<Reached>,
    trims: Vec<TrimCase>,
    mel_residuals: BTreeMap<String, f64>,
}

/// Norm of the difference between the magnitudes after 32 iterations and the expected ones,
/// relative to the norm of the expected ones.
#[derive(Deserialize)]
struct Reached {
    momentum: f64,
    zero: f64,
    /// Mean of three random starts.
    random: f64,
}

struct Fixture {
    description: Description,
    tensors: BTreeMap<String, Vec<f32>>,
    sound: Vec<f32>,
}

fn fixture() -> Fixture {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let bytes = std::fs::read(folder.join("griffin_lim.safetensors")).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let description = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["zoo"]).unwrap();
    let values = |data: &[u8], dtype| -> Vec<f32> {
        match dtype {
            Dtype::F32 => {
                data.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
            }
            Dtype::I64 => data
                .chunks_exact(8)
                .map(|eight| i64::from_le_bytes(eight.try_into().unwrap()) as f32)
                .collect(),
            other => panic!("{other:?}"),
        }
    };
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = tensors
        .tensors()
        .into_iter()
        .map(|(name, tensor)| (name, values(tensor.data(), tensor.dtype())))
        .collect();
    Fixture { description, tensors, sound: decode(&folder.join("speech.flac"), None).unwrap().samples }
}

/// The largest difference, relative to the largest magnitude.
fn worst(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.iter().all(|value| value.is_finite()));
    let largest = theirs.iter().fold(f32::MIN_POSITIVE, |most, one| most.max(one.abs()));
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f32::max)
}

/// Norm of the difference, relative to the norm of the expected values.
fn distance(due: &[f32], made: &[f32]) -> f64 {
    assert_eq!(due.len(), made.len());
    let squares = due.iter().zip(made).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>();
    (squares / due.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>()).sqrt()
}

#[test]
fn spectra_that_no_sound_has_are_turned_back_as_by_librosa() {
    let Fixture { description, tensors, .. } = fixture();
    assert!(description.istft.len() >= 7);
    for InverseCase { name, n_fft, hop, window, window_length, centred, length } in description.istft {
        let inverse = InverseStft::new(n_fft, hop, window, window_length, centred);
        // [frames, bins, 2]
        let spectra: Vec<Complex<f32>> = tensors[&format!("istft.{name}.spectra")]
            .chunks_exact(2)
            .map(|two| Complex::new(two[0], two[1]))
            .collect();
        let made = inverse.inverse(&spectra, length).unwrap();
        let worst = worst(&made, &tensors[&format!("istft.{name}.samples")]);
        println!("{name}: {worst:.1e}");
        assert!(worst < INVERSE, "{name}: {worst:e}");
    }
}

#[test]
fn phases_are_those_of_librosa() {
    let Fixture { description, tensors, .. } = fixture();
    assert!(description.phases.len() >= 8);
    for PhaseCase { name, padding, n_fft, hop, momentum, iterations, own } in description.phases {
        let spec = GriffinLimSpec { hop, padding, momentum, iterations, ..GriffinLimSpec::librosa(n_fft) };
        let padding = if padding == Padding::Zeros { "zeros" } else { "reflect" };
        let magnitudes = &tensors[&format!("phases.{padding}.magnitudes")];
        let theirs = &tensors[&name];
        let made =
            GriffinLim::new(&spec).unwrap().samples(magnitudes, Start::Zero, Some(theirs.len())).unwrap();
        let worst = worst(&made, theirs);
        println!("{name}: {worst:.1e}, librosa's own {own:.1e}");
        assert!(worst < (OWN * own).max(ROUNDING), "{name}: {worst:e}");
    }
}

#[test]
fn features_of_both_tacotrons_are_those_of_librosa() {
    let Fixture { description, tensors, sound } = fixture();
    let stft = Stft::new(1024, 256, WindowFunction::HannPeriodic, 1024, Some(Padding::Reflect));
    let magnitudes = stft.magnitudes(&sound);
    let FeatureCase { frames, floor } = description.features;
    let kept: Vec<f32> =
        frames.iter().flat_map(|frame| magnitudes[frame * 513..(frame + 1) * 513].to_vec()).collect();
    assert!(worst(&kept, &tensors["features.magnitudes"]) < FP64);
    assert_eq!(description.mels.len(), 2);
    for (name, spec) in &description.mels {
        let filters = MelFilters::triangular(description.rate, 1024, 80, spec);
        let mut dense = vec![0.0; 80 * 513];
        for (place, weight) in tensors[&format!("filters.{name}.places")]
            .iter()
            .zip(&tensors[&format!("filters.{name}.weights")])
        {
            dense[*place as usize] = *weight;
        }
        assert!(worst(&filters.dense(), &dense) < FP64, "{name}");
        let mut logarithms = Vec::new();
        for frame in magnitudes.chunks_exact(513) {
            let spectrum: Vec<[f64; 1]> = frame.iter().map(|magnitude| [f64::from(*magnitude)]).collect();
            let mut mels = vec![[0.0]; 80];
            filters.apply(&spectrum, &mut mels);
            logarithms.extend(mels.iter().map(|[mel]| mel.max(floor).ln() as f32));
        }
        let apart = logarithms.iter().zip(&tensors[&format!("features.{name}")]).map(|(a, b)| (a - b).abs());
        // Natural logarithms of up to 12: two roundings to FP32 give 1e-6.
        let apart = apart.fold(0.0, f32::max);
        println!("{name}: {apart:.1e}");
        assert!(apart < 2e-6, "{name}: {apart:e}");
    }
}

/// Norm of the difference between the mels of magnitudes and the expected mels, relative to the
/// norm of the expected ones.
fn residual(filters: &MelFilters, magnitudes: &[f32], power: f64, mels: &[f32]) -> f64 {
    let of = |frame: &[f32]| {
        let spectrum: Vec<[f64; 1]> =
            frame.iter().map(|magnitude| [f64::from(*magnitude).powf(power)]).collect();
        let mut made = vec![[0.0]; filters.len()];
        filters.apply(&spectrum, &mut made);
        made.into_iter().map(|[mel]| mel as f32).collect::<Vec<f32>>()
    };
    distance(mels, &magnitudes.chunks_exact(filters.bins()).flat_map(of).collect::<Vec<f32>>())
}

#[test]
fn mels_are_turned_back_no_worse_than_by_librosa() {
    let Fixture { description, tensors, .. } = fixture();
    assert!(description.inverses.len() >= 8);
    for MelCase { name, filters, power, residual: theirs } in description.inverses {
        let filters = MelFilters::triangular(description.rate, 1024, 80, &description.mels[&filters]);
        let mels = &tensors[&name];
        let inverse = |method| MelInverse::new(filters.clone(), method, power).unwrap();
        let made = inverse(MelMethod::LeastSquares).magnitudes(mels).unwrap();
        assert!(made.iter().all(|magnitude| *magnitude >= 0.0));
        let ours = residual(&filters, &made, power, mels);
        println!("{name}: {ours:.2e}, librosa {theirs:.2e}");
        assert!(ours <= WORSE * theirs, "{name}: {ours:e} {theirs:e}");
        // The filters' weights are stored in FP32; librosa's were FP64.
        let transposed = inverse(MelMethod::Transposed).magnitudes(mels).unwrap();
        let due = &tensors[&format!("{name}.transposed")];
        let worst = worst(&transposed[..due.len()], due);
        assert!(worst < FP64, "{name}: {worst:e}");
    }
}

#[test]
fn silence_ends_where_librosa_says() {
    let Fixture { description, sound, .. } = fixture();
    let mut shortest = sound.len();
    for case in description.trims {
        let interval = case.of(&sound);
        shortest = shortest.min(interval[1] - interval[0]);
        assert_eq!(interval, case.interval, "{} {}", case.frame_length, case.top_db);
    }
    assert!(shortest < sound.len() / 2, "nothing was trimmed");
}

#[test]
fn silence_ends_where_dalis_rule_says() {
    let Fixture { description, sound, .. } = fixture();
    assert!(description.nonsilent.len() >= 6);
    let mut shortest = sound.len();
    for NonsilentCase { window, below_db, interval: due } in description.nonsilent {
        let found = Nonsilent { window, below_db }.interval(&sound);
        shortest = shortest.min(found.len());
        assert_eq!([found.start, found.end], due, "{window} {below_db}");
    }
    assert!(shortest < sound.len() / 2, "nothing was trimmed");
}

impl TrimCase {
    fn of(&self, sound: &[f32]) -> [usize; 2] {
        let trim = Trim { frame_length: self.frame_length, hop: self.hop, top_db: self.top_db };
        let interval = trim.interval(sound);
        [interval.start, interval.end]
    }
}

#[test]
fn recordings_come_as_near_as_by_librosa() {
    let Some(samples) = std::env::var_os("ZOO_SAMPLES") else {
        eprintln!("skipped: ZOO_SAMPLES is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let packed = File::open(Path::new(&samples).join("LJSpeech-1.1-first32.tar.bz2")).unwrap();
    tar::Archive::new(bzip2::read::BzDecoder::new(BufReader::new(packed))).unpack(folder.path()).unwrap();
    let Fixture { description, .. } = fixture();
    assert!(description.clips.len() >= 4);
    // By momentum: the sums of librosa's and of these results over all clips and random starts.
    let mut random: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for Clip { name, reached, trims, mel_residuals } in description.clips {
        let sound = decode(&folder.path().join("LJSpeech-1.1/wavs").join(&name), Some(description.rate))
            .unwrap()
            .samples;
        for case in &trims {
            assert_eq!(case.of(&sound), case.interval, "{name} {}", case.top_db);
        }
        let stft = Stft::new(1024, 256, WindowFunction::HannPeriodic, 1024, Some(Padding::Zeros));
        let magnitudes = stft.magnitudes(&sound);
        for Reached { momentum, zero, random: theirs } in reached {
            let plan =
                GriffinLim::new(&GriffinLimSpec { momentum, ..GriffinLimSpec::librosa(1024) }).unwrap();
            let near = |start| {
                let made = plan.samples(&magnitudes, start, Some(sound.len())).unwrap();
                distance(&magnitudes, &stft.magnitudes(&made))
            };
            let ours = near(Start::Zero);
            println!("{name}, momentum {momentum}: {ours:.4}, librosa {zero:.4}");
            assert!((ours / zero - 1.0).abs() < WORSE - 1.0, "{name}: {ours} {zero}");
            let ours = (0..3).map(|seed| near(Start::Random { seed, utterance: 0 })).sum::<f64>() / 3.0;
            println!("{name}, momentum {momentum}, random: {ours:.4}, librosa {theirs:.4}");
            let sums = random.entry(momentum.to_string()).or_default();
            *sums = [sums[0] + theirs, sums[1] + ours];
        }
        for (filters, theirs) in mel_residuals {
            let filters = MelFilters::triangular(description.rate, 1024, 80, &description.mels[&filters]);
            let mels = mels_of(&filters, &magnitudes);
            let inverse = MelInverse::new(filters.clone(), MelMethod::LeastSquares, 1.0).unwrap();
            let ours = residual(&filters, &inverse.magnitudes(&mels).unwrap(), 1.0, &mels);
            println!("{name}, mels: {ours:.2e}, librosa {theirs:.2e}");
            assert!(ours <= WORSE * theirs, "{name}: {ours:e} {theirs:e}");
        }
    }
    for (momentum, [theirs, ours]) in random {
        println!("momentum {momentum}, random: {:.4} of librosa's", ours / theirs);
        assert!((ours / theirs - 1.0).abs() < RANDOM, "{momentum}: {ours} {theirs}");
    }
}

fn mels_of(filters: &MelFilters, magnitudes: &[f32]) -> Vec<f32> {
    let mut mels = Vec::new();
    for frame in magnitudes.chunks_exact(filters.bins()) {
        let spectrum: Vec<[f64; 1]> = frame.iter().map(|magnitude| [f64::from(*magnitude)]).collect();
        let mut made = vec![[0.0]; filters.len()];
        filters.apply(&spectrum, &mut made);
        mels.extend(made.iter().map(|[mel]| *mel as f32));
    }
    mels
}

#[test]
fn log_features_of_a_model_become_a_file() {
    let Fixture { description, sound, .. } = fixture();
    let stft = Stft::new(1024, 256, WindowFunction::HannPeriodic, 1024, Some(Padding::Reflect));
    let filters = MelFilters::triangular(description.rate, 1024, 80, &description.mels["slaney"]);
    let log_mels = |sound: &[f32]| -> Vec<f32> {
        mels_of(&filters, &stft.magnitudes(sound)).iter().map(|mel| mel.max(1e-5).ln()).collect()
    };
    let mels = log_mels(&sound);
    let inverse = MelInverse::new(filters.clone(), MelMethod::LeastSquares, 1.0).unwrap();
    let spec = VocoderSpec { power: 1.0, ..VocoderSpec::openseq2seq(1024, 1) };
    let speech = Vocoder::new(&spec).unwrap().log_mels(&mels, &inverse, 0).unwrap();
    // Distance of natural logarithms; 0.05 was measured.
    let near = distance(&mels, &log_mels(&speech.samples));
    println!("log mels: {near:.3}");
    assert!(near < 0.1, "{near}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("said.wav");
    write_wav(&file, &speech.samples, description.rate, Level::Peak(0.9)).unwrap();
    let again = decode(&file, Some(description.rate)).unwrap().samples;
    assert_eq!(again.len(), speech.samples.len());
    assert!((again.iter().fold(0.0_f32, |most, sample| most.max(sample.abs())) - 0.9).abs() < 1e-4);
}
