//! Target features of Tacotron 2: NVIDIA's `TacotronSTFT.mel_spectrogram`, and OpenSeq2Seq's
//! `get_speech_features` of the kinds `mel` and `both`.
//!
//! Known differences: computation is in FP64, while both sources keep FP32. Recordings shorter than
//! half an FFT are mirrored as often as necessary, while PyTorch refuses them.

use std::ops::Range;

use zoo_recipes::{FeaturesSpec, MagnitudeSpec, Padding, WindowFunction};

use super::at_least;
use crate::audio::mel::{MelEnergies, MelFilters};
use crate::audio::stft::Stft;
use crate::audio::trim::Trim;
use crate::audio::vectors::{logarithms, vectorised};

#[derive(Debug, Clone)]
pub(super) struct Tacotron {
    stft: Stft,
    filters: MelFilters,
    floor: f64,
    magnitude: Option<MagnitudeSpec>,
    trim: Option<Trim>,
    pad_frames_to: Option<usize>,
    batch_padding: f32,
}

impl Tacotron {
    pub(super) fn new(spec: &FeaturesSpec, rate: u32) -> Option<Self> {
        let FeaturesSpec::Tacotron {
            filters,
            mel,
            floor,
            magnitude,
            trim_db,
            pad_frames_to,
            batch_padding,
            ..
        } = spec
        else {
            return None;
        };
        let (fft, window) = (spec.fft_length(rate), spec.window_samples(rate));
        let (hop, hann) = (spec.hop_samples(rate), WindowFunction::HannPeriodic);
        Some(Self {
            stft: Stft::new(fft, hop, hann, window, Some(Padding::Reflect)),
            filters: MelFilters::triangular(rate, fft, *filters as usize, mel),
            floor: *floor,
            magnitude: *magnitude,
            trim: trim_db.map(|top_db| Trim { top_db, ..Trim::openseq2seq(fft, hop) }),
            pad_frames_to: pad_frames_to.map(|multiple| multiple.max(1) as usize),
            batch_padding: *batch_padding as f32,
        })
    }

    /// Number of frames for samples that are not trimmed. For trimmed recordings it depends on the
    /// sound.
    pub(super) fn frames(&self, samples: usize) -> usize {
        self.stft.frames(samples)
    }

    /// Range of the samples from which frames are made.
    pub(super) fn kept(&self, samples: &[f32]) -> Range<usize> {
        self.trim.map_or(0..samples.len(), |trim| trim.interval(samples))
    }

    /// Frames of the sound without appended silence, [frames, mels followed by bins].
    pub(super) fn features(&self, samples: &[f32]) -> Vec<f64> {
        let samples = &samples[self.kept(samples)];
        let frames = self.stft.frames(samples.len());
        let bins = self.magnitude.map_or(0, |magnitude| magnitude.bins as usize);
        let (mut energies, mut linear) =
            (MelEnergies::new(&self.filters, frames), Vec::with_capacity(frames * bins));
        let mut magnitudes = vec![0.0; self.stft.bins()];
        self.stft.each_power(samples, |power| {
            vectorised(
                #[inline(always)]
                || {
                    for (magnitude, power) in magnitudes.iter_mut().zip(power) {
                        *magnitude = power.sqrt();
                    }
                },
            );
            energies.push(&magnitudes, None);
            linear.extend_from_slice(&magnitudes[..bins]);
        });
        let mut mels = energies.finish();
        at_least(&mut mels, self.floor);
        logarithms(&mut mels);
        let Some(MagnitudeSpec { floor, log, .. }) = self.magnitude else { return mels };
        at_least(&mut linear, floor);
        if log {
            logarithms(&mut linear);
        }
        let rows = mels.chunks_exact(self.filters.len()).zip(linear.chunks_exact(bins));
        rows.flat_map(|(mels, bins)| mels.iter().chain(bins)).copied().collect()
    }

    /// Number of silent frames that follow `frames` frames of sound, and the values of a silent
    /// frame.
    pub(super) fn tail(&self, frames: usize) -> (usize, Vec<f32>) {
        let Some(multiple) = self.pad_frames_to else { return (0, Vec::new()) };
        let mut frame = vec![self.floor.ln() as f32; self.filters.len()];
        if let Some(MagnitudeSpec { bins, floor, log }) = self.magnitude {
            let value = if log { floor.ln() } else { floor } as f32;
            frame.resize(frame.len() + bins as usize, value);
        }
        // As in OpenSeq2Seq: 2 to 9 frames if the multiple is 8.
        (multiple - (frames + 1) % multiple + 1, frame)
    }

    pub(super) fn batch_padding(&self) -> f32 {
        self.batch_padding
    }
}
