//! The short-time Fourier transform, as librosa and PyTorch define it.

use realfft::num_complex::Complex;
use zoo_recipes::{Padding, WindowFunction};

use super::spectrum::{Spectrum, SpectrumRoom};
use super::window::window;

/// A planned transform. `n_fft` 1024, hop 256, a periodic Hann window and mirrored padding are those of Tacotron 2.
#[derive(Debug, Clone)]
pub struct Stft {
    spectrum: Spectrum,
    /// The window, which lies in the middle of the frame, and where it begins there.
    window: Vec<f64>,
    first: usize,
    hop: usize,
    /// `None`: the first frame begins at the first sample. Else it is centred on it.
    centred: Option<Padding>,
}

impl Stft {
    /// `window_length` is at most `n_fft`; what is beyond is left out. Lengths are in samples, at least 1.
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
        Self { spectrum, window, first, hop: hop.max(1), centred }
    }

    /// Bins of a frame.
    pub fn bins(&self) -> usize {
        self.spectrum.bins()
    }

    /// Frames of so many samples. Not centred, a rest that fills no frame is left out.
    pub fn frames(&self, samples: usize) -> usize {
        let length = match self.centred {
            // What mirroring cannot make of nothing.
            Some(_) if samples == 0 => return 0,
            Some(_) => samples + 2 * self.margin(),
            None => samples,
        };
        if length < self.spectrum.length() { 0 } else { 1 + (length - self.spectrum.length()) / self.hop }
    }

    /// Magnitudes, [frames, bins] row-major.
    pub fn magnitudes(&self, samples: &[f32]) -> Vec<f32> {
        let samples: Vec<f64> = samples.iter().map(|sample| f64::from(*sample)).collect();
        let mut magnitudes = Vec::with_capacity(self.frames(samples.len()) * self.bins());
        self.each_power(&samples, |power| magnitudes.extend(power.iter().map(|power| power.sqrt() as f32)));
        magnitudes
    }

    /// Complex spectra, [frames, bins] row-major.
    pub fn complex(&self, samples: &[f32]) -> Vec<Complex<f32>> {
        let samples: Vec<f64> = samples.iter().map(|sample| f64::from(*sample)).collect();
        let mut spectra = Vec::with_capacity(self.frames(samples.len()) * self.bins());
        self.each(&samples, |spectrum, room| {
            let bins = spectrum.complex(room);
            spectra.extend(bins.iter().map(|bin| Complex::new(bin.re as f32, bin.im as f32)));
        });
        spectra
    }

    /// Calls `visit` with the power spectrum of each frame in turn.
    pub(super) fn each_power(&self, samples: &[f64], mut visit: impl FnMut(&[f64])) {
        self.each(samples, |spectrum, room| visit(spectrum.power(room)));
    }

    fn each(&self, samples: &[f64], mut visit: impl FnMut(&Spectrum, &mut SpectrumRoom)) {
        let mut room = self.spectrum.room();
        let before = self.centred.map_or(0, |_| self.margin());
        let mut edge = vec![0.0; self.window.len()];
        for frame in 0..self.frames(samples.len()) {
            let start = (frame * self.hop + self.first) as isize - before as isize;
            let inside = usize::try_from(start).ok().and_then(|start| samples.get(start..start + edge.len()));
            let signal = inside.unwrap_or_else(|| {
                for (at, place) in (start..).zip(&mut edge) {
                    *place = self.beyond(samples, at);
                }
                &edge
            });
            room.window(self.first, signal, &self.window);
            visit(&self.spectrum, &mut room);
        }
    }

    /// The sample at a place that may lie before or behind them.
    fn beyond(&self, samples: &[f64], at: isize) -> f64 {
        match self.centred {
            Some(Padding::Reflect) => samples[mirrored(at, samples.len())],
            Some(Padding::Zeros) | None => {
                usize::try_from(at).ok().and_then(|at| samples.get(at)).copied().unwrap_or(0.0)
            }
        }
    }

    fn margin(&self) -> usize {
        self.spectrum.length() / 2
    }
}

/// Where a place comes from when the samples are mirrored at both ends as often as it takes (`numpy.pad`): the last one not doubled.
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
        let pad = |samples: &[f64], margin: isize, padding| {
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
        // A periodic Hann window has the sum 512, of which half is at the positive frequency.
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
