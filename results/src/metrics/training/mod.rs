//! Metrics from training's own log: the mean of a term of the objective over the last updates,
//! computed while the weights changed.
//!
//! No records are kept, only a sum and a count ([`TrainedTerm`](crate::metrics::TrainedTerm)). The
//! signature names the updates that they cover.

mod options;

pub use options::{
    OfTerm, Over, TRAIN_ACCURACY, TRAIN_LOSS, TRAIN_PERPLEXITY, TermMean, TrainingOptions, read_accuracy,
    read_loss, read_perplexity,
};
