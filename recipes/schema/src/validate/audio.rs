//! Checks the values of front ends and of augmentation, in a recipe or in a spec made in code.

use super::problems::{LARGEST, Problem, Problems};
use crate::spec::{
    AugmentationSpec, FeatureOutput, FeaturesSpec, MagnitudeSpec, MasksSpec, MelSpec, NoiseSpec, SpeedSpec,
    TrimSpec, WindowFunction,
};

/// Longest window and hop, in milliseconds. A larger value is probably a typing error.
const LONGEST_MS: f64 = 10_000.0;
const RATES: std::ops::RangeInclusive<u32> = 100..=1_000_000;

impl Problems {
    fn rate(&mut self, rate: u32) {
        self.require(RATES.contains(&rate), "rate", || {
            format!("the sample rate is {rate} Hz; it must be {} to {} Hz", RATES.start(), RATES.end())
        });
    }

    fn times(&mut self, window_ms: f64, hop_ms: f64, rate: u32) {
        for (value, key, least) in [(window_ms, "window_ms", 2), (hop_ms, "hop_ms", 1)] {
            self.within(value, 0.0, LONGEST_MS, key);
            self.require(
                !(0.0..=LONGEST_MS).contains(&value) || samples_in(value, rate) >= least,
                key,
                || format!("`{key}` is {value}, which is less than {least} samples at {rate} Hz"),
            );
        }
    }

    fn fft(&mut self, fft: u32, window: usize, output: FeatureOutput, features: u32) {
        self.count(fft, "fft");
        self.hint(
            fft as usize >= window,
            "fft",
            || format!("`fft` is {fft}, the window has {window} samples"),
            format!("fft = {}", window.next_power_of_two()),
        );
        let bins = fft / 2 + 1;
        self.require(output != FeatureOutput::Spectrogram || features <= bins, "features", || {
            format!("`features` is {features}; a spectrum of this window has {bins} bins")
        });
    }

    fn edges(&mut self, low_hz: f64, high_hz: f64, rate: u32, low_key: &str, high_key: &str) {
        let half = f64::from(rate) / 2.0;
        self.within(low_hz, 0.0, half, low_key);
        self.require(high_hz > low_hz && high_hz <= half, high_key, || {
            format!(
                "the last filter ends at {high_hz} Hz; it must be above {low_hz} Hz and at most {half} Hz"
            )
        });
    }
}

/// Number of whole samples in a time, rounded down as in all three libraries.
fn samples_in(ms: f64, rate: u32) -> usize {
    // The small addition is for times such as 0.3 ms, whose product is slightly below a whole
    // number.
    (f64::from(rate) * ms / 1000.0 + 1e-6).floor() as usize
}

impl FeaturesSpec {
    /// Length of the window in samples, at a sample rate in hertz.
    pub fn window_samples(&self, rate: u32) -> usize {
        match self {
            Self::PythonSpeechFeatures { window_ms, .. }
            | Self::Librosa { window_ms, .. }
            | Self::Kaldi { window_ms, .. }
            | Self::TensorFlow { window_ms, .. } => samples_in(*window_ms, rate),
            Self::Tacotron { window_samples, .. } => *window_samples as usize,
        }
    }

    /// Distance between two frames in samples, at a sample rate in hertz.
    pub fn hop_samples(&self, rate: u32) -> usize {
        match self {
            Self::Tacotron { hop_samples, .. } => *hop_samples as usize,
            _ => samples_in(self.hop_ms(rate), rate),
        }
    }

    /// Distance between two frames in milliseconds, at a sample rate in hertz.
    pub fn hop_ms(&self, rate: u32) -> f64 {
        match self {
            Self::PythonSpeechFeatures { hop_ms, .. }
            | Self::Librosa { hop_ms, .. }
            | Self::Kaldi { hop_ms, .. }
            | Self::TensorFlow { hop_ms, .. } => *hop_ms,
            Self::Tacotron { hop_samples, .. } => 1000.0 * f64::from(*hop_samples) / f64::from(rate.max(1)),
        }
    }

