//! The short-time Fourier transform, as librosa and PyTorch define it.

use std::ops::Range;

use realfft::num_complex::Complex;
use zoo_recipes::{Padding, WindowFunction};

use super::spectrum::{Spectrum, SpectrumRoom};
use super::vectors::vectorised;
use super::window::window;

/// A planned transform. Tacotron 2 uses `n_fft` 1024, hop 256, a periodic Hann window and mirrored
/// padding.
#[derive(Debug, Clone)]
pub struct Stft {
    spectrum: Spectrum,
    /// The window, which is centred in the frame; `first` is its position there.
    window: Vec<f64>,
    first: usize,
    hop: usize,
    /// Padding if frames are centred on their samples. `None` if the first frame begins at the
    /// first sample.
    centred: Option<Padding>,
    /// Coefficient of the pre-emphasis y[t] = x[t] - preemphasis x[t - 1], y[0] = x[0], before the
    /// transform.
    preemphasis: f64,
}

impl Stft {
    /// Plans a transform. `window_length` is at most `n_fft`; a larger value is reduced to it.
    /// Lengths are in samples, at least 1.
    pub fn new(
        n_fft: usize,
        hop: usize,
        function: WindowFunction,
        window_length: usize,
        centred: Option<Padding>,
    ) -> Self {
        let spectrum = Spectrum::new(n_fft);
        let window = window(function, window_length.min(spectrum.length()));
        let first = (spectrum.length() - window.len()) / 2;
        Self { spectrum, window, first, hop: hop.max(1), centred, preemphasis: 0.0 }
    }

    /// Adds a pre-emphasis: transforms y[t] = x[t] - preemphasis x[t - 1], y[0] = x[0], which is
    /// then mirrored or padded.
    #[must_use]
    pub fn pre_emphasising(self, preemphasis: f64) -> Self {
        Self { preemphasis, ..self }
    }

    /// Number of bins per frame.
    pub fn bins(&self) -> usize {
        self.spectrum.bins()
    }

    /// Number of frames for `samples` samples. If frames are not centred, a remainder shorter than
    /// a frame is dropped.
    pub fn frames(&self, samples: usize) -> usize {
        let length = match self.centred {
            // An empty signal cannot be mirrored.
            Some(_) if samples == 0 => return 0,
            Some(_) => samples + 2 * self.margin(),
            None => samples,
        };
        if length < self.spectrum.length() { 0 } else { 1 + (length - self.spectrum.length()) / self.hop }
    }

    /// Magnitudes, [frames, bins] row-major.
    pub fn magnitudes(&self, samples: &[f32]) -> Vec<f32> {
        let mut magnitudes = Vec::with_capacity(self.frames(samples.len()) * self.bins());
        self.each_power(samples, |power| magnitudes.extend(power.iter().map(|power| power.sqrt() as f32)));
        magnitudes
    }

    /// Complex spectra, [frames, bins] row-major.
    pub fn complex(&self, samples: &[f32]) -> Vec<Complex<f32>> {
        let mut spectra = Vec::with_capacity(self.frames(samples.len()) * self.bins());
        self.each(samples, |spectrum, room| {
            let bins = spectrum.complex(room);
            spectra.extend(bins.iter().map(|bin| Complex::new(bin.re as f32, bin.im as f32)));
        });
        spectra
    }

    /// Calls `visit` with the power spectrum of each frame, in order.
    pub(super) fn each_power(&self, samples: &[f32], visit: impl FnMut(&[f64])) {
        let (frames, fill) = (self.frames(samples.len()), self.framing(samples));
        self.spectrum.each_power(frames, self.inside(), fill, visit);
    }

    /// Calls `visit` with the power spectra of two frames at a time, in order, or of the last one
    /// alone.
    pub(super) fn each_pair(&self, samples: &[f32], visit: impl FnMut(&[f64], Option<&[f64]>)) {
        let (frames, fill) = (self.frames(samples.len()), self.framing(samples));
        self.spectrum.each_pair(frames, self.inside(), fill, visit);
    }

    fn each(&self, samples: &[f32], mut visit: impl FnMut(&Spectrum, &mut SpectrumRoom)) {
        let (mut room, fill) = (self.spectrum.room(), self.framing(samples));
        for frame in 0..self.frames(samples.len()) {
            room.frame.fill(0.0);
            fill(frame, &mut room.frame[self.inside()]);
            visit(&self.spectrum, &mut room);
        }
    }

    /// Range of the window in a frame.
    fn inside(&self) -> Range<usize> {
        self.first..self.first + self.window.len()
    }

