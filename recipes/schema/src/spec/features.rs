//! Features: how a waveform becomes the input of a recogniser. Frequencies are in hertz, times in
//! milliseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A front end, named after the library that it reproduces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeaturesSpec {
    /// python_speech_features 0.6 as OpenSeq2Seq calls it.
    /// Samples are scaled to a peak of 32,767 and truncated to integers, frames are not centred,
    /// and mel filters are aligned to whole FFT bins.
    PythonSpeechFeatures {
        /// Type of the features.
        /// Mel filters use a rectangular window, a spectrogram a symmetric Hann window.
        output: FeatureOutput,
        /// Features per frame.
        /// Cepstra come from twice as many mel filters, with lifter 2 x features.
        features: u32,
        /// Length of a frame, in milliseconds.
        #[serde(default = "openseq2seq_window_ms")]
        window_ms: f64,
        /// Distance between the starts of two frames, in milliseconds.
        #[serde(default = "hop_ms")]
        hop_ms: f64,
        /// FFT length of mel filters, in samples. A spectrogram's FFT is as long as the frame.
        #[serde(default = "python_speech_features_fft")]
        fft: u32,
        /// Pre-emphasis: y[t] = x[t] - preemphasis x[t - 1]. Does not apply to a spectrogram.
        #[serde(default = "preemphasis")]
        preemphasis: f64,
        /// Silence is appended until the number of frames is a multiple of this.
        #[serde(default = "pad_frames_to")]
        pad_frames_to: u32,
        /// Which features are normalised to mean 0 and standard deviation 1.
        #[serde(default = "global")]
        normalize: FeatureNorm,
    },
    /// librosa as OpenSeq2Seq calls it: samples scaled to a peak of 1, centred frames.
    Librosa {
        /// Type of the features.
        output: FeatureOutput,
        /// Features per frame. Cepstra come from twice as many mel filters.
        features: u32,
        /// Length of the window, in milliseconds.
        #[serde(default = "openseq2seq_window_ms")]
        window_ms: f64,
        /// Distance between two frames, in milliseconds.
        #[serde(default = "hop_ms")]
        hop_ms: f64,
        /// FFT length, in samples.
        /// Absent: for a spectrogram the window's length, otherwise the next power of two.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fft: Option<u32>,
        /// Window function. The window is centred in the FFT's frame.
        #[serde(default = "symmetric_hann")]
        window: WindowFunction,
        /// Padding before the first and after the last sample.
        /// Versions of librosa up to 0.9 mirror the samples.
        #[serde(default = "mirrored")]
        padding: Padding,
        /// Trims silence at both ends. Absent: no trimming.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trim: Option<TrimSpec>,
        /// Whether to scale the samples to a peak of 1.
        #[serde(default = "yes")]
        peak_normalize: bool,
        /// Standard deviation of the noise that is added to the samples.
        #[serde(default)]
        dither: f64,
        /// Pre-emphasis: y[t] = x[t] - preemphasis x[t - 1]. Does not apply to a spectrogram.
        #[serde(default = "preemphasis")]
        preemphasis: f64,
        /// Settings of the mel filters.
        #[serde(default)]
        mel: MelSpec,
        /// Added to a mel energy before the logarithm.
        #[serde(default = "librosa_log_offset")]
        log_offset: f64,
        /// Which features are normalised to mean 0 and standard deviation 1.
        #[serde(default = "global")]
        normalize: FeatureNorm,
    },
    /// Kaldi's log-mel filter bank. The defaults are lhotse's.
    Kaldi {
        /// Number of mel filters, which is the number of features.
        features: u32,
        /// Length of a frame, in milliseconds.
        #[serde(default = "kaldi_window_ms")]
        window_ms: f64,
        /// Distance between two frames, in milliseconds.
        #[serde(default = "hop_ms")]
        hop_ms: f64,
        /// Window function.
        #[serde(default = "povey")]
        window: WindowFunction,
        /// Pre-emphasis within a frame: y[t] = x[t] - preemphasis x[t - 1].
        #[serde(default = "preemphasis")]
        preemphasis: f64,
        /// Whether to subtract a frame's mean from its samples.
        #[serde(default = "yes")]
        remove_dc: bool,
        /// Whether to use only frames that lie within the samples.
        /// Otherwise the samples are mirrored, and the number of frames follows from the hops.
        #[serde(default)]
        snip_edges: bool,
        /// Value range of the samples.
        #[serde(default)]
        scale: SampleScale,
        /// Standard deviation of the noise that is added to the samples, in their `scale`.
        #[serde(default)]
        dither: f64,
        /// Lower edge of the first filter, in hertz.
        #[serde(default = "kaldi_low_hz")]
        low_hz: f64,
        /// Upper edge of the last filter, in hertz. 0 or less: an offset from half the sample rate.
        #[serde(default = "kaldi_high_hz")]
        high_hz: f64,
        /// Minimum energy of a filter, applied before the logarithm.
        #[serde(default = "kaldi_energy_floor")]
        energy_floor: f64,
        /// Which features are normalised to mean 0 and standard deviation 1.
        #[serde(default)]
        normalize: FeatureNorm,
    },
    /// TensorFlow's `audio_spectrogram` and `mfcc`: cepstra of the frames that lie within the
    /// samples, with a periodic Hann window. The defaults are those of Mozilla's DeepSpeech.
    #[serde(rename = "tensorflow")]
    TensorFlow {
        /// Number of cepstra, which is the number of features.
        features: u32,
        /// Length of a frame, in milliseconds.
        #[serde(default = "mozilla_window_ms")]
        window_ms: f64,
        /// Distance between two frames, in milliseconds.
        #[serde(default = "mozilla_hop_ms")]
        hop_ms: f64,
        /// Number of mel filters that the cepstra come from. The filters read magnitudes.
        #[serde(default = "tensorflow_filters")]
        filters: u32,
        /// Lower edge of the first filter, in hertz.
        #[serde(default = "tensorflow_low_hz")]
        low_hz: f64,
        /// Upper edge of the last filter, in hertz.
        #[serde(default = "tensorflow_high_hz")]
        high_hz: f64,
        /// Which features are normalised to mean 0 and standard deviation 1.
        #[serde(default)]
        normalize: FeatureNorm,
    },
    /// Target frames of Tacotron 2: log mel magnitudes of centred frames, with a periodic Hann
    /// window and samples mirrored at both ends. The defaults are NVIDIA's for 22,050 Hz.
    Tacotron {
        /// Number of mel filters. The filters read magnitudes.
        #[serde(default = "tacotron_filters")]
        filters: u32,
        /// Settings of the mel filters.
        #[serde(default = "tacotron_mel")]
        mel: MelSpec,
        /// Minimum mel magnitude, applied before the natural logarithm.
        #[serde(default = "tacotron_floor")]
        floor: f64,
        /// Magnitudes of single FFT bins, appended to the mels of each frame. Absent: mels only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        magnitude: Option<MagnitudeSpec>,
        /// FFT length, in samples.
        #[serde(default = "tacotron_window_samples")]
        fft: u32,
        /// Length of the window, in samples.
        #[serde(default = "tacotron_window_samples")]
        window_samples: u32,
        /// Distance between two frames, in samples.
        #[serde(default = "tacotron_hop_samples")]
        hop_samples: u32,
        /// Trims both ends where they are this many decibels below the loudest frame.
        /// As `librosa.effects.trim`, with frames of half an FFT and hops of half a hop. Absent: no
        /// trimming.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trim_db: Option<f64>,
        /// Silent frames, at least two, are appended up to a multiple of this.
        /// They count in the length. OpenSeq2Seq: 8. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pad_frames_to: Option<u32>,
        /// Value that pads the shorter utterances of a batch. It does not count in their lengths.
        #[serde(default)]
        batch_padding: f64,
    },
}

