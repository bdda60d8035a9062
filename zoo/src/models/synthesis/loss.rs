//! What is minimised while a synthesiser is told the true frames.

use burn::tensor::{Tensor, TensorData};

use super::{SynthesisBatch, Synthesiser};
use crate::contract::{Objective, Pass, Running, Term};
use crate::models::seen::Seen;

/// Squared errors of frames before and behind the post-net, and of magnitudes; cross-entropy of where to stop.
#[derive(Debug, Clone)]
pub struct SpectrogramLoss {
    padding: bool,
    bins: usize,
    seen: Seen,
}

impl SpectrogramLoss {
    /// Padding counts, or it does not; of frames with so many bins of magnitudes.
    pub fn new(padding: bool, bins: usize) -> Self {
        Self { padding, bins, seen: Seen::default() }
    }

    /// Does a frame count?
    fn counted(&self, batch: &SynthesisBatch) -> Vec<f32> {
        let longest = batch.longest();
        let of = |&length: &usize| (0..longest).map(move |i| f32::from(u8::from(self.padding || i < length)));
        batch.lengths.iter().flat_map(of).collect()
    }
}

impl Objective<Synthesiser, SynthesisBatch> for SpectrogramLoss {
    fn counts(&self, batch: &SynthesisBatch) -> Vec<(&'static str, f64)> {
        let frames = match self.padding {
            true => batch.lengths.len() * batch.longest(),
            false => batch.lengths.iter().sum(),
        } as f64;
        let mels = (batch.width - self.bins) as f64;
        let mut counts = vec![("mel", frames * mels), ("corrected_mel", frames * mels), ("stop", frames)];
        if self.bins > 0 {
            counts.push(("magnitudes", frames * self.bins as f64));
        }
        counts
    }

    fn terms(&self, model: &Synthesiser, batch: &SynthesisBatch, pass: &mut Pass) -> Vec<Term> {
        let (predicted, seen) = model.forward(batch, pass);
        if pass.is_training() {
            self.seen.push(seen);
        }
        let device = model.device();
        let rows = batch.lengths.len() * batch.longest();
        let mels = batch.width - self.bins;
        let matrix = |values: Vec<f32>, columns: usize| {
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), &device)
        };
        let counted = matrix(self.counted(batch), 1);
        let squares = |found: Tensor<2>, due: Tensor<2>| {
            let apart = found - due;
            (apart.clone() * apart * counted.clone()).sum()
        };
        let target = matrix(batch.columns(0..mels), mels);
        let longest = batch.longest();
        let stops =
            batch.stops.iter().flat_map(|&stop| (0..longest).map(move |i| f32::from(u8::from(i >= stop))));
        let stops = matrix(stops.collect(), 1);
        // max(x, 0) - x z + log(1 + e^-|x|)
        let x = predicted.written.stops.clone().reshape([rows, 1]);
        let entropy = x.clone().clamp_min(0.0) - x.clone() * stops + (x.abs().neg().exp() + 1.0).log();
        let term = |name, sum| Term { name, sum, weight: 1.0 };
        let mut terms = vec![
            term("mel", squares(predicted.written.frames, target.clone())),
            term("corrected_mel", squares(predicted.corrected, target)),
            term("stop", (entropy * counted.clone()).sum()),
        ];
        if let Some(magnitudes) = predicted.magnitudes {
            let due = matrix(batch.columns(mels..batch.width), self.bins);
            terms.push(term("magnitudes", squares(magnitudes, due)));
        }
        terms
    }
}

impl Running<Synthesiser> for SpectrogramLoss {
    fn commit(&self, model: Synthesiser) -> Synthesiser {
        match self.seen.mean() {
            Some(mean) => model.fold(&mean),
            None => model,
        }
    }

    fn discard(&self) {
        self.seen.take();
    }
}