    /// Returns a function that writes the windowed samples of a frame.
    fn framing<'s>(&'s self, samples: &'s [f32]) -> impl Fn(usize, &mut [f64]) + 's {
        let before = self.centred.map_or(0, |_| self.margin());
        move |frame, place| {
            let start = (frame * self.hop + self.first) as isize - before as isize;
            // Includes the sample before the first one, for the pre-emphasis.
            let from = usize::try_from(start - 1).ok();
            let inside = from.and_then(|from| samples.get(from..=from + place.len()));
            vectorised(
                #[inline(always)]
                || match inside {
                    Some(inside) if self.preemphasis == 0.0 => {
                        for ((place, now), weight) in place.iter_mut().zip(&inside[1..]).zip(&self.window) {
                            *place = f64::from(*now) * weight;
                        }
                    }
                    Some(inside) => {
                        let pairs = inside[1..].iter().zip(inside);
                        for ((place, (now, before)), weight) in place.iter_mut().zip(pairs).zip(&self.window)
                        {
                            *place = (f64::from(*now) - self.preemphasis * f64::from(*before)) * weight;
                        }
                    }
                    None => {
                        for ((at, place), weight) in (start..).zip(place).zip(&self.window) {
                            *place = self.beyond(samples, at) * weight;
                        }
                    }
                },
            );
        }
    }

    /// The sample at a position that may be before or after the samples.
    fn beyond(&self, samples: &[f32], at: isize) -> f64 {
        let emphasised = |at: usize| match at.checked_sub(1) {
            Some(before) if self.preemphasis != 0.0 => {
                f64::from(samples[at]) - self.preemphasis * f64::from(samples[before])
            }
            _ => f64::from(samples[at]),
        };
        match self.centred {
            Some(Padding::Reflect) => emphasised(mirrored(at, samples.len())),
            Some(Padding::Zeros) | None => {
                let inside = usize::try_from(at).ok().filter(|at| *at < samples.len());
                inside.map_or(0.0, emphasised)
            }
        }
    }

    fn margin(&self) -> usize {
        self.spectrum.length() / 2
    }
}

/// Source of a position when the samples are mirrored at both ends as often as necessary
/// (`numpy.pad`), without repeating the last sample.
pub(super) fn mirrored(at: isize, length: usize) -> usize {
    if length == 1 {
        return 0;
    }
    let period = 2 * (length - 1);
    let around = at.rem_euclid(period as isize) as usize;
    around.min(period - around)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirroring_is_that_of_numpy() {
        let pad = |samples: &[f32], margin: isize, padding| {
            let stft = Stft::new(2, 1, WindowFunction::Rectangular, 2, Some(padding));
            (-margin..samples.len() as isize + margin).map(|at| stft.beyond(samples, at)).collect::<Vec<_>>()
        };
        assert_eq!(pad(&[1.0, 2.0, 3.0], 2, Padding::Reflect), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]);
        // numpy.pad([1, 2], 3, mode="reflect")
        assert_eq!(pad(&[1.0, 2.0], 3, Padding::Reflect), [2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]);
        assert_eq!(pad(&[7.0], 2, Padding::Reflect), [7.0; 5]);
        assert_eq!(pad(&[7.0], 1, Padding::Zeros), [0.0, 7.0, 0.0]);
    }

    #[test]
    fn a_tone_stands_in_its_bin() {
        let tone: Vec<f32> =
            (0..4096).map(|t| (std::f32::consts::TAU * 64.0 * t as f32 / 1024.0).cos()).collect();
        let stft = Stft::new(1024, 256, WindowFunction::HannPeriodic, 1024, Some(Padding::Reflect));
        let magnitudes = stft.magnitudes(&tone);
        assert_eq!(magnitudes.len(), 17 * 513);
        let middle = &magnitudes[8 * 513..9 * 513];
        // A periodic Hann window has the sum 512; half of it is at the positive frequency.
        assert!((middle[64] - 256.0).abs() < 1e-2, "{}", middle[64]);
        assert!(middle[70] < 1e-2);
    }

    #[test]
    fn frames_are_counted_as_they_come() {
        for (samples, centred) in [
            (0, None),
            (5, None),
            (1024, None),
            (0, Some(Padding::Zeros)),
            (1, Some(Padding::Reflect)),
            (777, Some(Padding::Zeros)),
        ] {
            let stft = Stft::new(512, 160, WindowFunction::Hann, 320, centred);
            assert_eq!(stft.magnitudes(&vec![0.5; samples]).len(), stft.frames(samples) * 257, "{samples}");
        }
    }
}