/// Trimming of silence at both ends, as DALI's `nonsilent_region` in NVIDIA's Jasper. A sample is
/// silent if no window that contains it has a mean square near that of the loudest window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrimSpec {
    /// Threshold, in decibels below the loudest window. Windows above it are not silent.
    #[serde(default = "nonsilent_below_db")]
    pub below_db: f64,
    /// Length of the window that moves over the samples, in samples.
    #[serde(default = "nonsilent_window_samples")]
    pub window_samples: u32,
}

/// Magnitudes of the lowest bins of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MagnitudeSpec {
    /// Number of bins.
    pub bins: u32,
    /// Minimum magnitude.
    #[serde(default = "tacotron_floor")]
    pub floor: f64,
    /// Whether to take natural logarithms, rather than plain magnitudes (OpenSeq2Seq's `exp_mag`).
    #[serde(default)]
    pub log: bool,
}

/// Type of the features of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureOutput {
    /// Power of the lowest bins, in decibels.
    Spectrogram,
    /// Natural logarithm of the mel energies.
    LogMel,
    /// Mel-frequency cepstra: the cosine transform of the log mel energies.
    Mfcc,
}

/// Which features are normalised to mean 0 and standard deviation 1. A feature with deviation 0
/// becomes 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureNorm {
    /// No normalisation.
    #[default]
    None,
    /// All features of an utterance together.
    Global,
    /// Each feature of an utterance separately, over its frames.
    PerFeature,
}

