//! Phase reconstruction from magnitudes, after Griffin and Lim, "Signal estimation from modified
//! short-time Fourier transform" (1984). The variant with momentum is that of Perraudin, Balazs and
//! Søndergaard, "A fast Griffin-Lim algorithm" (2013). The arithmetic follows `librosa.griffinlim`.
//!
//! One pass over the frames is one iteration: a frame is cut out of the previous samples,
//! transformed, given its magnitudes, transformed back and added to the next samples, while it is
//! in the cache. Frames are processed in runs of [`RUN`] for any number of threads, and the runs'
//! samples are added in order, so the sums do not depend on the number of threads.

use std::f64::consts::TAU;
use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use zoo_recipes::{Padding, WindowFunction};

use super::istft::{FrameRoom, OverlapAdd};
use super::{SynthesisError, each_is, frames};
use crate::audio::stft::mirrored;
use crate::audio::vectors::vectorised;
use crate::audio::window::window;
use crate::random::{Purpose, RandomStream};

/// Number of frames that one thread processes together.
const RUN: usize = 32;

/// Settings of the phase reconstruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GriffinLimSpec {
    /// Number of samples in a frame, 2 or more.
    pub n_fft: usize,
    /// Number of samples from frame to frame, from 1 to `window_length`.
    pub hop: usize,
    /// The window, applied before the transform and after its inverse.
    pub window: WindowFunction,
    /// Number of samples in the window, from 1 to `n_fft`. The window is centred in the frame.
    pub window_length: usize,
    /// Padding before and after the samples when they are transformed.
    pub padding: Padding,
    /// Number of forward and inverse transforms after the first inverse.
    pub iterations: u32,
    /// Momentum from 0 to 1. 0 gives the classic algorithm, 0.99 the fast one.
    pub momentum: f64,
}

impl GriffinLimSpec {
    /// librosa's defaults for frames of `n_fft` samples: a hop of a quarter, a periodic Hann
    /// window, zero padding, 32 iterations, momentum 0.99.
    pub fn librosa(n_fft: usize) -> Self {
        Self {
            n_fft,
            hop: n_fft / 4,
            window: WindowFunction::HannPeriodic,
            window_length: n_fft,
            padding: Padding::Zeros,
            iterations: 32,
            momentum: 0.99,
        }
    }

    fn check(&self) -> Result<(), SynthesisError> {
        let Self { n_fft, hop, window_length, momentum, .. } = *self;
        if n_fft < 2 {
            return Err(SynthesisError::setting("n_fft", n_fft, "2 or more"));
        }
        if !(1..=n_fft).contains(&window_length) {
            return Err(SynthesisError::setting(
                "window_length",
                window_length,
                format!("from 1 to {n_fft}"),
            ));
        }
        if !(1..=window_length).contains(&hop) {
            return Err(SynthesisError::setting("hop", hop, format!("from 1 to {window_length}")));
        }
        if !(0.0..=1.0).contains(&momentum) {
            return Err(SynthesisError::setting("momentum", momentum, "from 0 to 1"));
        }
        Ok(())
    }
}

/// The initial phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// All phases are 0. Frames then begin as pulses and the sound is worse; for comparisons.
    Zero,
    /// Uniformly random phases: a function of the seed, the utterance (below 2^32), the frame
    /// (below 2^24) and the bin.
    Random {
        /// Random seed.
        seed: u64,
        /// Number of the utterance.
        utterance: u64,
    },
}

/// A planned phase reconstruction, in FP32. Many threads can share a plan.
#[derive(Clone)]
pub struct GriffinLim {
    forward: Arc<dyn RealToComplex<f32>>,
    backward: OverlapAdd<f32>,
    /// The window before the transform; `first` is its position in the frame.
    window: Vec<f32>,
    first: usize,
    spec: GriffinLimSpec,
}

impl fmt::Debug for GriffinLim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GriffinLim").field(&self.spec).finish()
    }
}

/// State of a run of frames between iterations.
struct Run {
    room: FrameRoom<f32>,
    scratch: Vec<Complex<f32>>,
    /// Spectra of the previous iteration, [frames, bins]; empty without momentum.
    before: Vec<Complex<f32>>,
    /// Samples of the run, from the beginning of its first frame.
    sound: Vec<f32>,
}