    /// Number of features per frame.
    pub fn features(&self) -> u32 {
        match self {
            Self::PythonSpeechFeatures { features, .. }
            | Self::Librosa { features, .. }
            | Self::Kaldi { features, .. }
            | Self::TensorFlow { features, .. } => *features,
            Self::Tacotron { filters, magnitude, .. } => {
                filters.saturating_add(magnitude.map_or(0, |magnitude| magnitude.bins))
            }
        }
    }

    /// FFT length in samples, at a sample rate in hertz.
    pub fn fft_length(&self, rate: u32) -> usize {
        let window = self.window_samples(rate);
        match self {
            Self::PythonSpeechFeatures { output: FeatureOutput::Spectrogram, .. } => window,
            Self::PythonSpeechFeatures { fft, .. } => *fft as usize,
            Self::Librosa { fft: Some(fft), .. } => *fft as usize,
            Self::Librosa { output: FeatureOutput::Spectrogram, .. } => window,
            Self::Librosa { .. } | Self::Kaldi { .. } | Self::TensorFlow { .. } => window.next_power_of_two(),
            Self::Tacotron { fft, .. } => *fft as usize,
        }
    }

    /// The errors of the values, for audio with a sample rate of `rate` hertz; empty if there are
    /// none.
    pub fn problems(&self, rate: u32) -> Vec<Problem> {
        let mut found = Problems::default();
        found.rate(rate);
        if !matches!(self, Self::Tacotron { .. }) {
            found.count(self.features(), "features");
        }
        match self {
            Self::PythonSpeechFeatures {
                output,
                features,
                window_ms,
                hop_ms,
                fft: _,
                preemphasis,
                pad_frames_to,
                normalize: _,
            } => {
                found.times(*window_ms, *hop_ms, rate);
                found.within(*preemphasis, 0.0, 1.0, "preemphasis");
                found.count(*pad_frames_to, "pad_frames_to");
                self.check_fft(*output, *features, rate, &mut found);
            }
            Self::Librosa {
                output,
                features,
                window_ms,
                hop_ms,
                fft: _,
                window,
                padding: _,
                trim,
                peak_normalize: _,
                dither,
                preemphasis,
                mel,
                log_offset,
                normalize: _,
            } => {
                found.times(*window_ms, *hop_ms, rate);
                found.within(*preemphasis, 0.0, 1.0, "preemphasis");
                found.within(*dither, 0.0, 1.0, "dither");
                found.above_zero(*log_offset, "log_offset");
                if let Some(TrimSpec { below_db, window_samples }) = trim {
                    found.above_zero(*below_db, "trim.below_db");
                    found.count(*window_samples, "trim.window_samples");
                }
                self.check_fft(*output, *features, rate, &mut found);
                self.check_window(*window, rate, &mut found);
                let MelSpec { low_hz, high_hz, scale: _, area_normalized: _ } = *mel;
                found.edges(
                    low_hz,
                    high_hz.unwrap_or(f64::from(rate) / 2.0),
                    rate,
                    "mel.low_hz",
                    "mel.high_hz",
                );
            }
            Self::Kaldi {
                features: _,
                window_ms,
                hop_ms,
                window,
                preemphasis,
                remove_dc: _,
                snip_edges: _,
                scale: _,
                dither,
                low_hz,
                high_hz,
                energy_floor,
                normalize: _,
            } => {
                found.times(*window_ms, *hop_ms, rate);
                found.within(*preemphasis, 0.0, 1.0, "preemphasis");
                found.within(*dither, 0.0, 32_768.0, "dither");
                found.above_zero(*energy_floor, "energy_floor");
                self.check_window(*window, rate, &mut found);
                let top = if *high_hz <= 0.0 { high_hz + f64::from(rate) / 2.0 } else { *high_hz };
                found.edges(*low_hz, top, rate, "low_hz", "high_hz");
            }
            Self::TensorFlow { features, window_ms, hop_ms, filters, low_hz, high_hz, normalize: _ } => {
                found.times(*window_ms, *hop_ms, rate);
                found.count(*filters, "filters");
                found.hint(
                    features <= filters || *filters == 0,
                    "features",
                    || {
                        format!(
                            "`features` is {features}; {filters} filters have no more than {filters} cepstra"
                        )
                    },
                    format!("features = {filters}"),
                );
                found.edges(*low_hz, *high_hz, rate, "low_hz", "high_hz");
            }
            Self::Tacotron { .. } => self.check_tacotron(rate, &mut found),
        }
        found.0
    }

