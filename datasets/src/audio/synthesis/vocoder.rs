//! Converts a model's output, log magnitudes or log mels, to samples.
//!
//! [`VocoderSpec::openseq2seq`] follows OpenSeq2Seq (`Text2Speech.save_audio`,
//! `Text2SpeechDataLayer.get_magnitude_spec`). Known difference: logarithms below the floor are
//! raised to it; they are never below it in training.

use zoo_recipes::Padding;

use super::{GriffinLim, GriffinLimSpec, MelInverse, Start, SynthesisError, each_is, frames as whole_frames};

/// Settings of the conversion from features to samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VocoderSpec {
    /// Settings of the phase reconstruction.
    pub griffin_lim: GriffinLimSpec,
    /// Seed of the initial phases.
    pub seed: u64,
    /// Minimum value before the logarithm in training; 0 if there was none.
    pub floor: f64,
    /// Power of the magnitudes before the logarithm: 1, or 2 for energies. For mels, [`MelInverse`]
    /// has the power.
    pub features_power: f64,
    /// Magnitudes above this value are clipped to it.
    pub ceiling: Option<f64>,
    /// Exponent applied to magnitudes before the phase reconstruction. A value above 1 emphasises
    /// formants.
    pub power: f64,
}

impl VocoderSpec {
    /// OpenSeq2Seq's settings for frames of `n_fft` samples, a hop of a quarter and features of
    /// magnitudes (`mag_power` 1): magnitudes clipped to 0 to 255 and raised to the power of 1.5,
    /// 50 iterations without momentum, mirrored padding as in librosa at that time.
    pub fn openseq2seq(n_fft: usize, seed: u64) -> Self {
        let griffin_lim = GriffinLimSpec {
            padding: Padding::Reflect,
            iterations: 50,
            momentum: 0.0,
            ..GriffinLimSpec::librosa(n_fft)
        };
        Self { griffin_lim, seed, floor: 1e-5, features_power: 1.0, ceiling: Some(255.0), power: 1.5 }
    }

    fn check(&self) -> Result<(), SynthesisError> {
        for (setting, value) in [("features_power", self.features_power), ("power", self.power)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(SynthesisError::setting(setting, value, "above 0"));
            }
        }
        if !(self.floor >= 0.0 && self.floor.is_finite()) {
            return Err(SynthesisError::setting("floor", self.floor, "0 or more"));
        }
        match self.ceiling {
            Some(ceiling) if ceiling.is_nan() || ceiling <= 0.0 => {
                Err(SynthesisError::setting("ceiling", ceiling, "above 0"))
            }
            _ => Ok(()),
        }
    }
}

/// Samples, and the number of magnitudes that were clipped to make them.
#[derive(Debug, Clone, PartialEq)]
pub struct Speech {
    /// Samples, with full scale at 1, which they may exceed.
    pub samples: Vec<f32>,
    /// Number of magnitudes that were above the ceiling.
    pub cut: usize,
}

/// A planned conversion from features to samples. Many threads can share one.
#[derive(Debug, Clone)]
pub struct Vocoder {
    griffin_lim: GriffinLim,
    spec: VocoderSpec,
}

impl Vocoder {
    /// Plans the conversion.
    ///
    /// # Errors
    /// A setting is not valid.
    pub fn new(spec: &VocoderSpec) -> Result<Self, SynthesisError> {
        spec.check()?;
        Ok(Self { griffin_lim: GriffinLim::new(&spec.griffin_lim)?, spec: *spec })
    }

    /// Number of bins per frame.
    pub fn bins(&self) -> usize {
        self.griffin_lim.bins()
    }