impl GriffinLim {
    /// Plans a phase reconstruction.
    ///
    /// # Errors
    /// A setting is not valid.
    pub fn new(spec: &GriffinLimSpec) -> Result<Self, SynthesisError> {
        spec.check()?;
        let GriffinLimSpec { n_fft, hop, window: function, window_length, .. } = *spec;
        Ok(Self {
            forward: RealFftPlanner::new().plan_fft_forward(n_fft),
            backward: OverlapAdd::new(n_fft, hop, function, window_length),
            window: window(function, window_length).into_iter().map(|weight| weight as f32).collect(),
            first: (n_fft - window_length) / 2,
            spec: *spec,
        })
    }

    /// Number of bins per frame.
    pub fn bins(&self) -> usize {
        self.backward.bins()
    }

    /// Reconstructs samples whose magnitudes are close to these, [frames, bins] row-major. `length`
    /// is the number of samples of the original recording. If absent, the samples end in the middle
    /// of the last frame.
    ///
    /// # Errors
    /// The magnitudes are not a whole number of frames, are negative, not finite, or so large that
    /// the samples are not finite; or `length` samples have another number of frames.
    pub fn samples(
        &self,
        magnitudes: &[f32],
        start: Start,
        length: Option<usize>,
    ) -> Result<Vec<f32>, SynthesisError> {
        let (bins, margin, hop) = (self.bins(), self.spec.n_fft / 2, self.spec.hop);
        let frames = frames(magnitudes.len(), bins)?;
        each_is(magnitudes, bins, |magnitude| magnitude >= 0.0 && magnitude.is_finite())?;
        let length = length.unwrap_or(self.backward.length(frames).saturating_sub(2 * margin));
        if length == 0 {
            return Ok(Vec::new());
        }
        let due = 1 + (length + 2 * margin - self.spec.n_fft) / hop;
        if due != frames {
            return Err(SynthesisError::Length { samples: length, frames, due });
        }
        let gains = self.backward.gains(frames);
        let mut runs: Vec<Run> =
            magnitudes.chunks(RUN * bins).map(|run| self.run(run.len() / bins)).collect();
        let mut sound = vec![0.0; length + 2 * margin];
        for iteration in 0..=self.spec.iterations {
            let (last, share) = (sound.as_slice(), self.share(iteration));
            let work = runs.par_iter_mut().zip(magnitudes.par_chunks(RUN * bins)).enumerate();
            work.for_each(|(number, (run, magnitudes))| {
                run.sound.fill(0.0);
                for (at, magnitudes) in magnitudes.chunks_exact(bins).enumerate() {
                    let frame = number * RUN + at;
                    if iteration == 0 {
                        begin(&mut run.room.bins, magnitudes, start, frame);
                    } else {
                        self.analyse(run, &last[frame * hop..]);
                        let before = run.before.get_mut(at * bins..(at + 1) * bins).unwrap_or_default();
                        project(&mut run.room.bins, before, magnitudes, share);
                    }
                    self.backward.add(&mut run.room, &mut run.sound[at * hop..]);
                }
            });
            self.join(&runs, &gains, &mut sound, length);
        }
        let samples = sound[margin..margin + length].to_vec();
        match samples.iter().position(|sample| !sample.is_finite()) {
            None => Ok(samples),
            Some(at) => Err(SynthesisError::Value { frame: at / hop, place: at % hop, value: samples[at] }),
        }
    }

    fn run(&self, frames: usize) -> Run {
        let kept = if self.spec.momentum > 0.0 { frames * self.bins() } else { 0 };
        Run {
            room: self.backward.room(),
            scratch: self.forward.make_scratch_vec(),
            before: vec![Complex::new(0.0, 0.0); kept],
            sound: vec![0.0; self.backward.length(frames)],
        }
    }

    /// Share of the previous iteration's spectra to subtract. The first iteration has no previous
    /// spectra.
    fn share(&self, iteration: u32) -> f32 {
        if iteration < 2 { 0.0 } else { (self.spec.momentum / (1.0 + self.spec.momentum)) as f32 }
    }

    /// Computes the spectrum of the frame at the beginning of `sound`.
    fn analyse(&self, run: &mut Run, sound: &[f32]) {
        let FrameRoom { bins, frame, .. } = &mut run.room;
        vectorised(
            #[inline(always)]
            || {
                let (before, inside) = frame.split_at_mut(self.first);
                let (inside, behind) = inside.split_at_mut(self.window.len());
                before.fill(0.0);
                behind.fill(0.0);
                for ((place, sample), weight) in inside.iter_mut().zip(&sound[self.first..]).zip(&self.window)
                {
                    *place = sample * weight;
                }
            },
        );
        self.forward
            .process_with_scratch(frame, bins, &mut run.scratch)
            .expect("the room has the plan's sizes and its frame is real");
    }

