//! Metrics: values, their conventions and their uncertainty.
//!
//! [`Metric`] is the interface of a metric; [`METRICS`] is the registry of all metrics. Each folder
//! is a family: `text`, `edit` (error rates), `audio`, `classification`, `likelihood`, `training`,
//! `speed`.
//! [`score`] scores records, and [`score_utterances`] scores measurements of speech. Both return a
//! [`MetricValue`]. [`Signature`] states what must be equal before two values are compared.
//! [`interval`], [`paired_bootstrap`] and [`paired_gain`] give the uncertainty. [`ErrorReport`] and
//! [`SentenceReport`] locate the errors.

mod arithmetic;
mod audio;
mod bootstrap;
mod classification;
mod edit;
mod entry;
mod error;
mod likelihood;
mod metric;
mod numpy_random;
mod parts;
mod record;
mod registry;
mod rows;
mod scorer;
mod segments;
mod signature;
mod speed;
mod text;
mod training;
mod value;

pub use arithmetic::Arithmetic;
pub use audio::alignment::{AlignmentScore, Attention};
pub use audio::log_mel::LogMel;
pub use audio::mel_cepstral::{CepstralDistortion, mel_cepstral_distortion};
pub use audio::stopping::{Stop, StopCounts, StopError};
pub use audio::{CepstralOptions, MeasuredLine, MelErrorOptions, mel_error, score_utterances};
pub use bootstrap::{
    Interval, PairedBootstrap, PairedGain, Resampling, ResamplingError, interval, paired_bootstrap,
    paired_gain,
};
pub use classification::{AccuracyOptions, Class, ClassRecord, Share, Ties};
pub use edit::error_rate::{Alignment, EditCounts, Step};
pub use edit::error_report::{ErrorReport, LengthClass, Utterance};
pub use edit::levenshtein::Edit;
pub use edit::{ErrorRateOptions, ErrorUnit, Whitespace};
pub use entry::{Entry, Path, ReadOptions};
pub use error::ScoreError;
pub use likelihood::{
    LikelihoodOptions, LikelihoodPart, LikelihoodRecord, LossRecord, ModelState, ObjectiveOptions, Quantity,
    SequenceOptions, Unit, Unknowns,
};
pub use metric::{Metric, Reading, Source};
pub use parts::Parts;
pub use registry::{Convention, METRICS};
pub use rows::{Drawn, Rows};
pub use scorer::{ScoreOptions, Scorer, score};
pub use segments::SegmentStatistics;
pub use signature::{Signature, SignatureError};
pub use speed::Work;
pub use text::bleu::BleuDetail;
pub use text::sentence_report::{ScoredLength, SentenceReport, SentenceScore};
pub use text::tokenised_bleu::split_compounds;
pub use text::{
    BleuOptions, Case, ChrfOptions, Compounds, ExactMatchOptions, Smoothing, TerOptions, TokenisedBleu,
    TokenisedBleuOptions, Tokenizer,
};
pub use training::{OfTerm, Over, TermMean, TrainedTerm, TrainingOptions};
pub use value::MetricValue;
