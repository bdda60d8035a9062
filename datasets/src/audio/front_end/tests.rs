use proptest::prelude::*;
use zoo_recipes::{FeatureOutput, MelSpec, Padding, SampleScale, TrimSpec, WindowFunction};

use super::*;
use crate::random::Purpose;

fn python_speech_features(output: FeatureOutput, pad_frames_to: u32) -> FeaturesSpec {
    FeaturesSpec::PythonSpeechFeatures {
        output,
        features: 20,
        window_ms: 20.0,
        hop_ms: 10.0,
        fft: 512,
        preemphasis: 0.97,
        pad_frames_to,
        normalize: FeatureNorm::Global,
    }
}

fn librosa(output: FeatureOutput, normalize: FeatureNorm, dither: f64) -> FeaturesSpec {
    FeaturesSpec::Librosa {
        output,
        features: 20,
        window_ms: 20.0,
        hop_ms: 10.0,
        fft: None,
        window: WindowFunction::Hann,
        padding: Padding::Reflect,
        trim: None,
        peak_normalize: true,
        dither,
        preemphasis: 0.97,
        mel: MelSpec::default(),
        log_offset: 1e-20,
        normalize,
    }
}

fn kaldi(snip_edges: bool) -> FeaturesSpec {
    FeaturesSpec::Kaldi {
        features: 20,
        window_ms: 25.0,
        hop_ms: 10.0,
        window: WindowFunction::Povey,
        preemphasis: 0.97,
        remove_dc: true,
        snip_edges,
        scale: SampleScale::Unit,
        dither: 0.0,
        low_hz: 20.0,
        high_hz: -400.0,
        energy_floor: 1e-10,
        normalize: FeatureNorm::None,
    }
}

fn tensorflow() -> FeaturesSpec {
    FeaturesSpec::TensorFlow {
        features: 20,
        window_ms: 32.0,
        hop_ms: 20.0,
        filters: 40,
        low_hz: 20.0,
        high_hz: 4000.0,
        normalize: FeatureNorm::None,
    }
}

fn all() -> Vec<FeaturesSpec> {
    use FeatureOutput::{LogMel, Mfcc, Spectrogram};
    let mut specs = vec![kaldi(true), kaldi(false), tensorflow()];
    for output in [Spectrogram, LogMel, Mfcc] {
        specs.extend([python_speech_features(output, 1), python_speech_features(output, 8)]);
        specs.extend([
            librosa(output, FeatureNorm::PerFeature, 1e-5),
            librosa(output, FeatureNorm::Global, 0.0),
        ]);
    }
    specs
}

fn noise(samples: usize) -> Vec<f32> {
    let mut noise = vec![0.0; samples];
    RandomStream::new(5, Purpose::Examples, 0).add_normal(&mut noise, 0.1);
    noise
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Includes utterances shorter than a window or than the mirrored part, silent ones, single
    /// samples and empty ones.
    #[test]
    fn any_length_gives_its_frames(samples in prop_oneof![0..700_usize, 0..5000_usize], silent: bool, rate in prop_oneof![Just(8_000), Just(16_000), Just(11_025), Just(44_100_u32)]) {
        let sound = if silent { vec![0.0; samples] } else { noise(samples) };
        for spec in all() {
            let Ok(front_end) = FrontEnd::new(&spec, rate) else { continue };
            let stream = RandomStream::new(1, Purpose::Dither, 0);
            let features = front_end.features(&sound, Some(stream));
            prop_assert_eq!(features.frames(), front_end.frames(samples), "{:?}", spec);
            prop_assert!(features.values.iter().all(|value| value.is_finite()), "{:?}", spec);
        }
    }
}

#[test]
fn trimmed_samples_are_not_there() {
    let plain = librosa(FeatureOutput::LogMel, FeatureNorm::PerFeature, 0.0);
    let mut spec = plain.clone();
    let FeaturesSpec::Librosa { trim, .. } = &mut spec else { unreachable!() };
    *trim = Some(TrimSpec { below_db: 60.0, window_samples: 512 });
    let front_end = |spec| FrontEnd::new(spec, 16_000).unwrap();
    let mut sound = vec![0.0; 3_000];
    sound.extend(noise(5_000));
    sound.extend(vec![1e-6; 4_000]);
    let kept = front_end(&spec).kept(&sound);
    assert_eq!(kept, 3_000 - 511..8_000 + 511);
    assert_eq!(front_end(&plain).kept(&sound), 0..12_000);
    let trimmed = front_end(&spec).features(&sound, None);
    assert_eq!(trimmed, front_end(&plain).features(&sound[kept], None));
    assert!(trimmed.frames() < front_end(&spec).frames(sound.len()));
    for silent in [0, 1, 5_000] {
        let made = front_end(&spec).features(&vec![0.0; silent], None);
        assert_eq!(made.frames(), front_end(&plain).frames(silent), "{silent}");
    }
}

#[test]
fn frames_are_padded_to_their_multiple() {
    let front_end = FrontEnd::new(&python_speech_features(FeatureOutput::LogMel, 8), 16_000).unwrap();
    for (samples, frames) in [(0, 0), (1, 8), (320, 8), (321, 8), (320 + 7 * 160, 8), (321 + 7 * 160, 16)] {
        assert_eq!(front_end.frames(samples), frames, "{samples}");
    }
}

#[test]
fn normalisation_gives_mean_and_deviation() {
    let moments = |values: Vec<f64>| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt())
    };
    let near = |(mean, deviation): (f64, f64)| mean.abs() < 1e-6 && (deviation - 1.0).abs() < 1e-6;
    let sound = noise(16_000);
    let spec = librosa(FeatureOutput::LogMel, FeatureNorm::PerFeature, 0.0);
    let made = FrontEnd::new(&spec, 16_000).unwrap().features(&sound, None);
    for feature in 0..20 {
        let column = made.values.iter().skip(feature).step_by(20).map(|x| f64::from(*x)).collect();
        assert!(near(moments(column)), "{feature}");
    }
    let spec = librosa(FeatureOutput::LogMel, FeatureNorm::Global, 0.0);
    let made = FrontEnd::new(&spec, 16_000).unwrap().features(&sound, None);
    assert!(near(moments(made.values.iter().map(|x| f64::from(*x)).collect())));
    assert!(!near(moments(made.values.iter().step_by(20).map(|x| f64::from(*x)).collect())));
}

#[test]
fn dither_is_that_of_its_stream() {
    let spec = librosa(FeatureOutput::LogMel, FeatureNorm::None, 1e-3);
    let front_end = FrontEnd::new(&spec, 16_000).unwrap();
    let sound = noise(4_000);
    let made = |stream| front_end.features(&sound, Some(RandomStream::new(1, Purpose::Dither, stream)));
    assert_eq!(made(3), made(3));
    assert_ne!(made(3), made(4));
    let undithered = librosa(FeatureOutput::LogMel, FeatureNorm::None, 0.0);
    let undithered = FrontEnd::new(&undithered, 16_000).unwrap().features(&sound, None);
    assert_eq!(front_end.features(&sound, None), undithered);
}

#[test]
fn a_spec_that_cannot_be_says_why() {
    let error = FrontEnd::new(&kaldi(true), 0).unwrap_err();
    assert!(error.to_string().contains("the sample rate is 0 Hz"), "{error}");
    let error = FrontEnd::new(&python_speech_features(FeatureOutput::LogMel, 0), 16_000).unwrap_err();
    assert_eq!(error.problems[0].key, "pad_frames_to");
}
