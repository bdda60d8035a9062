//! The inverse short-time Fourier transform, as defined by librosa and PyTorch. Frames are
//! transformed back, multiplied by the window a second time, added where they overlap, and divided
//! by the sum of the squared windows.

use std::fmt;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftNum, RealFftPlanner};
use zoo_recipes::WindowFunction;

use super::{SynthesisError, frames};
use crate::audio::vectors::vectorised;
use crate::audio::window::window;

/// A planned inverse transform; FP64 inside. Many threads can share one.
#[derive(Debug, Clone)]
pub struct InverseStft {
    frames: OverlapAdd<f64>,
    centred: bool,
}

impl InverseStft {
    /// The inverse of [`Stft::new`](crate::audio::stft::Stft::new) with the same arguments, for any
    /// padding.
    pub fn new(
        n_fft: usize,
        hop: usize,
        function: WindowFunction,
        window_length: usize,
        centred: bool,
    ) -> Self {
        Self { frames: OverlapAdd::new(n_fft, hop, function, window_length), centred }
    }

    /// Number of bins per frame.
    pub fn bins(&self) -> usize {
        self.frames.bins()
    }

    /// Number of samples for `frames` frames if no length is given; shorter by half a frame at both
    /// ends if frames are centred.
    pub fn samples(&self, frames: usize) -> usize {
        self.frames.length(frames).saturating_sub(2 * self.margin())
    }

    /// Transforms spectra, [frames, bins] row-major, to samples. If `length` is given, samples that
    /// no frame reaches are 0.
    ///
    /// # Errors
    /// The spectra are not a whole number of frames.
    pub fn inverse(
        &self,
        spectra: &[Complex<f32>],
        length: Option<usize>,
    ) -> Result<Vec<f32>, SynthesisError> {
        let frames = frames(spectra.len(), self.bins())?;
        let mut sound = vec![0.0; self.frames.length(frames)];
        let mut room = self.frames.room();
        for (at, spectrum) in spectra.chunks_exact(self.bins()).enumerate() {
            for (bin, given) in room.bins.iter_mut().zip(spectrum) {
                *bin = Complex::new(f64::from(given.re), f64::from(given.im));
            }
            self.frames.add(&mut room, &mut sound[at * self.frames.hop..]);
        }
        let gains = self.frames.gains(frames);
        let samples = sound.iter().zip(&gains).map(|(sample, gain)| (sample * gain) as f32);
        let mut samples: Vec<f32> = samples.skip(self.margin()).collect();
        samples.resize(length.unwrap_or(self.samples(frames)), 0.0);
        Ok(samples)
    }

    fn margin(&self) -> usize {
        if self.centred { self.frames.n_fft() / 2 } else { 0 }
    }
}

/// Transforms frames back into samples, in the precision of `T`.
#[derive(Clone)]
pub(super) struct OverlapAdd<T: FftNum> {
    plan: Arc<dyn ComplexToReal<T>>,
    /// The window divided by the length of the transform, which does not scale; `first` is its
    /// position in the frame.
    window: Vec<T>,
    first: usize,
    squares: Vec<f64>,
    hop: usize,
}

impl<T: FftNum> fmt::Debug for OverlapAdd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OverlapAdd({}, {})", self.n_fft(), self.hop)
    }
}

/// Buffers for the transform of one frame.
#[derive(Debug)]
pub(super) struct FrameRoom<T> {
    /// The spectrum. The caller writes it, and the transform overwrites it.
    pub(super) bins: Vec<Complex<T>>,
    pub(super) frame: Vec<T>,
    scratch: Vec<Complex<T>>,
}

impl<T: FftNum> OverlapAdd<T> {
    pub(super) fn new(n_fft: usize, hop: usize, function: WindowFunction, window_length: usize) -> Self {
        let n_fft = n_fft.max(1);
        let window = window(function, window_length.min(n_fft));
        Self {
            plan: RealFftPlanner::new().plan_fft_inverse(n_fft),
            first: (n_fft - window.len()) / 2,
            squares: window.iter().map(|weight| weight * weight).collect(),
            window: window.iter().map(|weight| precise(weight / n_fft as f64)).collect(),
            hop: hop.max(1),
        }
    }

    pub(super) fn n_fft(&self) -> usize {
        self.plan.len()
    }

    pub(super) fn bins(&self) -> usize {
        self.plan.complex_len()
    }

    /// Number of samples from the beginning of the first frame to the end of the last.
    pub(super) fn length(&self, frames: usize) -> usize {
        if frames == 0 { 0 } else { self.n_fft() + self.hop * (frames - 1) }
    }

