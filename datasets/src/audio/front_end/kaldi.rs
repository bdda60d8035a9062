//! Kaldi's log-mel filter bank, as computed by lhotse's `Fbank` from samples in [-1, 1) (used in
//! icefall's recipes).
//!
//! Known differences:
//!
//! - lhotse refuses utterances shorter than the part that it mirrors. Here they are mirrored
//!   repeatedly, as in Kaldi.
//! - With an odd hop, lhotse begins one sample later than Kaldi. Here the position is Kaldi's.
//! - Kaldi draws its dither per frame. Here, as in lhotse, it is added to the samples.

use zoo_recipes::{FeaturesSpec, SampleScale};

use super::{INT16, at_least};
use crate::audio::mel::{MelEnergies, MelFilters};
use crate::audio::spectrum::Spectrum;
use crate::audio::vectors::{logarithms, sum, vectorised};
use crate::audio::window::window;
use crate::random::RandomStream;

#[derive(Debug, Clone)]
pub(super) struct Kaldi {
    window: Vec<f64>,
    hop: usize,
    snip_edges: bool,
    scale: f32,
    dither: f64,
    remove_dc: bool,
    preemphasis: f64,
    energy_floor: f64,
    spectrum: Spectrum,
    filters: MelFilters,
}

impl Kaldi {
    pub(super) fn new(spec: &FeaturesSpec, rate: u32) -> Option<Self> {
        let FeaturesSpec::Kaldi {
            features,
            window: function,
            preemphasis,
            remove_dc,
            snip_edges,
            scale,
            dither,
            low_hz,
            high_hz,
            energy_floor,
            ..
        } = spec
        else {
            return None;
        };
        let fft = spec.fft_length(rate);
        Some(Self {
            window: window(*function, spec.window_samples(rate)),
            hop: spec.hop_samples(rate),
            snip_edges: *snip_edges,
            scale: match scale {
                SampleScale::Unit => 1.0,
                SampleScale::Int16 => INT16,
            },
            dither: *dither,
            remove_dc: *remove_dc,
            preemphasis: *preemphasis,
            energy_floor: *energy_floor,
            spectrum: Spectrum::new(fft),
            filters: MelFilters::kaldi(rate, fft, *features as usize, *low_hz, *high_hz),
        })
    }

    pub(super) fn frames(&self, samples: usize) -> usize {
        match self.snip_edges {
            true if samples < self.window.len() => 0,
            true => 1 + (samples - self.window.len()) / self.hop,
            false => (samples + self.hop / 2) / self.hop,
        }
    }

    pub(super) fn scaled(&self, samples: &[f32]) -> Vec<f32> {
        samples.iter().map(|sample| sample * self.scale).collect()
    }

    pub(super) fn features(&self, mut samples: Vec<f32>, dither: Option<RandomStream>) -> Vec<f64> {
        if let Some(mut stream) = dither.filter(|_| self.dither > 0.0) {
            stream.add_normal(&mut samples, self.dither);
        }
        let frames = self.frames(samples.len());
        let length = self.window.len();
        // If edges are not snipped, the middle of frame k is the middle of hop k.
        let before = if self.snip_edges { 0 } else { (length / 2) as isize - (self.hop / 2) as isize };
        let mut signal = vec![0.0; length];
        let mut energies = MelEnergies::new(&self.filters, frames);
        let fill = |frame: usize, place: &mut [f64]| {
            let start = (frame * self.hop) as isize - before;
            match usize::try_from(start).ok().and_then(|start| samples.get(start..start + length)) {
                Some(inside) => {
                    signal.iter_mut().zip(inside).for_each(|(place, sample)| *place = f64::from(*sample));
                }
                None => {
                    for (at, place) in signal.iter_mut().enumerate() {
                        *place = f64::from(samples[mirrored(start + at as isize, samples.len())]);
                    }
                }
            }
            vectorised(
                #[inline(always)]
                || self.shape(&mut signal, place),
            );
        };
        self.spectrum.each_pair(frames, 0..length, fill, |first, second| energies.push(first, second));
        let mut values = energies.finish();
        at_least(&mut values, self.energy_floor);
        logarithms(&mut values);
        values
    }

    /// Subtracts the mean, applies the pre-emphasis and the window. The first sample of a frame is
    /// also used as the sample before it.
    #[inline(always)]
    fn shape(&self, signal: &mut [f64], shaped: &mut [f64]) {
        if self.remove_dc {
            let mean = sum(signal) / signal.len() as f64;
            signal.iter_mut().for_each(|sample| *sample -= mean);
        }
        let window = &self.window[..signal.len()];
        shaped[0] = (signal[0] - self.preemphasis * signal[0]) * window[0];
        for (((place, sample), before), weight) in
            shaped[1..].iter_mut().zip(&signal[1..]).zip(&*signal).zip(&window[1..])
        {
            *place = (sample - self.preemphasis * before) * weight;
        }
    }
}

/// Source of a position before or after the samples: mirrored as often as necessary, with the last
/// sample repeated.
fn mirrored(at: isize, length: usize) -> usize {
    let length = length as isize;
    let around = at.rem_euclid(2 * length);
    around.min(2 * length - 1 - around) as usize
}