    fn check_tacotron(&self, rate: u32, found: &mut Problems) {
        let Self::Tacotron {
            filters,
            mel,
            floor,
            magnitude,
            fft,
            window_samples,
            hop_samples,
            trim_db,
            pad_frames_to,
            batch_padding,
        } = self
        else {
            return;
        };
        for (value, key) in [
            (*filters, "filters"),
            (*fft, "fft"),
            (*hop_samples, "hop_samples"),
            (pad_frames_to.unwrap_or(1), "pad_frames_to"),
        ] {
            found.count(value, key);
        }
        found.require((2..=LARGEST).contains(window_samples), "window_samples", || {
            format!("`window_samples` is {window_samples}; it must be 2 to {LARGEST}")
        });
        found.above_zero(*floor, "floor");
        found.hint(
            fft >= window_samples,
            "fft",
            || format!("`fft` is {fft}, the window has {window_samples} samples"),
            format!("fft = {window_samples}"),
        );
        if let Some(MagnitudeSpec { bins, floor, log: _ }) = magnitude {
            let most = fft / 2 + 1;
            found.require((1..=most).contains(bins), "magnitude.bins", || {
                format!("`magnitude.bins` is {bins}; a spectrum of {fft} samples has {most}")
            });
            found.above_zero(*floor, "magnitude.floor");
        }
        if let Some(trim_db) = trim_db {
            found.above_zero(*trim_db, "trim_db");
            found.require(*fft >= 4 && *hop_samples >= 2, "trim_db", || {
                "silence is found in frames of half an FFT and hops of half a hop, which are none here"
                    .to_owned()
            });
        }
        found.require(batch_padding.is_finite(), "batch_padding", || {
            format!("`batch_padding` is {batch_padding}; it must be a finite number")
        });
        let half = f64::from(rate) / 2.0;
        found.edges(mel.low_hz, mel.high_hz.unwrap_or(half), rate, "mel.low_hz", "mel.high_hz");
    }

    /// Checks the FFT length against the window, if the window itself is valid.
    fn check_fft(&self, output: FeatureOutput, features: u32, rate: u32, found: &mut Problems) {
        if found.0.is_empty() {
            let fft = u32::try_from(self.fft_length(rate)).unwrap_or(u32::MAX);
            found.fft(fft, self.window_samples(rate), output, features);
        }
    }

    fn check_window(&self, window: WindowFunction, rate: u32, found: &mut Problems) {
        let ends_are_zero =
            matches!(window, WindowFunction::Hann | WindowFunction::Blackman | WindowFunction::Povey);
        if found.0.is_empty() && ends_are_zero {
            found.require(self.window_samples(rate) > 2, "window_ms", || {
                "a window of two samples that is 0 at both ends leaves nothing".to_owned()
            });
        }
    }
}

