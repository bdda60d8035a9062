//! CTC searches: from the frames of a CTC model to labels or words.
//!
//! Each search reads one utterance without padding, so the result does not depend on the batch.

mod alignment;
mod greedy;
mod lexicon;
mod prefix_beam;
mod vocabulary;

pub use alignment::alignment;
pub use greedy::greedy;
pub use lexicon::{Lexicon, Pronunciation, Silence};
pub use prefix_beam::{PrefixBeam, Words};
pub use vocabulary::Vocabulary;

use std::ops::Range;

/// Log-probabilities of the frames of one utterance.
#[derive(Debug, Clone, Copy)]
pub struct Frames<'a> {
    /// `[frames, classes]`, natural logarithms.
    pub log_probs: &'a [f32],
    /// Number of classes, including the blank.
    pub classes: usize,
    /// Id of the blank class.
    pub blank: u32,
}

impl<'a> Frames<'a> {
    /// Iterates over the frames, each `[classes]`.
    pub fn rows(&self) -> std::slice::ChunksExact<'a, f32> {
        self.log_probs.chunks_exact(self.classes)
    }
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// Label ids, or word ids where the search is over words.
    pub units: Vec<u32>,
    /// Frames of each unit.
    pub times: Vec<Range<usize>>,
    /// Logarithm of the quantity that the search maximises.
    pub score: f64,
    /// Part of `score` from a word language model and the word bonus; 0 without one. `None` if the
    /// search does not separate this part.
    pub language_model: Option<f64>,
}
