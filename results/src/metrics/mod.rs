//! Metrics: what was measured, as what, and how sure it is.
//!
//! [`score`] is the way in for text, [`score_utterances`] for speech; [`MetricValue`] what comes out; [`Signature`] what must be equal before two
//! values are compared; [`interval`], [`paired_bootstrap`] and [`paired_gain`] the uncertainty; [`ErrorReport`] and
//! [`SentenceReport`] where the errors are.

mod arithmetic;
mod audio;
mod bootstrap;
mod claimed;
mod convention;
mod error;
mod numpy_random;
mod scorer;
mod segments;
mod signature;
mod text;
mod value;

pub use audio::alignment::{AlignmentScore, Attention};
pub use audio::log_mel::LogMel;
pub use audio::mel_cepstral::{CepstralDistortion, mel_cepstral_distortion};
pub use audio::stopping::{Stop, StopCounts, StopError};
pub use audio::{MeasuredLine, mel_error, score_utterances};
pub use bootstrap::{
    Interval, PairedBootstrap, PairedGain, Resampling, ResamplingError, interval, paired_bootstrap,
    paired_gain,
};
pub use claimed::{CLAIMED, ClaimedMetric, Path, claimed_metric};
pub use convention::{
    BleuOptions, Case, CepstralOptions, ChrfOptions, Compounds, Convention, ErrorRateOptions, ErrorUnit,
    Metric, Smoothing, TerOptions, TokenisedBleu, Tokenizer, Unit, Whitespace,
};
pub use error::ScoreError;
pub use scorer::{ScoreOptions, Scorer, score};
pub use segments::SegmentStatistics;
pub use signature::{Signature, SignatureError};
pub use text::bleu::BleuDetail;
pub use text::error_rate::{Alignment, EditCounts, Step};
pub use text::error_report::{ErrorReport, LengthClass, Utterance};
pub use text::levenshtein::Edit;
pub use text::sentence_report::{ScoredLength, SentenceReport, SentenceScore};
pub use text::tokenised_bleu::split_compounds;
pub use value::MetricValue;
