//! Mel-cepstral distortion compared with SciPy's DCT and librosa's dynamic time warping.
//! `tests/reference/mel_cepstral.py` at the root of the repository writes the fixture.

use proptest::prelude::*;
use serde::Deserialize;
use zoo_results::metrics::{CepstralOptions, LogMel, mel_cepstral_distortion, mel_error};

#[derive(Deserialize)]
struct Golden {
    seed: u64,
    frames: usize,
    length: usize,
    mels: usize,
    coefficients: usize,
    /// Cepstra of the first frames.
    first: [Vec<f64>; 2],
    cost: f64,
    pairs: u32,
    warped: f64,
    straight: Option<f64>,
    mel_error: Option<f64>,
}

/// Both sides compute in f64 from the same bits; sums of up to about 400 terms are in another
/// order.
const TOLERANCE: f64 = 1e-12;

fn goldens() -> Vec<Golden> {
    serde_json::from_str(include_str!("../fixtures/mel_cepstral_goldens.json")).expect("the fixture is JSON")
}

/// The script's generator, reproduced to the last bit.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }

    fn spectrogram(&mut self, frames: usize, mels: usize) -> Vec<f32> {
        let mut last: Vec<f64> = (0..mels).map(|_| self.next()).collect();
        let mut values = Vec::new();
        for _ in 0..frames {
            last = last.iter().map(|x| (x + self.next()) / 2.0).collect();
            values.extend(last.iter().map(|x| (13.5 * x - 11.5) as f32));
        }
        values
    }

    fn spoken_again(&mut self, target: &[f32], frames: usize, length: usize) -> Vec<f32> {
        let mels = target.len() / frames;
        let frame = |t: usize| &target[t * t * frames / (length * length) * mels..][..mels];
        (0..length).flat_map(frame).map(|x| (f64::from(*x) + self.next() - 0.5) as f32).collect()
    }
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0)
}

#[test]
fn distortions_are_the_references() {
    let mut bent = 0;
    for golden in goldens() {
        let Golden { seed, frames, length, mels, coefficients, .. } = golden;
        let mut random = Generator(seed);
        let target = random.spectrogram(frames, mels);
        let predicted = random.spoken_again(&target, frames, length);
        let (a, b) = (LogMel::new(&target, mels).unwrap(), LogMel::new(&predicted, mels).unwrap());
        let options = CepstralOptions { coefficients, warped: true, mels };
        let warped = mel_cepstral_distortion(a, b, options).unwrap();
        assert_eq!(warped.pairs, golden.pairs, "seed {seed}");
        assert!(near(warped.decibels, golden.warped), "{}: {} {}", seed, warped.decibels, golden.warped);
        let decibels = 10.0 / std::f64::consts::LN_10 * 2f64.sqrt();
        assert!(near(warped.decibels * f64::from(warped.pairs) / decibels, golden.cost), "seed {seed}");
        bent += u32::from(warped.pairs as usize > frames.max(length));

        // The first frames alone, paired by position, show whether the cepstra are equal.
        let [x, y] = &golden.first;
        let first = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt() * decibels;
        let by_place = CepstralOptions { warped: false, ..options };
        let of = |values| LogMel::new(values, mels).unwrap();
        let found = mel_cepstral_distortion(of(&target[..mels]), of(&predicted[..mels]), by_place).unwrap();
        assert!(near(found.decibels, first), "{seed}: {} {first}", found.decibels);

        let straight = mel_cepstral_distortion(a, b, by_place).ok().map(|found| found.decibels);
        let error = mel_error(a, b).ok().map(|(sum, count)| sum / count);
        for (found, expected) in [(straight, golden.straight), (error, golden.mel_error)] {
            assert_eq!(found.is_some(), frames == length);
            assert!(found.zip(expected).is_none_or(|(found, expected)| near(found, expected)), "seed {seed}");
        }
    }
    assert!(bent >= 5, "{bent} paths are longer than both sides");
}

#[test]
fn a_thousand_frames_against_a_thousand_take_no_time() {
    let mut random = Generator(1000);
    let target = random.spectrogram(1000, 80);
    let predicted = random.spoken_again(&target, 1000, 1000);
    let (a, b) = (LogMel::new(&target, 80).unwrap(), LogMel::new(&predicted, 80).unwrap());
    let begin = std::time::Instant::now();
    let found = mel_cepstral_distortion(a, b, CepstralOptions::default()).unwrap();
    assert!(found.pairs > 1000 && found.decibels > 0.0);
    println!("1,000 x 1,000 frames: {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    assert!(begin.elapsed().as_secs() < 10);
}

/// Two spectrograms of up to 12 frames of 6 bands. Some values are whole numbers, so that paths
/// tie.
fn pairs() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
    let value = prop_oneof![(-3i8..3).prop_map(f32::from), -20.0f32..5.0, Just(f32::MAX), Just(f32::MIN)];
    let frames = prop::collection::vec(prop::collection::vec(value, 6), 1..12);
    (frames.clone(), frames).prop_map(|(a, b)| (a.concat(), b.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn distortion_is_a_distance_that_warping_only_lowers((a, b) in pairs()) {
        let of = |values| LogMel::new(values, 6).unwrap();
        for coefficients in [1, 5] {
            let warped = CepstralOptions { coefficients, warped: true, mels: 6 };
            let straight = CepstralOptions { warped: false, ..warped };
            for options in [warped, straight] {
                prop_assert_eq!(mel_cepstral_distortion(of(&a), of(&a), options).unwrap().decibels, 0.0);
            }
            let found = mel_cepstral_distortion(of(&a), of(&b), warped).unwrap();
            prop_assert_eq!(mel_cepstral_distortion(of(&b), of(&a), warped).unwrap(), found);
            prop_assert!(found.decibels >= 0.0 && found.decibels.is_finite());
            let (n, m, pairs) = (a.len() / 6, b.len() / 6, found.pairs as usize);
            prop_assert!(n.max(m) <= pairs && pairs < n + m, "{pairs} of {n} and {m}");
            // The cheapest sum is at most that of the diagonal, and its path has at least as many
            // pairs.
            let least = n.min(m) * 6;
            let (a, b) = (of(&a[..least]), of(&b[..least]));
            let by_place = mel_cepstral_distortion(a, b, straight).unwrap().decibels;
            let found = mel_cepstral_distortion(a, b, warped).unwrap().decibels;
            prop_assert!(found <= by_place * (1.0 + 1e-12), "{found} above {by_place}");
        }
    }
}