/// A window function. NumPy and Kaldi use symmetric windows; librosa and PyTorch use periodic ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowFunction {
    /// Symmetric Hann window: 0 at both ends.
    Hann,
    /// Periodic Hann window: 0 at the first sample.
    HannPeriodic,
    /// Symmetric Hamming window: 0.08 at both ends.
    Hamming,
    /// Periodic Hamming window.
    HammingPeriodic,
    /// Symmetric Blackman window: 0 at both ends.
    Blackman,
    /// Kaldi's window: the symmetric Hann window to the power of 0.85.
    Povey,
    /// Rectangular window: all ones.
    Rectangular,
}

/// Padding at both ends of the samples, where frames are centred on their hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// The samples mirrored, without repeating the last one.
    Reflect,
    /// Zeros (silence).
    Zeros,
}

/// Value range of the samples: the value of full scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SampleScale {
    /// 1 (lhotse).
    #[default]
    Unit,
    /// 32,768 (Kaldi).
    Int16,
}

/// Triangular filters whose corners are evenly spaced in mels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MelSpec {
    /// Definition of the mel scale.
    #[serde(default)]
    pub scale: MelScale,
    /// Whether all filters have the same area, rather than the same height.
    #[serde(default = "yes")]
    pub area_normalized: bool,
    /// Lower edge of the first filter, in hertz.
    #[serde(default)]
    pub low_hz: f64,
    /// Upper edge of the last filter, in hertz. Absent: half the sample rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_hz: Option<f64>,
}

impl Default for MelSpec {
    /// librosa's defaults.
    fn default() -> Self {
        Self { scale: MelScale::Slaney, area_normalized: true, low_hz: 0.0, high_hz: None }
    }
}

/// How hertz are converted to mels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MelScale {
    /// Slaney's Auditory Toolbox: linear up to 1 kHz, logarithmic above.
    #[default]
    Slaney,
    /// HTK: 2595 log10(1 + f / 700).
    Htk,
}

fn openseq2seq_window_ms() -> f64 {
    20.0
}

fn kaldi_window_ms() -> f64 {
    25.0
}

fn mozilla_window_ms() -> f64 {
    32.0
}

fn mozilla_hop_ms() -> f64 {
    20.0
}

fn hop_ms() -> f64 {
    10.0
}

fn python_speech_features_fft() -> u32 {
    512
}

fn preemphasis() -> f64 {
    0.97
}

fn pad_frames_to() -> u32 {
    8
}

fn global() -> FeatureNorm {
    FeatureNorm::Global
}

fn symmetric_hann() -> WindowFunction {
    WindowFunction::Hann
}

fn povey() -> WindowFunction {
    WindowFunction::Povey
}

fn mirrored() -> Padding {
    Padding::Reflect
}

fn librosa_log_offset() -> f64 {
    1e-20
}

fn kaldi_low_hz() -> f64 {
    20.0
}

fn kaldi_high_hz() -> f64 {
    -400.0
}

fn kaldi_energy_floor() -> f64 {
    f64::from(f32::EPSILON)
}

fn tensorflow_filters() -> u32 {
    40
}

fn tensorflow_low_hz() -> f64 {
    20.0
}

fn tensorflow_high_hz() -> f64 {
    4000.0
}

fn tacotron_filters() -> u32 {
    80
}

fn tacotron_mel() -> MelSpec {
    MelSpec { high_hz: Some(8000.0), ..MelSpec::default() }
}

fn nonsilent_below_db() -> f64 {
    60.0
}

fn nonsilent_window_samples() -> u32 {
    2048
}

fn tacotron_floor() -> f64 {
    1e-5
}

fn tacotron_window_samples() -> u32 {
    1024
}

fn tacotron_hop_samples() -> u32 {
    256
}

fn yes() -> bool {
    true
}
