//! Training loss of a synthesiser with teacher forcing.

use burn::tensor::{Tensor, TensorData};
use zoo_recipes::tasks::speech_synthesis::AttentionGuide;

use super::{SynthesisBatch, Synthesiser};
use crate::Pass;
use crate::contract::{Objective, Running, Term};
use crate::nn::Seen;

/// Sum of: squared errors of the frames before and after the post-net and of the magnitudes,
/// cross-entropy of the stop target, and the guided-attention penalty.
#[derive(Debug, Clone)]
pub struct SpectrogramLoss {
    padding: bool,
    bins: usize,
    guide: Option<AttentionGuide>,
    seen: Seen,
}

impl SpectrogramLoss {
    /// `padding`: whether padding counts. `bins`: magnitude bins of a frame.
    pub fn new(padding: bool, bins: usize, guide: Option<AttentionGuide>) -> Self {
        Self { padding, bins, guide, seen: Seen::default() }
    }

    /// Weight of each frame: 1 if it counts, else 0.
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
        if self.guide.is_some() {
            counts.push(("attention", batch.lengths.iter().sum::<usize>() as f64));
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
        if let Some(guide) = self.guide {
            let weights = predicted.written.weights;
            let costs = TensorData::new(far_from_diagonal(batch, guide.width), weights.dims());
            let sum = (weights * Tensor::from_data(costs, &device)).sum();
            terms.push(Term { weight: guide.weight, ..term("attention", sum) });
        }
        terms
    }
}

/// Guided-attention penalty `[frames, symbols of all texts]`; zero in padding.
fn far_from_diagonal(batch: &SynthesisBatch, width: f64) -> Vec<f32> {
    let of_frame = |t: usize| {
        batch.symbols.iter().zip(&batch.lengths).flat_map(move |(text, &frames)| {
            let symbols = text.len();
            (0..symbols).map(move |n| {
                let apart = n as f64 / symbols as f64 - t as f64 / frames as f64;
                let near = if t < frames { (-apart * apart / (2.0 * width * width)).exp() } else { 1.0 };
                (1.0 - near) as f32
            })
        })
    };
    (0..batch.longest()).flat_map(of_frame).collect()
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