    pub(super) fn room(&self) -> FrameRoom<T> {
        FrameRoom {
            bins: self.plan.make_input_vec(),
            frame: self.plan.make_output_vec(),
            scratch: self.plan.make_scratch_vec(),
        }
    }

    /// Adds the frame of `room.bins` to the samples from its beginning on. The imaginary parts of
    /// the constant and of half the rate are ignored, because real samples cannot have them.
    pub(super) fn add(&self, room: &mut FrameRoom<T>, sound: &mut [T]) {
        let FrameRoom { bins, frame, scratch } = room;
        let last = bins.len() - 1;
        bins[0].im = T::zero();
        if self.n_fft().is_multiple_of(2) {
            bins[last].im = T::zero();
        }
        self.plan
            .process_with_scratch(bins, frame, scratch)
            .expect("the room has the plan's sizes and its ends are real");
        vectorised(
            #[inline(always)]
            || {
                let places = sound[self.first..].iter_mut().zip(&frame[self.first..]);
                for ((place, sample), weight) in places.zip(&self.window) {
                    *place = *place + *sample * *weight;
                }
            },
        );
    }

    /// The reciprocal of the sum of the squared windows at each of [`Self::length`] samples; 1
    /// where no window reaches.
    pub(super) fn gains(&self, frames: usize) -> Vec<T> {
        let mut sums = vec![0.0; self.length(frames)];
        for frame in 0..frames {
            for (sum, square) in sums[frame * self.hop + self.first..].iter_mut().zip(&self.squares) {
                *sum += square;
            }
        }
        // librosa's minimum sum: the smallest normal number in FP32.
        let least = f64::from(f32::MIN_POSITIVE);
        sums.into_iter().map(|sum| precise(if sum > least { 1.0 / sum } else { 1.0 })).collect()
    }
}

fn precise<T: FftNum>(value: f64) -> T {
    T::from_f64(value).unwrap_or_else(T::zero)
}

#[cfg(test)]
mod tests {
    use zoo_recipes::Padding;

    use super::*;
    use crate::audio::stft::Stft;

    #[test]
    fn samples_come_back() {
        let sound: Vec<f32> = (0..3_000).map(|at| ((at * at % 1_009) as f32 / 504.5) - 1.0).collect();
        for (n_fft, hop, function, length) in [
            (512, 128, WindowFunction::HannPeriodic, 512),
            (512, 100, WindowFunction::HammingPeriodic, 400),
            (255, 60, WindowFunction::Hann, 255),
            (64, 64, WindowFunction::Rectangular, 64),
        ] {
            for padding in [Padding::Reflect, Padding::Zeros] {
                let spectra = Stft::new(n_fft, hop, function, length, Some(padding)).complex(&sound);
                let inverse = InverseStft::new(n_fft, hop, function, length, true);
                let made = inverse.inverse(&spectra, Some(sound.len())).unwrap();
                assert_eq!(made.len(), sound.len());
                // If the frames end before the samples do, the half window after the middle of the
                // last frame is lost.
                let reached = inverse.samples(spectra.len() / inverse.bins()).min(sound.len());
                for (a, b) in made.iter().zip(&sound).take(reached) {
                    assert!((a - b).abs() < 1e-5, "{n_fft} {hop} {function:?}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn lengths_and_shapes_without_sense_are_no_panic() {
        let inverse = InverseStft::new(16, 4, WindowFunction::HannPeriodic, 16, true);
        assert!(inverse.inverse(&[], None).unwrap().is_empty());
        assert_eq!(inverse.inverse(&[], Some(3)).unwrap(), [0.0; 3]);
        assert!(matches!(
            inverse.inverse(&[Complex::new(1.0, 0.0); 10], None),
            Err(SynthesisError::Shape { values: 10, width: 9 })
        ));
        // Imaginary parts at both ends are ignored.
        let mut spectrum = [Complex::new(1.0_f32, 0.0); 18];
        let plain = inverse.inverse(&spectrum, Some(20)).unwrap();
        for at in [0, 8, 9, 17] {
            spectrum[at].im = 5.0;
        }
        assert_eq!(inverse.inverse(&spectrum, Some(20)).unwrap(), plain);
        let tiny = InverseStft::new(0, 0, WindowFunction::Hann, 0, false);
        assert_eq!(tiny.inverse(&[Complex::new(2.0, 1.0); 3], None).unwrap().len(), 3);
    }
}
