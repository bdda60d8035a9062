//! Spectra of single frames, in FP64: quiet bins of a log spectrum are further below the loudest
//! bin than FP32 can resolve.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use super::vectors::{squares, vectorised};

/// A planned Fourier transform of real frames. Many threads can share a plan; each needs its own
/// [`SpectrumRoom`].
#[derive(Clone)]
pub struct Spectrum {
    plan: Arc<dyn RealToComplex<f64>>,
    /// Transform of two frames at once.
    pairs: Arc<dyn Fft<f64>>,
}

/// A frame whose power is below this share of its neighbour's is transformed alone. Otherwise the
/// rounding errors of the louder frame would affect it.
const ALONE: f64 = 1e-10;

impl fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spectrum({})", self.length())
    }
}

/// Buffers for the spectrum of one frame.
#[derive(Debug)]
pub struct SpectrumRoom {
    /// The frame. The caller writes it, and the transform overwrites it.
    pub frame: Vec<f64>,
    bins: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
    power: Vec<f64>,
}

/// Buffers for the spectra of two frames.
struct PairRoom {
    /// The nonzero part of each frame; `first` is its position.
    frames: [Vec<f64>; 2],
    first: usize,
    both: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
    powers: [Vec<f64>; 2],
}

impl Spectrum {
    /// Plans a transform of `length` samples, at least 1.
    pub fn new(length: usize) -> Self {
        let length = length.max(1);
        Self {
            plan: RealFftPlanner::new().plan_fft_forward(length),
            pairs: FftPlanner::new().plan_fft_forward(length),
        }
    }

    /// Number of samples in a frame.
    pub fn length(&self) -> usize {
        self.plan.len()
    }

    /// Number of bins in a spectrum: `length / 2 + 1`.
    pub fn bins(&self) -> usize {
        self.plan.complex_len()
    }

    /// Allocates the buffers for one thread.
    pub fn room(&self) -> SpectrumRoom {
        SpectrumRoom {
            frame: self.plan.make_input_vec(),
            bins: self.plan.make_output_vec(),
            scratch: self.plan.make_scratch_vec(),
            power: vec![0.0; self.bins()],
        }
    }

    /// The unscaled transform of `room.frame`: `X[k] = sum over t of x[t] exp(-2 pi i k t /
    /// length)`.
    pub fn complex<'r>(&self, room: &'r mut SpectrumRoom) -> &'r [Complex<f64>] {
        let SpectrumRoom { frame, bins, scratch, power: _ } = room;
        self.plan
            .process_with_scratch(frame, bins, scratch)
            .expect("the room has the plan's sizes and its frame is real");
        bins
    }

    /// `|X[k]|^2` of `room.frame`.
    pub fn power<'r>(&self, room: &'r mut SpectrumRoom) -> &'r [f64] {
        self.complex(room);
        let SpectrumRoom { bins, power, .. } = room;
        vectorised(
            #[inline(always)]
            || {
                for (power, bin) in power.iter_mut().zip(&*bins) {
                    *power = bin.re * bin.re + bin.im * bin.im;
                }
            },
        );
        power
    }

    /// `|X[k]|^2` of `frames` frames in order. The frames are zero except in the range `inside`,
    /// which `fill` writes. `visit` is called with the spectra of two frames, or of the last one
    /// alone. Two real frames form the parts of a complex one, whose transform takes little more
    /// than half the time of two real transforms.
    pub fn each_pair(
        &self,
        frames: usize,
        inside: Range<usize>,
        mut fill: impl FnMut(usize, &mut [f64]),
        mut visit: impl FnMut(&[f64], Option<&[f64]>),
    ) {
        let mut room = self.room();
        let mut alone = |frame: &[f64], power: &mut [f64]| {
            room.frame.fill(0.0);
            room.frame[inside.clone()].copy_from_slice(frame);
            power.copy_from_slice(self.power(&mut room));
        };
        let mut pair = self.pair_room(inside.clone());
        for first in (0..frames).step_by(2) {
            fill(first, &mut pair.frames[0]);
            if first + 1 == frames {
                alone(&pair.frames[0], &mut pair.powers[0]);
                visit(&pair.powers[0], None);
                break;
            }
            fill(first + 1, &mut pair.frames[1]);
            let energies = self.powers(&mut pair);
            for side in 0..2 {
                // A NaN does not count as quiet.
                if energies[side] < ALONE * energies[1 - side] {
                    alone(&pair.frames[side], &mut pair.powers[side]);
                }
            }
            visit(&pair.powers[0], Some(&pair.powers[1]));
        }
    }

    /// As [`Self::each_pair`], but `visit` is called with one spectrum at a time.
    pub fn each_power(
        &self,
        frames: usize,
        inside: Range<usize>,
        fill: impl FnMut(usize, &mut [f64]),
        mut visit: impl FnMut(&[f64]),
    ) {
        self.each_pair(frames, inside, fill, |first, second| {
            visit(first);
            second.into_iter().for_each(&mut visit);
        });
    }

    fn pair_room(&self, inside: Range<usize>) -> PairRoom {
        let zero = Complex::new(0.0, 0.0);
        let two = |length: usize| [vec![0.0; length], vec![0.0; length]];
        PairRoom {
            frames: two(inside.len()),
            first: inside.start,
            both: vec![zero; self.length()],
            scratch: vec![zero; self.pairs.get_inplace_scratch_len()],
            powers: two(self.bins()),
        }
    }

    /// Computes the powers of the frames x and y in `room`, and returns the energies of the frames.
    /// For z = x + i y, X[k] = (Z[k] + Z*[n-k]) / 2 and i Y[k] = (Z[k] - Z*[n-k]) / 2.
    fn powers(&self, room: &mut PairRoom) -> [f64; 2] {
        let PairRoom { frames: [x, y], first, both, scratch, powers } = room;
        let energies = vectorised(
            #[inline(always)]
            || {
                let (before, rest) = both.split_at_mut(*first);
                let (inside, behind) = rest.split_at_mut(x.len());
                before.fill(Complex::new(0.0, 0.0));
                behind.fill(Complex::new(0.0, 0.0));
                for ((z, x), y) in inside.iter_mut().zip(x.iter()).zip(y.iter()) {
                    *z = Complex::new(*x, *y);
                }
                [squares(x), squares(y)]
            },
        );
        self.pairs.process_with_scratch(both, scratch);
        let ([x, y], bins) = (powers, self.bins());
        vectorised(
            #[inline(always)]
            || {
                (x[0], y[0]) = (both[0].re * both[0].re, both[0].im * both[0].im);
                let there = both[both.len() + 1 - bins..].iter().rev();
                let here = both[1..bins].iter().zip(there);
                for ((x, y), (z, w)) in x[1..].iter_mut().zip(&mut y[1..]).zip(here) {
                    let (a, b, c, d) = (z.re + w.re, z.im - w.im, z.im + w.im, w.re - z.re);
                    *x = 0.25 * (a * a + b * b);
                    *y = 0.25 * (c * c + d * d);
                }
            },
        );
        energies
    }
}

