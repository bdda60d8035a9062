//! From a waveform to the features that a recogniser reads. Frequencies in hertz, times in milliseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A front end, named after the library whose numbers it gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeaturesSpec {
    /// python_speech_features 0.6 as OpenSeq2Seq calls it: samples scaled to a peak of 32,767 and cut to integers, frames
    /// that are not centred, filters laid on whole FFT bins.
    PythonSpeechFeatures {
        /// What a frame becomes. Mel filters take a rectangular window, a spectrogram a symmetric Hann window.
        output: FeatureOutput,
        /// Features a frame. Cepstra are taken of twice as many mel filters and lifted by twice as much.
        features: u32,
        /// Length of a frame.
        #[serde(default = "openseq2seq_window_ms")]
        window_ms: f64,
        /// From one frame to the next.
        #[serde(default = "hop_ms")]
        hop_ms: f64,
        /// FFT length of mel filters; a spectrogram's is the frame's.
        #[serde(default = "python_speech_features_fft")]
        fft: u32,
        /// y[t] = x[t] - preemphasis x[t - 1]; not of a spectrogram.
        #[serde(default = "preemphasis")]
        preemphasis: f64,
        /// Silence is added until the number of frames is a multiple of this.
        #[serde(default = "pad_frames_to")]
        pad_frames_to: u32,
        /// Mean and deviation that become 0 and 1.
        #[serde(default = "global")]
        normalize: FeatureNorm,
    },
    /// librosa as OpenSeq2Seq calls it: samples scaled to a peak of 1, centred frames.
    Librosa {
        /// What a frame becomes.
        output: FeatureOutput,
        /// Features a frame. Cepstra are taken of twice as many mel filters.
        features: u32,
        /// Length of the window.
        #[serde(default = "openseq2seq_window_ms")]
        window_ms: f64,
        /// From one frame to the next.
        #[serde(default = "hop_ms")]
        hop_ms: f64,
        /// FFT length. Absent: the window's for a spectrogram, else the next power of two.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fft: Option<u32>,
        /// Window, in the middle of the FFT's frame.
        #[serde(default = "symmetric_hann")]
        window: WindowFunction,
        /// What lies before the first and after the last sample. librosa mirrored until 0.9.
        #[serde(default = "mirrored")]
        padding: Padding,
        /// Leave out silence at both ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trim: Option<TrimSpec>,
        /// Scale the samples to a peak of 1.
        #[serde(default = "yes")]
        peak_normalize: bool,
        /// Deviation of the noise that is added to the samples.
        #[serde(default)]
        dither: f64,
        /// y[t] = x[t] - preemphasis x[t - 1]; not of a spectrogram.
        #[serde(default = "preemphasis")]
        preemphasis: f64,
        /// Mel filters.
        #[serde(default)]
        mel: MelSpec,
        /// Added to a mel energy before the logarithm.
        #[serde(default = "librosa_log_offset")]
        log_offset: f64,
        /// Mean and deviation that become 0 and 1.
        #[serde(default = "global")]
        normalize: FeatureNorm,
    },
    /// Kaldi's log-mel filter bank; the defaults are lhotse's.
    Kaldi {
        /// Mel filters, which are the features.
        features: u32,
        /// Length of a frame.
        #[serde(default = "kaldi_window_ms")]
        window_ms: f64,
        /// From one frame to the next.
        #[serde(default = "hop_ms")]
        hop_ms: f64,
        /// Window.
        #[serde(default = "povey")]
        window: WindowFunction,
        /// y[t] = x[t] - preemphasis x[t - 1] within a frame.
        #[serde(default = "preemphasis")]
        preemphasis: f64,
        /// Take a frame's mean off it.
        #[serde(default = "yes")]
        remove_dc: bool,
        /// Only frames that lie within the samples; else the samples are mirrored, and frames are counted by hops.
        #[serde(default)]
        snip_edges: bool,
        /// Largest sample.
        #[serde(default)]
        scale: SampleScale,
        /// Deviation of the noise that is added to the samples, in their scale.
        #[serde(default)]
        dither: f64,
        /// Lower edge of the first filter.
        #[serde(default = "kaldi_low_hz")]
        low_hz: f64,
        /// Upper edge of the last filter; 0 or less: so far from half the sample rate.
        #[serde(default = "kaldi_high_hz")]
        high_hz: f64,
        /// Least energy of a filter.
        #[serde(default = "kaldi_energy_floor")]
        energy_floor: f64,
        /// Mean and deviation that become 0 and 1.
        #[serde(default)]
        normalize: FeatureNorm,
    },
    /// TensorFlow's `audio_spectrogram` and `mfcc`: cepstra of frames that lie within the samples, under a periodic Hann window. The
    /// defaults are those of Mozilla's DeepSpeech.
    #[serde(rename = "tensorflow")]
    TensorFlow {
        /// Cepstra, which are the features.
        features: u32,
        /// Length of a frame.
        #[serde(default = "mozilla_window_ms")]
        window_ms: f64,
        /// From one frame to the next.
        #[serde(default = "mozilla_hop_ms")]
        hop_ms: f64,
        /// Mel filters, over magnitudes, that cepstra are taken of.
        #[serde(default = "tensorflow_filters")]
        filters: u32,
        /// Lower edge of the first filter.
        #[serde(default = "tensorflow_low_hz")]
        low_hz: f64,
        /// Upper edge of the last filter.
        #[serde(default = "tensorflow_high_hz")]
        high_hz: f64,
        /// Mean and deviation that become 0 and 1.
        #[serde(default)]
        normalize: FeatureNorm,
    },
    /// What a Tacotron 2 writes: log mel magnitudes of centred frames under a periodic Hann window, the samples mirrored at their ends. The
    /// defaults are NVIDIA's for 22,050 Hz.
    Tacotron {
        /// Mel filters, over magnitudes.
        #[serde(default = "tacotron_filters")]
        filters: u32,
        /// The filters.
        #[serde(default = "tacotron_mel")]
        mel: MelSpec,
        /// Least mel magnitude, of which the natural logarithm is taken.
        #[serde(default = "tacotron_floor")]
        floor: f64,
        /// Magnitudes of single bins beside them: a frame has the mels first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        magnitude: Option<MagnitudeSpec>,
        /// FFT length, in samples.
        #[serde(default = "tacotron_window_samples")]
        fft: u32,
        /// Length of the window, in samples.
        #[serde(default = "tacotron_window_samples")]
        window_samples: u32,
        /// From one frame to the next, in samples.
        #[serde(default = "tacotron_hop_samples")]
        hop_samples: u32,
        /// Leave out what lies this far below the loudest frame at both ends (`librosa.effects.trim`; frames of half an FFT, hops of half a hop).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trim_db: Option<f64>,
        /// Frames of silence follow, two at least, until their number is a multiple of this (OpenSeq2Seq: 8). They count in the length.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pad_frames_to: Option<u32>,
        /// What stands behind the shorter utterances of a batch. It does not count in their lengths.
        #[serde(default)]
        batch_padding: f64,
    },
}

