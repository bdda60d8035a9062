//! Generated speech: words of random letters, each letter a tone.
//!
//! Letter k of n is a sine of 300 Hz (0.4 rate / 300 Hz)^(k / (n - 1)). Its length, loudness and
//! phase vary a little, its ends are smooth, and noise is added to the whole utterance. A space is
//! silence.

use std::f64::consts::{PI, TAU};

use zoo_recipes::TonesSpec;

use super::error::SpeechError;
use crate::random::{Purpose, RandomStream};

/// Standard deviation of the noise; the tones have an amplitude of 0.3 to 0.5.
const NOISE: f64 = 0.01;
/// Relative variation of a letter's length: it is multiplied by a factor from 1 - this to 1 + this.
const VARIATION: f64 = 0.2;
/// Maximum length of an utterance in seconds. A larger value is probably a typing error.
const LONGEST_SECONDS: f64 = 600.0;

/// The generated splits, in the order of their numbers.
pub(super) const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// The utterances of a split.
#[derive(Debug, Clone)]
pub(super) struct Tones {
    spec: TonesSpec,
    split: u64,
}

/// The sound of a letter or a space.
struct Sound {
    letter: Option<u32>,
    samples: usize,
    amplitude: f64,
    phase: f64,
}

impl Tones {
    /// The generator of a split and its number of utterances; `None` if there is no such split.
    pub fn new(spec: &TonesSpec, split: &str) -> Result<Option<(Self, u32)>, SpeechError> {
        let error = |key: &str, problem: String, hint| {
            Err(SpeechError::recipe(format!("reader.{key}"), problem, hint))
        };
        if !(1..=26).contains(&spec.letters) {
            return error("letters", format!("there are no {} letters", spec.letters), "1 to 26");
        }
        if spec.longest_word == 0 || spec.most_words == 0 {
            return error(
                "longest_word",
                "there is no word".into(),
                "longest_word and most_words are 1 or more",
            );
        }
        let letters = f64::from(spec.most_words) * (f64::from(spec.longest_word) + 1.0);
        let longest = letters * spec.letter_ms * (1.0 + VARIATION) / 1000.0;
        if !(spec.letter_ms > 0.0 && longest <= LONGEST_SECONDS) {
            let problem = format!("an utterance may last {longest} seconds; {LONGEST_SECONDS} are the most");
            return error("letter_ms", problem, "shorter letters, words or utterances");
        }
        let counts = [spec.train, spec.valid, spec.test];
        let number = SPLITS.iter().position(|name| *name == split);
        Ok(number.map(|number| (Self { spec: spec.clone(), split: number as u64 }, counts[number])))
    }

    /// Text and number of samples of an utterance.
    pub fn utterance(&self, index: u32) -> (String, u64) {
        let (sounds, _) = self.sounds(index);
        let letter = |sound: &Sound| match sound.letter {
            Some(letter) => char::from(b'a' + letter as u8),
            None => ' ',
        };
        let samples = sounds.iter().map(|sound| sound.samples as u64).sum();
        (sounds.iter().map(letter).collect(), samples)
    }

    /// Samples of an utterance, in [-1, 1).
    pub fn samples(&self, index: u32) -> Vec<f32> {
        let (sounds, mut stream) = self.sounds(index);
        let rate = f64::from(self.spec.sample_rate_hz);
        let mut samples = Vec::with_capacity(sounds.iter().map(|sound| sound.samples).sum());
        for Sound { letter, samples: length, amplitude, phase } in sounds {
            let Some(letter) = letter else {
                samples.resize(samples.len() + length, 0.0);
                continue;
            };
            let step = TAU * self.frequency(letter) / rate;
            // The ramp takes ten milliseconds, or a quarter of a letter if that is shorter.
            let ramp = (rate / 100.0).min(length as f64 / 4.0).max(1.0);
            samples.extend((0..length).map(|at| {
                let from_end = (at.min(length - 1 - at) as f64 + 0.5) / ramp;
                let envelope = if from_end < 1.0 { 0.5 - 0.5 * (PI * from_end).cos() } else { 1.0 };
                (amplitude * envelope * (step * at as f64 + phase).sin()) as f32
            }));
        }
        stream.add_normal(&mut samples, NOISE);
        samples
    }

