use zoo_recipes::{FeaturesSpec, MasksSpec};

use super::*;

fn extractor(features: &str, augmentation: &str) -> Extractor {
    let features: FeaturesSpec = toml::from_str(features).unwrap();
    let augmentation: AugmentationSpec = toml::from_str(augmentation).unwrap();
    Extractor::new(FrontEnd::new(&features, 16_000).unwrap(), &augmentation).unwrap()
}

fn sound(samples: usize) -> Vec<f32> {
    (0..samples).map(|t| 0.3 * (t as f32 * 0.05).sin() + 0.1 * (t as f32 * 0.7).sin()).collect()
}

fn turn(epoch: u32, utterance: u32) -> Turn {
    Turn { seed: 17, epoch, utterance }
}

const LIBROSA: &str =
    "kind = \"librosa\"\noutput = \"log-mel\"\nfeatures = 64\nnormalize = \"per-feature\"\ndither = 1e-5";
const KALDI: &str = "kind = \"kaldi\"\nfeatures = 23";

#[test]
fn a_turn_gives_its_example_in_any_order_and_thread() {
    let all = "speed = { kind = \"uniform\", ratio = 0.05 }\nnoise = { min_db = -90, max_db = -60 }\nmasks = { frequency_masks = 2, max_features = 6, time_masks = 2, max_frames = 6 }";
    let extractor = extractor(LIBROSA, all);
    let sound = sound(8_000);
    let turns: Vec<Turn> = (0..6).map(|at| turn(at % 2, at / 2)).collect();
    let forwards: Vec<Features> = turns.iter().map(|turn| extractor.training(&sound, 0, *turn)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            turns.iter().rev().map(|turn| scope.spawn(|| extractor.training(&sound, 0, *turn))).collect();
        for (thread, forwards) in threads.into_iter().zip(forwards.iter().rev()) {
            assert_eq!(thread.join().unwrap(), *forwards);
        }
    });
    for (at, one) in forwards.iter().enumerate() {
        assert!(forwards[..at].iter().all(|other| other != one), "{at}");
    }
    assert_eq!(extractor.front_end().evaluation(&sound, 1), extractor.front_end().evaluation(&sound, 1));
}

#[test]
fn speeds_change_the_number_of_samples_within_their_range() {
    let extractor = extractor(LIBROSA, "speed = { kind = \"uniform\", ratio = 0.05 }");
    let lengths: Vec<usize> =
        (0..200).map(|at| extractor.waveform(&sound(16_000), 0, turn(0, at)).len()).collect();
    assert!(lengths.iter().all(|length| (15_200..=16_800).contains(length)));
    assert!(lengths.iter().any(|length| *length < 15_300) && lengths.iter().any(|length| *length > 16_700));
}

#[test]
fn choices_are_all_made() {
    let extractor = extractor(LIBROSA, "speed = { kind = \"choice\", factors = [0.9, 1.0, 1.1] }");
    let mut counts = std::collections::BTreeMap::new();
    for at in 0..300 {
        *counts.entry(extractor.waveform(&sound(1_600), 0, turn(0, at)).len()).or_insert(0) += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [1_440, 1_600, 1_760]);
    assert!(counts.values().all(|count: &i32| count.abs_diff(100) < 50), "{counts:?}");
}

#[test]
fn copies_are_versions_of_known_length() {
    let extractor = extractor(KALDI, "speed = { kind = \"copies\", factors = [0.9, 1.1] }");
    assert_eq!(extractor.versions(), 3);
    let sound = sound(9_900);
    for (version, samples) in [(0, 9_900), (1, 11_000), (2, 9_000)] {
        assert_eq!(extractor.version_samples(9_900, version), samples);
        let made = extractor.training(&sound, version, turn(0, 0));
        assert_eq!(made.frames(), extractor.front_end().frames(samples), "{version}");
    }
    assert_eq!(extractor.training(&sound, 0, turn(3, 4)), extractor.front_end().evaluation(&sound, 0));
}

#[test]
fn noise_has_its_level() {
    let extractor = extractor(LIBROSA, "noise = { min_db = -40, max_db = -39 }");
    let sound = sound(16_000);
    let clean = extractor.front_end().scaled(&sound);
    let noisy = extractor.waveform(&sound, 0, turn(0, 0));
    let power: f64 = noisy.iter().zip(&clean).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 16_000.0;
    assert!((10.0 * power.log10() + 40.0).abs() < 0.2, "{power}");
}

#[test]
fn masks_hide_what_they_say_and_no_more() {
    let spec = MasksSpec { frequency_masks: 1, max_features: 6, time_masks: 1, max_frames: 4 };
    let (mut widths, mut heights) = ([0; 7], [0; 5]);
    for at in 0..2_000 {
        let mut features = Features { values: vec![1.0; 30 * 20], width: 20 };
        Masks::new(spec).apply(&mut features, turn(0, at).stream(Purpose::Masks));
        let hidden = |values: &[f32]| values.iter().all(|value| *value == 0.0);
        let rows: Vec<bool> = features.values.chunks_exact(20).map(hidden).collect();
        let open = rows.iter().position(|hidden| !hidden).unwrap();
        let columns: Vec<bool> =
            features.values[open * 20..][..20].iter().map(|value| *value == 0.0).collect();
        widths[columns.iter().filter(|hidden| **hidden).count()] += 1;
        heights[rows.iter().filter(|hidden| **hidden).count()] += 1;
        // The last position is never masked.
        assert!(!columns[19] && !rows[29]);
    }
    assert!(widths.iter().all(|count: &u32| count.abs_diff(2_000 / 7) < 100), "{widths:?}");
    assert!(heights.iter().all(|count: &u32| count.abs_diff(400) < 110), "{heights:?}");
}

#[test]
fn masks_wider_than_the_utterance_leave_it() {
    let spec = MasksSpec { frequency_masks: 0, max_features: 0, time_masks: 3, max_frames: 50 };
    for frames in 0..4 {
        let mut features = Features { values: vec![1.0; frames * 2], width: 2 };
        Masks::new(spec).apply(&mut features, turn(0, 0).stream(Purpose::Masks));
    }
}
