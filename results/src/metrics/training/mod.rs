//! What training itself logs: the mean of a term of the objective over the last updates, as it was while the weights moved.
//!
//! No record is kept of it, only a sum and a count ([`TrainedTerm`]); the signature says over which updates they were taken.

mod options;
mod term;

pub use options::{OfTerm, Over, TRAIN_ACCURACY, TRAIN_LOSS, TRAIN_PERPLEXITY, TermMean, TrainingOptions};
pub use term::TrainedTerm;
