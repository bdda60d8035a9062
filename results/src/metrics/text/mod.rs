//! Metrics on lines of text.
//!
//! BLEU and chrF use the `sacrebleu-rs` crate, which reproduces Python sacreBLEU 2.6.0 to the last
//! bit, but ignores unknown options and panics on streams of different lengths. This module
//! validates all inputs first, and adds what the crate lacks: the `zh` tokenizer, fractional add-k,
//! and Python's four separators that Rust does not treat as white space.
//! TER is implemented here. Its values equal the crate's, whose memory grows with the square of a
//! line's length. Word and character error rates are in the folder `edit`.

mod bleu;
mod chrf;
mod exact_match;
mod ngrams;
mod options;
mod ter;
mod tercom;
mod tokenise;
mod tokenised_bleu;
mod zh;

pub use bleu::{BLEU, BleuDetail};
pub use chrf::{CHRF, CHRF2, read as read_chrf};
pub use exact_match::{EXACT_MATCH, read as read_exact_match};
pub use options::{
    BleuOptions, ChrfOptions, Compounds, ExactMatchOptions, Smoothing, TerOptions, TokenisedBleu,
    TokenisedBleuOptions, Tokenizer,
};
pub use ter::{TER, read as read_ter};
pub use tokenised_bleu::{read as read_bleu, split_compounds};