/// Silence at both ends, as DALI's `nonsilent_region` finds it in NVIDIA's Jasper: what no window holds whose mean square comes near that of
/// the loudest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrimSpec {
    /// How near is near, in decibels below the loudest window.
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
    /// How many bins.
    pub bins: u32,
    /// Least magnitude.
    #[serde(default = "tacotron_floor")]
    pub floor: f64,
    /// They are natural logarithms; else magnitudes as they are (OpenSeq2Seq's `exp_mag`).
    #[serde(default)]
    pub log: bool,
}

/// What a frame becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureOutput {
    /// Power of the lowest bins, in decibels.
    Spectrogram,
    /// Natural logarithm of mel energies.
    LogMel,
    /// Mel-frequency cepstra: the cosine transform of log mel energies.
    Mfcc,
}

/// What is set to mean 0 and deviation 1. Where the deviation is 0, features become 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureNorm {
    /// Nothing.
    #[default]
    None,
    /// All features of an utterance together.
    Global,
    /// Each feature of an utterance over its frames.
    PerFeature,
}

/// A window function. numpy's and Kaldi's are symmetric; librosa and PyTorch use periodic ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowFunction {
    /// Hann, both ends 0.
    Hann,
    /// Hann of a period, the first sample 0.
    HannPeriodic,
    /// Hamming, both ends 0.08.
    Hamming,
    /// Hamming of a period.
    HammingPeriodic,
    /// Blackman, both ends 0.
    Blackman,
    /// Kaldi's: the symmetric Hann window to the power of 0.85.
    Povey,
    /// All ones.
    Rectangular,
}

/// What lies beyond the samples where frames are centred on their hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// The samples mirrored, the last one not doubled.
    Reflect,
    /// Silence.
    Zeros,
}

/// What the largest sample counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SampleScale {
    /// 1 (lhotse).
    #[default]
    Unit,
    /// 32,768 (Kaldi).
    Int16,
}

/// Triangular filters with their corners evenly spaced in mels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MelSpec {
    /// Which mels.
    #[serde(default)]
    pub scale: MelScale,
    /// Filters have the same area, not the same height.
    #[serde(default = "yes")]
    pub area_normalized: bool,
    /// Lower edge of the first filter.
    #[serde(default)]
    pub low_hz: f64,
    /// Upper edge of the last filter. Absent: half the sample rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_hz: Option<f64>,
}

impl Default for MelSpec {
    /// librosa's.
    fn default() -> Self {
        Self { scale: MelScale::Slaney, area_normalized: true, low_hz: 0.0, high_hz: None }
    }
}

/// How hertz become mels.
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