impl AugmentationSpec {
    /// The errors of the values, for this number of features per frame; empty if there are none.
    pub fn problems(&self, features: u32) -> Vec<Problem> {
        let mut found = Problems::default();
        match &self.speed {
            Some(SpeedSpec::Uniform { ratio, filter: _ }) => {
                found.within(*ratio, 0.0, 0.9, "speed.ratio");
            }
            Some(SpeedSpec::Choice { factors, filter: _ } | SpeedSpec::Copies { factors }) => {
                found.require(!factors.is_empty(), "speed.factors", || {
                    "`speed.factors` has no factor".to_owned()
                });
                for (at, factor) in factors.iter().enumerate() {
                    found.within(*factor, 0.1, 10.0, &format!("speed.factors.{at}"));
                }
            }
            None => {}
        }
        if let Some(SpeedSpec::Copies { factors }) = &self.speed {
            found.hint(
                !factors.contains(&1.0),
                "speed.factors",
                || "`speed.factors` has 1, the example itself".to_owned(),
                "leave 1 out; the example is there anyway",
            );
        }
        if let Some(NoiseSpec { min_db, max_db }) = self.noise {
            found.require((-300..=300).contains(&min_db), "noise.min_db", || {
                format!("`noise.min_db` is {min_db}; it must be -300 to 300")
            });
            found.require(max_db > min_db && max_db <= 300, "noise.max_db", || {
                format!("`noise.max_db` is {max_db}; it must be above `noise.min_db` and at most 300")
            });
        }
        if let Some(MasksSpec { frequency_masks, max_features, time_masks, max_frames }) = self.masks {
            found.require(frequency_masks == 0 || max_features < features, "masks.max_features", || {
                format!(
                    "`masks.max_features` is {max_features}; it must be less than the {features} features"
                )
            });
            for (masks, width, key) in [
                (frequency_masks, max_features, "masks.max_features"),
                (time_masks, max_frames, "masks.max_frames"),
            ] {
                found.require((masks == 0) == (width == 0), key, || {
                    format!("`{key}` is {width} and there are {masks} masks of it; both or none are 0")
                });
                found.require(masks <= 1000 && width <= LARGEST, key, || {
                    format!("{masks} masks of {width} are more than any example has")
                });
            }
        }
        found.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(toml: &str) -> FeaturesSpec {
        toml::from_str(toml).unwrap()
    }

    fn keys(problems: &[Problem]) -> Vec<&str> {
        problems.iter().map(|problem| problem.key.as_str()).collect()
    }

    #[test]
    fn published_front_ends_have_no_problem() {
        for spec in [
            "kind = \"python-speech-features\"\noutput = \"spectrogram\"\nfeatures = 160",
            "kind = \"python-speech-features\"\noutput = \"mfcc\"\nfeatures = 13",
            "kind = \"librosa\"\noutput = \"log-mel\"\nfeatures = 64\nnormalize = \"per-feature\"\ndither = 1e-5",
            "kind = \"kaldi\"\nfeatures = 80",
            "kind = \"tensorflow\"\nfeatures = 26",
        ] {
            assert_eq!(features(spec).problems(16_000), [], "{spec}");
        }
        let yesno = features("kind = \"kaldi\"\nfeatures = 23");
        assert_eq!(yesno.problems(8_000), []);
        assert_eq!(
            (yesno.window_samples(8_000), yesno.hop_samples(8_000), yesno.fft_length(8_000)),
            (200, 80, 256)
        );
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        let spectrogram = "kind = \"python-speech-features\"\noutput = \"spectrogram\"\nfeatures = ";
        assert_eq!(keys(&features(&format!("{spectrogram}162")).problems(16_000)), ["features"]);
        assert_eq!(keys(&features(&format!("{spectrogram}0")).problems(16_000)), ["features"]);
        let mel = "kind = \"librosa\"\noutput = \"log-mel\"\nfeatures = 64\n";
        for (line, key) in [
            ("window_ms = nan", "window_ms"),
            ("window_ms = 1e300", "window_ms"),
            ("hop_ms = 0.01", "hop_ms"),
            ("fft = 256", "fft"),
            ("dither = -1.0", "dither"),
            ("preemphasis = 1.5", "preemphasis"),
            ("log_offset = 0.0", "log_offset"),
            ("trim = { below_db = 0.0 }", "trim.below_db"),
            ("trim = { window_samples = 0 }", "trim.window_samples"),
            ("mel = { high_hz = 9000.0 }", "mel.high_hz"),
            ("mel = { low_hz = -1.0 }", "mel.low_hz"),
        ] {
            assert_eq!(keys(&features(&format!("{mel}{line}")).problems(16_000)), [key], "{line}");
        }
        assert_eq!(keys(&features(mel).problems(0)), ["rate", "window_ms", "hop_ms", "mel.high_hz"]);
        let kaldi = features("kind = \"kaldi\"\nfeatures = 23\nhigh_hz = -4000.0");
        assert_eq!(keys(&kaldi.problems(8_000)), ["high_hz"]);
        let cepstra = "kind = \"tensorflow\"\nfeatures = ";
        assert_eq!(keys(&features(&format!("{cepstra}41")).problems(16_000)), ["features"]);
        assert_eq!(keys(&features(&format!("{cepstra}26")).problems(7_000)), ["high_hz"]);
        assert_eq!(keys(&features(&format!("{cepstra}1\nfilters = 0")).problems(16_000)), ["filters"]);
    }

    #[test]
    fn targets_of_synthesis_are_those_of_the_sources() {
        let nvidia = features("kind = \"tacotron\"");
        assert_eq!(nvidia.problems(22_050), []);
        assert_eq!(
            (
                nvidia.window_samples(22_050),
                nvidia.hop_samples(22_050),
                nvidia.fft_length(22_050),
                nvidia.features()
            ),
            (1024, 256, 1024, 80)
        );
        assert!((nvidia.hop_ms(22_050) - 11.609_977).abs() < 1e-6);
        let both = features(
            "kind = \"tacotron\"\nfloor = 1e-2\nmel = { scale = \"htk\", area_normalized = false }\nmagnitude = { bins = 513 }\npad_frames_to = 8",
        );
        assert_eq!((both.problems(22_050), both.features()), (Vec::new(), 593));
        for (line, key) in [
            ("filters = 0", "filters"),
            ("floor = 0.0", "floor"),
            ("fft = 512", "fft"),
            ("hop_samples = 0", "hop_samples"),
            ("window_samples = 1", "window_samples"),
            ("pad_frames_to = 0", "pad_frames_to"),
            ("magnitude = { bins = 514 }", "magnitude.bins"),
            ("magnitude = { bins = 513, floor = -1.0 }", "magnitude.floor"),
            ("trim_db = 0.0", "trim_db"),
            ("batch_padding = nan", "batch_padding"),
            ("mel = { high_hz = 12000.0 }", "mel.high_hz"),
        ] {
            let spec = features(&format!("kind = \"tacotron\"\n{line}"));
            assert_eq!(keys(&spec.problems(22_050)), [key], "{line}");
        }
        assert_eq!(keys(&nvidia.problems(8_000)), ["mel.high_hz"]);
    }

    #[test]
    fn augmentation_that_cannot_be_is_named() {
        let problems = |toml: &str| {
            let spec: AugmentationSpec = toml::from_str(toml).unwrap();
            spec.problems(64).into_iter().map(|problem| problem.key).collect::<Vec<_>>()
        };
        let masks = "masks = { frequency_masks = 2, max_features = 6, time_masks = 2, max_frames = 6 }";
        let jasper = format!("speed = {{ kind = \"choice\", factors = [0.9, 1.0, 1.1] }}\n{masks}");
        assert!(problems(&jasper).is_empty());
        assert_eq!(problems("speed = { kind = \"copies\", factors = [1.0] }"), ["speed.factors"]);
        assert_eq!(problems("speed = { kind = \"uniform\", ratio = 1.0 }"), ["speed.ratio"]);
        assert_eq!(problems("noise = { min_db = -60, max_db = -60 }"), ["noise.max_db"]);
        assert_eq!(problems("masks = { frequency_masks = 1, max_features = 64 }"), ["masks.max_features"]);
    }
}