    /// Adds the samples of all runs, divides them by the squared windows, and fills in the padding
    /// before and after them.
    fn join(&self, runs: &[Run], gains: &[f32], sound: &mut [f32], length: usize) {
        let margin = self.spec.n_fft / 2;
        vectorised(
            #[inline(always)]
            || {
                sound.fill(0.0);
                for (number, run) in runs.iter().enumerate() {
                    for (place, sample) in sound[number * RUN * self.spec.hop..].iter_mut().zip(&run.sound) {
                        *place += sample;
                    }
                }
                for (place, gain) in sound.iter_mut().zip(gains) {
                    *place *= gain;
                }
            },
        );
        for at in (0..margin).chain(margin + length..sound.len()) {
            sound[at] = match self.spec.padding {
                Padding::Zeros => 0.0,
                Padding::Reflect => sound[margin + mirrored(at as isize - margin as isize, length)],
            };
        }
    }
}

/// Sets a frame's spectrum to its magnitudes with the initial phases.
fn begin(bins: &mut [Complex<f32>], magnitudes: &[f32], start: Start, frame: usize) {
    let mut stream = match start {
        Start::Zero => None,
        Start::Random { seed, utterance } => {
            let stream = (utterance & 0xFFFF_FFFF) << 24 | (frame as u64 & 0xFF_FFFF);
            Some(RandomStream::new(seed, Purpose::Phases, stream))
        }
    };
    for (bin, magnitude) in bins.iter_mut().zip(magnitudes) {
        let (sine, cosine) = stream.as_mut().map_or((0.0, 1.0), |stream| (TAU * stream.unit()).sin_cos());
        *bin = Complex::new(magnitude * cosine as f32, magnitude * sine as f32);
    }
}

/// Sets spectra to their magnitudes, with the phases of the spectra minus a share of the previous
/// ones. If `before` is empty, spectra are not stored in it.
fn project(bins: &mut [Complex<f32>], before: &mut [Complex<f32>], magnitudes: &[f32], share: f32) {
    vectorised(
        #[inline(always)]
        || {
            if before.is_empty() {
                for (bin, magnitude) in bins.iter_mut().zip(magnitudes) {
                    *bin = turned(*bin, *magnitude);
                }
                return;
            }
            for ((bin, before), magnitude) in bins.iter_mut().zip(before).zip(magnitudes) {
                let moved = Complex::new(bin.re - share * before.re, bin.im - share * before.im);
                *before = *bin;
                *bin = turned(moved, *magnitude);
            }
        },
    );
}