    /// Converts log magnitudes, [frames, width] row-major. If `width` is less than [`Self::bins`],
    /// the highest bins are set to the floor. `utterance` (below 2^32) selects the initial phases.
    ///
    /// # Errors
    /// The values are not a whole number of frames, have too many bins, or are not finite; or the
    /// sound is not finite.
    pub fn log_magnitudes(
        &self,
        logarithms: &[f32],
        width: usize,
        utterance: u64,
    ) -> Result<Speech, SynthesisError> {
        let (frames, bins) = (whole_frames(logarithms.len(), width)?, self.bins());
        if width > bins {
            return Err(SynthesisError::setting("width", width, format!("at most {bins}")));
        }
        each_is(logarithms, width, f32::is_finite)?;
        let root = |feature: f64| feature.powf(1.0 / self.spec.features_power);
        let mut magnitudes = vec![root(self.spec.floor); frames * bins];
        for (frame, row) in magnitudes.chunks_exact_mut(bins).zip(logarithms.chunks_exact(width)) {
            for (magnitude, logarithm) in frame.iter_mut().zip(row) {
                *magnitude = root(self.above_floor(*logarithm));
            }
        }
        self.speech(&magnitudes, utterance)
    }

    /// Converts log mels, [frames, mels] row-major.
    ///
    /// # Errors
    /// The values are not a whole number of frames or not finite, the inverse has another number of
    /// bins, or the sound is not finite.
    pub fn log_mels(
        &self,
        logarithms: &[f32],
        inverse: &MelInverse,
        utterance: u64,
    ) -> Result<Speech, SynthesisError> {
        whole_frames(logarithms.len(), inverse.mels())?;
        if inverse.bins() != self.bins() {
            let due = self.bins().to_string();
            return Err(SynthesisError::setting("bins of the mel filters", inverse.bins(), due));
        }
        each_is(logarithms, inverse.mels(), f32::is_finite)?;
        let mels: Vec<f64> = logarithms.iter().map(|logarithm| self.above_floor(*logarithm)).collect();
        self.speech(&inverse.of(&mels), utterance)
    }

    /// Applies the exponential function and the floor. The exponent is limited so that the square
    /// of the result is finite.
    fn above_floor(&self, logarithm: f32) -> f64 {
        f64::from(logarithm).min(300.0).exp().max(self.spec.floor)
    }

