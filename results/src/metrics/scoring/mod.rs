//! From records to values: signatures, scores and their uncertainty, for every metric of the
//! registry.

mod bootstrap;
mod numpy_random;
mod scorer;
mod segments;
mod sentence_report;
mod signature;
mod trained_term;
mod value;

pub use bootstrap::{Interval, PairedBootstrap, PairedGain, interval, paired_bootstrap, paired_gain};
pub use scorer::{ScoreOptions, Scorer, score, score_utterances};
pub use segments::SegmentStatistics;
pub use sentence_report::{ScoredLength, SentenceReport, SentenceScore};
pub use signature::Signature;
pub use trained_term::TrainedTerm;
pub use value::MetricValue;