/// A number with this magnitude and the direction of another; 0 if the other is 0. Scaling avoids
/// overflow and underflow of the squares.
#[inline(always)]
fn turned(direction: Complex<f32>, magnitude: f32) -> Complex<f32> {
    const FAR: f32 = (1_u64 << 62) as f32;
    let largest = direction.re.abs().max(direction.im.abs());
    let scale = if largest < 1e-12 { FAR } else { 1.0 };
    let scale = if largest > 1e12 { 1.0 / FAR } else { scale };
    let (re, im) = (direction.re * scale, direction.im * scale);
    let square = re * re + im * im;
    let gain = if square > 0.0 { magnitude / square.sqrt() } else { 0.0 };
    Complex::new(re * gain, im * gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::stft::Stft;

    const SPEC: GriffinLimSpec = GriffinLimSpec {
        n_fft: 256,
        hop: 64,
        window: WindowFunction::HannPeriodic,
        window_length: 256,
        padding: Padding::Reflect,
        iterations: 10,
        momentum: 0.99,
    };
    const RANDOM: Start = Start::Random { seed: 1, utterance: 0 };

    fn chirp(samples: usize) -> Vec<f32> {
        (0..samples).map(|at| (1e-5 * at as f32 * at as f32).sin() * 0.5).collect()
    }

    fn magnitudes(spec: &GriffinLimSpec, sound: &[f32]) -> Vec<f32> {
        Stft::new(spec.n_fft, spec.hop, spec.window, spec.window_length, Some(spec.padding)).magnitudes(sound)
    }

    /// Norm of the difference between the magnitudes, divided by the norm of the expected ones.
    fn convergence(due: &[f32], made: &[f32]) -> f64 {
        let squares = due.iter().zip(made).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        (squares / due.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>()).sqrt()
    }

    #[test]
    fn more_iterations_come_nearer_and_momentum_helps() {
        let sound = chirp(6_000);
        let reached = |iterations, momentum, padding| {
            let spec = GriffinLimSpec { iterations, momentum, padding, ..SPEC };
            let due = magnitudes(&spec, &sound);
            let made = GriffinLim::new(&spec).unwrap().samples(&due, RANDOM, Some(sound.len())).unwrap();
            assert_eq!(made.len(), sound.len());
            convergence(&due, &magnitudes(&spec, &made))
        };
        for padding in [Padding::Reflect, Padding::Zeros] {
            let classic = [0, 5, 50].map(|iterations| reached(iterations, 0.0, padding));
            assert!(
                classic[0] > 0.4 && classic[1] < classic[0] && classic[2] < 0.8 * classic[1],
                "{classic:?}"
            );
            assert!(reached(50, 0.99, padding) < classic[2]);
        }
    }

    #[test]
    fn samples_depend_on_the_seed_and_not_on_the_threads() {
        let due = magnitudes(&SPEC, &chirp(9_000));
        let plan = GriffinLim::new(&SPEC).unwrap();
        let made = plan.samples(&due, RANDOM, None).unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| plan.samples(&due, RANDOM, None)).unwrap(), made, "{threads}");
        }
        for other in [Start::Random { seed: 2, utterance: 0 }, Start::Random { seed: 1, utterance: 1 }] {
            assert_ne!(plan.samples(&due, other, None).unwrap(), made);
        }
    }

    #[test]
    fn settings_and_magnitudes_without_sense_are_errors() {
        for spec in [
            GriffinLimSpec { n_fft: 1, ..SPEC },
            GriffinLimSpec { hop: 0, ..SPEC },
            GriffinLimSpec { hop: 200, window_length: 199, ..SPEC },
            GriffinLimSpec { window_length: 257, ..SPEC },
            GriffinLimSpec { momentum: -0.1, ..SPEC },
            GriffinLimSpec { momentum: f64::NAN, ..SPEC },
        ] {
            assert!(matches!(GriffinLim::new(&spec), Err(SynthesisError::Setting { .. })), "{spec:?}");
        }
        let plan = GriffinLim::new(&SPEC).unwrap();
        let sought = |magnitudes: &[f32], length| plan.samples(magnitudes, RANDOM, length);
        assert!(sought(&[], None).unwrap().is_empty());
        assert!(sought(&[1.0; 129], None).unwrap().is_empty());
        assert!(matches!(sought(&[1.0; 130], None), Err(SynthesisError::Shape { .. })));
        assert!(matches!(sought(&[1.0; 258], Some(1_000)), Err(SynthesisError::Length { due: 16, .. })));
        assert!(matches!(sought(&[f32::MAX; 258], None), Err(SynthesisError::Value { .. })));
        for wrong in [f32::NAN, f32::INFINITY, -1.0] {
            let mut values = [1.0; 258];
            values[130] = wrong;
            assert!(matches!(sought(&values, None), Err(SynthesisError::Value { frame: 1, place: 1, .. })));
        }
    }

    #[test]
    fn silence_and_whispers_stay_what_they_are() {
        let plan = GriffinLim::new(&SPEC).unwrap();
        assert_eq!(plan.samples(&[0.0; 129 * 40], RANDOM, None).unwrap(), [0.0; 39 * 64]);
        let due = magnitudes(&SPEC, &chirp(3_000));
        let loud = plan.samples(&due, RANDOM, None).unwrap();
        for scale in [1e-25_f32, 1e25] {
            let scaled: Vec<f32> = due.iter().map(|magnitude| magnitude * scale).collect();
            let made = plan.samples(&scaled, RANDOM, None).unwrap();
            let apart = made.iter().zip(&loud).map(|(a, b)| (a / scale - b).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-2, "{scale}: {apart}");
        }
    }

    #[test]
    fn any_length_and_window_has_its_frames() {
        for (n_fft, hop, window_length) in [(255, 64, 255), (256, 60, 200), (2, 1, 2), (64, 64, 64)] {
            let spec = GriffinLimSpec { n_fft, hop, window_length, iterations: 2, ..SPEC };
            let plan = GriffinLim::new(&spec).unwrap();
            for samples in [1, 2, 63, 64, 65, 1_000] {
                let due = magnitudes(&spec, &chirp(samples));
                let made = plan.samples(&due, RANDOM, Some(samples)).unwrap();
                assert_eq!(made.len(), samples, "{n_fft} {hop}");
            }
        }
    }
}
