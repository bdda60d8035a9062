//! From the frames of a CTC model to labels or words.
//!
//! Each search sees one utterance alone, without padding: what is found does not depend on the batch that it was computed in.

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

/// Logarithms of probabilities of one utterance.
#[derive(Debug, Clone, Copy)]
pub struct Frames<'a> {
    /// [frames, classes], natural logarithms.
    pub log_probs: &'a [f32],
    /// Classes, the blank among them.
    pub classes: usize,
    /// The class that is no label.
    pub blank: u32,
}

impl<'a> Frames<'a> {
    /// Each frame's [classes].
    pub fn rows(&self) -> std::slice::ChunksExact<'a, f32> {
        self.log_probs.chunks_exact(self.classes)
    }
}

/// What was recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// Labels, or numbers of words where the search is over words.
    pub units: Vec<u32>,
    /// Frames of each.
    pub times: Vec<Range<usize>>,
    /// Logarithm of what the search maximises.
    pub score: f64,
    /// What a language model of words adds to `score`, with what each word adds; 0 without one. None where the search does not keep
    /// it apart.
    pub language_model: Option<f64>,
}
