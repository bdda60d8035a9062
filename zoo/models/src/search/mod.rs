//! Searches over a step-wise decoder, independent of the model.

mod beam;
pub mod ctc;
mod extended;
mod extension;
mod greedy;
pub mod ngram;
mod places;
mod sentence;

pub use beam::{Beam, beam};
pub use extended::{Extended, extended};
pub use greedy::greedy;
pub use places::{Places, Weighing, places};

use zoo_recipes::MaxLength;
use zoo_recipes::tasks::translation::TokenSearchSpec;

use crate::Packed;

/// Logits of all tokens for every hypothesis, on the host.
#[derive(Debug, Clone)]
pub struct Logits {
    /// Number of tokens.
    pub vocabulary: usize,
    /// Shape `[hypotheses, vocabulary]`, FP32.
    pub values: Vec<f32>,
}

impl Logits {
    /// Converts each row to log-probabilities (FP32, sums in f64).
    pub fn log_softmax(&mut self) {
        use rayon::prelude::*;
        self.values.par_chunks_mut(self.vocabulary).for_each(|row| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mass: f64 = row.iter().map(|&x| f64::from((x - largest).exp())).sum();
            let normalizer = largest + mass.ln() as f32;
            row.iter_mut().for_each(|x| *x -= normalizer);
        });
    }
}

/// A decoder that computes one token at a time.
pub trait StepDecoder {
    /// Decoder state between steps.
    type State;

    /// State of one empty hypothesis for each source.
    fn begin(&self, sources: &Packed) -> Self::State;

    /// Appends `last` to the hypotheses (`None` before the first token) and scores the next tokens.
    fn step(&self, state: &mut Self::State, last: Option<&[u32]>) -> Logits;

    /// Keeps the given hypotheses in the given order; one may be kept several times.
    fn select(&self, state: &mut Self::State, rows: &[usize]);

    /// Attention weights of the last step: for each hypothesis one weight for each token of its
    /// source, concatenated. `None` if the decoder does not have exactly one attention.
    fn attention(&self, state: &Self::State) -> Option<Vec<f32>>;
}

/// A finished output.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// Tokens without the end token.
    pub tokens: Vec<u32>,
    /// Score under the search's length penalty; log-probability for greedy search.
    pub score: f64,
}

/// Special token ids for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchIds {
    /// Padding; never part of an output.
    pub pad: u32,
    /// Ends a hypothesis.
    pub end: u32,
}

/// Runs a recipe's search on a batch of sources. Returns for each source its hypotheses from best
/// to worst.
pub fn search<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    spec: &TokenSearchSpec,
    ids: SearchIds,
) -> Vec<Vec<Hypothesis>> {
    match spec {
        TokenSearchSpec::Greedy { max_length } => {
            greedy(decoder, sources, max_length, ids).into_iter().map(|best| vec![best]).collect()
        }
        TokenSearchSpec::Beam { beam: size, length_penalty, stop, max_length } => beam(
            decoder,
            sources,
            &Beam { size: *size as usize, length_penalty, stop: *stop, max_length },
            ids,
        ),
        TokenSearchSpec::TensorflowBeam { beam, alpha, max_length } => {
            let weighing = Weighing::Tensorflow { alpha: *alpha };
            places(decoder, sources, &Places { size: *beam as usize, weighing, max_length }, ids)
        }
        TokenSearchSpec::GnmtBeam { beam, alpha, constant, coverage, as_coded, max_length } => {
            let weighing = Weighing::Gnmt {
                alpha: *alpha,
                constant: *constant,
                coverage: *coverage,
                as_coded: *as_coded,
            };
            places(decoder, sources, &Places { size: *beam as usize, weighing, max_length }, ids)
        }
        TokenSearchSpec::JoeynmtBeam { beam, alpha, as_coded, max_length } => {
            let search = Extended { size: *beam as usize, alpha: *alpha, as_coded: *as_coded, max_length };
            extended(decoder, sources, &search, ids)
        }
    }
}

/// Maximum output length for a source, in tokens, including the end token.
fn limit(max_length: &MaxLength, source_tokens: u32) -> usize {
    ((max_length.factor * f64::from(source_tokens)).floor() as usize + max_length.extra as usize).max(1)
}