    /// Frequency of a letter, in hertz.
    fn frequency(&self, letter: u32) -> f64 {
        let top = 0.4 * f64::from(self.spec.sample_rate_hz);
        let bottom = 300.0_f64.min(top / 2.0);
        let steps = f64::from(self.spec.letters.saturating_sub(1).max(1));
        bottom * (top / bottom).powf(f64::from(letter) / steps)
    }

    /// The sounds of an utterance, and the random stream for its noise.
    fn sounds(&self, index: u32) -> (Vec<Sound>, RandomStream) {
        let TonesSpec { letters, longest_word, most_words, letter_ms, sample_rate_hz, seed, .. } = self.spec;
        let mut stream = RandomStream::new(seed, Purpose::Examples, (self.split << 32) | u64::from(index));
        let mut text = Vec::new();
        for word in 0..=stream.below(most_words) {
            if word > 0 {
                text.push(None);
            }
            text.extend((0..=stream.below(longest_word)).map(|_| Some(stream.below(letters))));
        }
        let sound = |letter: Option<u32>| {
            let seconds = letter_ms / 1000.0 * (1.0 + VARIATION * (2.0 * stream.unit() - 1.0));
            Sound {
                letter,
                samples: ((seconds * f64::from(sample_rate_hz)) as usize).max(1),
                amplitude: 0.3 + 0.2 * stream.unit(),
                phase: TAU * stream.unit(),
            }
        };
        let sounds = text.into_iter().map(sound).collect();
        (sounds, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> TonesSpec {
        TonesSpec {
            sample_rate_hz: 8_000,
            letters: 3,
            longest_word: 4,
            most_words: 3,
            letter_ms: 100.0,
            train: 50,
            valid: 5,
            test: 5,
            seed: 7,
        }
    }

    #[test]
    fn an_utterance_is_a_function_of_seed_split_and_number() {
        let (train, count) = Tones::new(&spec(), "train").unwrap().unwrap();
        let (valid, _) = Tones::new(&spec(), "valid").unwrap().unwrap();
        assert_eq!(count, 50);
        for index in 0..count {
            let (text, length) = train.utterance(index);
            let samples = train.samples(index);
            assert_eq!(samples.len() as u64, length);
            assert_eq!(samples, train.samples(index));
            assert!(samples.iter().all(|sample| sample.abs() < 0.7), "{index}");
            assert!(
                text.split(' ').count() <= 3 && text.split(' ').all(|word| (1..=4).contains(&word.len()))
            );
            assert!(text.bytes().all(|byte| b" abc".contains(&byte)), "{text}");
            let letters = text.len() as f64;
            assert!(
                (640.0 * letters - letters..=960.0 * letters).contains(&(length as f64)),
                "{text} {length}"
            );
        }
        assert_ne!(
            (0..5).map(|i| train.utterance(i)).collect::<Vec<_>>(),
            (0..5).map(|i| valid.utterance(i)).collect::<Vec<_>>()
        );
        assert!(Tones::new(&spec(), "dev").unwrap().is_none());
    }

    #[test]
    fn a_letter_is_loudest_at_its_frequency() {
        let (tones, _) =
            Tones::new(&TonesSpec { longest_word: 1, most_words: 1, ..spec() }, "train").unwrap().unwrap();
        for index in 0..12 {
            let text = tones.utterance(index).0;
            let samples = tones.samples(index);
            let power = |letter: u32| {
                let step = TAU * tones.frequency(letter) / 8_000.0;
                let sum = |f: fn(f64) -> f64| -> f64 {
                    samples
                        .iter()
                        .enumerate()
                        .map(|(at, sample)| f64::from(*sample) * f(step * at as f64))
                        .sum()
                };
                sum(f64::sin).hypot(sum(f64::cos))
            };
            let loudest = (0..3).max_by(|a, b| power(*a).total_cmp(&power(*b))).unwrap();
            assert_eq!(text.as_bytes(), [b'a' + loudest as u8], "{index}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for bad in [
            TonesSpec { letters: 0, ..spec() },
            TonesSpec { letters: 27, ..spec() },
            TonesSpec { longest_word: 0, ..spec() },
            TonesSpec { most_words: u32::MAX, ..spec() },
            TonesSpec { letter_ms: f64::NAN, ..spec() },
        ] {
            assert!(Tones::new(&bad, "train").unwrap_err().to_string().contains("data.reader."));
        }
    }
}
