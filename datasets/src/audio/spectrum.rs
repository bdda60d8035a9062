//! Spectra of single frames, in FP64: quiet bins of a log spectrum lie further below the loudest than FP32 reaches.

use std::fmt;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use super::vectors::vectorised;

/// A planned Fourier transform of real frames. Many threads can use one plan, each with a [`SpectrumRoom`].
#[derive(Clone)]
pub struct Spectrum {
    plan: Arc<dyn RealToComplex<f64>>,
}

impl fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spectrum({})", self.length())
    }
}

/// Memory for the spectrum of one frame.
#[derive(Debug)]
pub struct SpectrumRoom {
    /// The frame: written by the caller, spoilt by the transform.
    pub frame: Vec<f64>,
    bins: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
    power: Vec<f64>,
}

impl Spectrum {
    /// Plans a transform of `length` samples, at least 1.
    pub fn new(length: usize) -> Self {
        Self { plan: RealFftPlanner::new().plan_fft_forward(length.max(1)) }
    }

    /// Samples of a frame.
    pub fn length(&self) -> usize {
        self.plan.len()
    }

    /// Bins of a spectrum: `length / 2 + 1`.
    pub fn bins(&self) -> usize {
        self.plan.complex_len()
    }

    /// Memory for one thread.
    pub fn room(&self) -> SpectrumRoom {
        SpectrumRoom {
            frame: self.plan.make_input_vec(),
            bins: self.plan.make_output_vec(),
            scratch: self.plan.make_scratch_vec(),
            power: vec![0.0; self.bins()],
        }
    }

    /// The transform of `room.frame`, not scaled: `X[k] = sum over t of x[t] exp(-2 pi i k t / length)`.
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
}

impl SpectrumRoom {
    /// Makes the frame of samples under a window from place `first` on, and of zeros around them.
    pub(super) fn window(&mut self, first: usize, samples: &[f64], window: &[f64]) {
        let Self { frame, .. } = self;
        vectorised(
            #[inline(always)]
            || {
                let (before, frame) = frame.split_at_mut(first);
                let (inside, behind) = frame.split_at_mut(window.len());
                before.fill(0.0);
                behind.fill(0.0);
                for ((place, sample), weight) in inside.iter_mut().zip(samples).zip(window) {
                    *place = sample * weight;
                }
            },
        );
    }
}