/// Multiplies samples by a window.
pub(super) fn windowed(place: &mut [f64], samples: &[f64], window: &[f64]) {
    vectorised(
        #[inline(always)]
        || {
            for ((place, sample), weight) in place.iter_mut().zip(samples).zip(window) {
                *place = sample * weight;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected spectrum, computed from the definition and thus without influence of a
    /// neighbour.
    fn plain(frame: &[f64]) -> Vec<f64> {
        let spectrum = Spectrum::new(frame.len());
        let mut room = spectrum.room();
        room.frame.copy_from_slice(frame);
        spectrum.power(&mut room).to_vec()
    }

    #[test]
    fn frames_in_pairs_have_the_spectra_of_frames_alone() {
        for length in [1, 2, 3, 5, 16, 25, 320, 400, 512] {
            for frames in 0..6 {
                let frame =
                    |at: usize, t: usize| ((at * 7 + t * t * 3 + t) % 23) as f64 - 11.0 + 0.1 * at as f64;
                let mut seen = Vec::new();
                let spectrum = Spectrum::new(length);
                let fill = |at: usize, place: &mut [f64]| {
                    place.iter_mut().enumerate().for_each(|(t, place)| *place = frame(at, t));
                };
                spectrum.each_power(frames, 0..length, fill, |power| seen.push(power.to_vec()));
                assert_eq!(seen.len(), frames);
                for (at, seen) in seen.iter().enumerate() {
                    let due = plain(&(0..length).map(|t| frame(at, t)).collect::<Vec<_>>());
                    let most = due.iter().fold(1e-300, |most: f64, value| most.max(*value));
                    assert_eq!(seen.len(), due.len());
                    for (seen, due) in seen.iter().zip(&due) {
                        assert!((seen - due).abs() < 1e-13 * most, "{length} {frames}: {seen} {due}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_quiet_frame_hears_nothing_of_a_loud_one() {
        let spectrum = Spectrum::new(512);
        for quiet in [0.0, 1e-30, 1e-7] {
            for order in [[1.0, quiet], [quiet, 1.0]] {
                let of = |at: usize, t: usize| order[at] * ((t * 37 % 101) as f64 - 50.0);
                let mut seen = Vec::new();
                let fill = |at: usize, place: &mut [f64]| {
                    place.iter_mut().enumerate().for_each(|(t, place)| *place = of(at, t));
                };
                spectrum.each_power(2, 0..512, fill, |power| seen.push(power.to_vec()));
                for (at, seen) in seen.iter().enumerate() {
                    let due = plain(&(0..512).map(|t| of(at, t)).collect::<Vec<_>>());
                    if order[at] < 1.0 {
                        assert_eq!(*seen, due);
                    }
                }
            }
        }
    }
}