    fn speech(&self, magnitudes: &[f64], utterance: u64) -> Result<Speech, SynthesisError> {
        let ceiling = self.spec.ceiling.unwrap_or(f64::INFINITY);
        let cut = magnitudes.iter().filter(|magnitude| **magnitude > ceiling).count();
        let raised = |magnitude: &f64| magnitude.min(ceiling).powf(self.spec.power) as f32;
        let magnitudes: Vec<f32> = magnitudes.iter().map(raised).collect();
        let start = Start::Random { seed: self.spec.seed, utterance };
        Ok(Speech { samples: self.griffin_lim.samples(&magnitudes, start, None)?, cut })
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::MelSpec;

    use super::*;
    use crate::audio::mel::MelFilters;
    use crate::audio::stft::Stft;
    use crate::audio::synthesis::MelMethod;

    const N_FFT: usize = 512;

    fn spec() -> VocoderSpec {
        VocoderSpec { power: 1.0, ..VocoderSpec::openseq2seq(N_FFT, 7) }
    }

    /// Log magnitudes of a glide, [40, 257].
    fn glide(power: i32) -> Vec<f32> {
        let sound: Vec<f32> = (0..39 * 128).map(|at| (2e-5 * (at * at) as f32).sin() * 0.3).collect();
        let GriffinLimSpec { n_fft, hop, window, padding, .. } = spec().griffin_lim;
        let magnitudes = Stft::new(n_fft, hop, window, n_fft, Some(padding)).magnitudes(&sound);
        magnitudes.iter().map(|magnitude| magnitude.powi(power).max(1e-5).ln()).collect()
    }

    /// Root mean square.
    fn level(samples: &[f32]) -> f32 {
        (samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len() as f32).sqrt()
    }

    #[test]
    fn log_magnitudes_become_sound_of_their_level() {
        let vocoder = Vocoder::new(&spec()).unwrap();
        let speech = vocoder.log_magnitudes(&glide(1), 257, 0).unwrap();
        assert_eq!((speech.samples.len(), speech.cut), (39 * 128, 0));
        assert!((level(&speech.samples) - 0.3 / 2_f32.sqrt()).abs() < 0.03, "{}", level(&speech.samples));
        assert_eq!(vocoder.log_magnitudes(&glide(1), 257, 0).unwrap(), speech);
        assert_ne!(vocoder.log_magnitudes(&glide(1), 257, 1).unwrap(), speech);

        let energies = Vocoder::new(&VocoderSpec { features_power: 2.0, floor: 1e-10, ..spec() }).unwrap();
        let same = energies.log_magnitudes(&glide(2), 257, 0).unwrap();
        assert!((level(&same.samples) - level(&speech.samples)).abs() < 0.01);

        let lower: Vec<f32> = glide(1).chunks_exact(257).flat_map(|frame| frame[..200].to_vec()).collect();
        assert_eq!(vocoder.log_magnitudes(&lower, 200, 0).unwrap().samples.len(), 39 * 128);
    }

    #[test]
    fn loud_magnitudes_are_cut_and_counted() {
        let vocoder = Vocoder::new(&VocoderSpec::openseq2seq(N_FFT, 1)).unwrap();
        let mut loud = vec![0.0_f32; 257 * 6];
        loud[300..303].copy_from_slice(&[5.6, 1e30, 5.5]);
        let speech = vocoder.log_magnitudes(&loud, 257, 0).unwrap();
        // exp(5.6) is 270; exp(5.5) is 245.
        assert_eq!(speech.cut, 2);
        assert!(speech.samples.iter().all(|sample| sample.is_finite()));
    }

    #[test]
    fn log_mels_become_sound() {
        let filters = MelFilters::triangular(22_050, N_FFT, 60, &MelSpec::default());
        let vocoder = Vocoder::new(&spec()).unwrap();
        let magnitudes: Vec<[f64; 1]> = glide(1).iter().map(|log| [f64::from(*log).exp()]).collect();
        let mut mels = Vec::new();
        for frame in magnitudes.chunks_exact(257) {
            let mut energies = vec![[0.0]; 60];
            filters.apply(frame, &mut energies);
            mels.extend(energies.iter().map(|[energy]| energy.max(1e-5).ln() as f32));
        }
        let inverse = MelInverse::new(filters, MelMethod::LeastSquares, 1.0).unwrap();
        let speech = vocoder.log_mels(&mels, &inverse, 0).unwrap();
        assert_eq!(speech.samples.len(), 39 * 128);
        assert!((level(&speech.samples) - 0.21).abs() < 0.05, "{}", level(&speech.samples));
    }

    #[test]
    fn settings_and_features_without_sense_are_errors() {
        for wrong in [
            VocoderSpec { power: 0.0, ..spec() },
            VocoderSpec { features_power: f64::NAN, ..spec() },
            VocoderSpec { floor: -1.0, ..spec() },
            VocoderSpec { ceiling: Some(0.0), ..spec() },
            VocoderSpec::openseq2seq(0, 0),
        ] {
            assert!(matches!(Vocoder::new(&wrong), Err(SynthesisError::Setting { .. })), "{wrong:?}");
        }
        let vocoder = Vocoder::new(&spec()).unwrap();
        assert!(vocoder.log_magnitudes(&[], 257, 0).unwrap().samples.is_empty());
        assert!(matches!(vocoder.log_magnitudes(&[0.0; 5], 0, 0), Err(SynthesisError::Shape { .. })));
        assert!(matches!(vocoder.log_magnitudes(&[0.0; 258], 258, 0), Err(SynthesisError::Setting { .. })));
        let inverse = |n_fft| {
            let filters = MelFilters::triangular(22_050, n_fft, 40, &MelSpec::default());
            MelInverse::new(filters, MelMethod::Transposed, 1.0).unwrap()
        };
        assert!(matches!(
            vocoder.log_mels(&[0.0; 80], &inverse(1024), 0),
            Err(SynthesisError::Setting { .. })
        ));
        assert!(matches!(
            vocoder.log_mels(&[f32::NAN; 80], &inverse(N_FFT), 0),
            Err(SynthesisError::Value { .. })
        ));
        let unbounded = Vocoder::new(&VocoderSpec { ceiling: None, ..spec() }).unwrap();
        assert!(matches!(
            unbounded.log_mels(&[1e9; 80], &inverse(N_FFT), 0),
            Err(SynthesisError::Value { .. })
        ));
    }
}
