//! Metrics: values, their conventions and their uncertainty.
//!
//! | module | content | uses |
//! |---|---|---|
//! | `contract` | [`Metric`], and what a family is written with | |
//! | `text`, `edit` (error rates), `audio`, `classification`, `likelihood`, `training`, `speed` | the families | `contract` |
//! | `registry` | all options as a [`Convention`], all names as [`METRICS`] | the families |
//! | `scoring` | signatures, scores, intervals | `registry` |
//!
//! [`score`] scores records, and [`score_utterances`] scores measurements of speech. Both return a
//! [`MetricValue`]. [`Signature`] states what must be equal before two values are compared.
//! [`interval`], [`paired_bootstrap`] and [`paired_gain`] give the uncertainty. [`ErrorReport`] and
//! [`SentenceReport`] locate the errors.

mod audio;
mod classification;
mod contract;
mod edit;
mod likelihood;
mod registry;
mod scoring;
mod speed;
mod text;
mod training;

pub use audio::{
    AlignmentScore, Attention, CepstralDistortion, CepstralOptions, LogMel, MeasuredLine, MelErrorOptions,
    Stop, StopCounts, StopError, mel_cepstral_distortion, mel_error,
};
pub use classification::{AccuracyOptions, Class, ClassRecord, F1Options, Share, Ties};
pub use contract::{
    Arithmetic, Case, Drawn, Entry, Metric, Parts, Path, Reading, Resampling, ResamplingError, Rows,
    ScoreError, SignatureError, Source, Unit, Work,
};
pub use edit::{
    Alignment, Edit, EditCounts, ErrorRateOptions, ErrorReport, ErrorUnit, LengthClass, Step, Utterance,
    Whitespace,
};
pub use likelihood::{
    LikelihoodOptions, LikelihoodPart, LikelihoodRecord, LossRecord, ModelState, ObjectiveOptions, Quantity,
    SequenceOptions, Unknowns,
};
pub use registry::{Convention, METRICS, ReadOptions};
pub use scoring::{
    Interval, MetricValue, PairedBootstrap, PairedGain, ScoreOptions, ScoredLength, Scorer,
    SegmentStatistics, SentenceReport, SentenceScore, Signature, TrainedTerm, interval, paired_bootstrap,
    paired_gain, score, score_utterances,
};
pub use text::{
    BleuDetail, BleuOptions, ChrfOptions, Compounds, ExactMatchOptions, Smoothing, TerOptions, TokenisedBleu,
    TokenisedBleuOptions, Tokenizer, split_compounds,
};
pub use training::{OfTerm, Over, TermMean, TrainingOptions};
