//! Translation: the splits of a recipe as pairs of lines, and their token ids.

pub mod prepare;
pub mod reversal;
mod splits;

pub use splits::{PairSplit, TRAIN, open_split, pair_splits, read_splits};
