//! The registry: the options of every metric, and every name that a claim may use. It alone names
//! the families. A new metric needs a file in its family's folder, a line in [`Convention`] and a
//! line in [`METRICS`].

use serde::{Deserialize, Deserializer};

use super::audio::{self, CepstralOptions, MelErrorOptions};
use super::classification::{self, AccuracyOptions, F1Options};
use super::contract::{Entry, Metric, Parts, Path, ScoreError, SignatureError, unknown};
use super::edit::{self, ErrorRateOptions};
use super::likelihood::{self, LikelihoodOptions, ObjectiveOptions};
use super::speed;
use super::text::{
    self, BleuOptions, ChrfOptions, ExactMatchOptions, Smoothing, TerOptions, TokenisedBleuOptions, Tokenizer,
};
use super::training::{self, TrainingOptions};

/// Defines the enum of all options and the conversion to the metric they belong to.
macro_rules! conventions {
    ($($(#[$words:meta])* $name:ident($options:ty),)*) => {
        /// A metric and every option that changes its value.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum Convention {
            $($(#[$words])* $name($options),)*
        }

        impl Convention {
            /// The metric that the options belong to.
            pub fn metric(&self) -> &dyn Metric {
                match self {
                    $(Self::$name(options) => options,)*
                }
            }
        }

        $(impl From<$options> for Convention {
            fn from(options: $options) -> Self {
                Self::$name(options)
            }
        })*
    };
}

conventions! {
    /// BLEU as sacreBLEU computes it.
    Bleu(BleuOptions),
    /// BLEU as multi-bleu or fairseq computes it.
    TokenisedBleu(TokenisedBleuOptions),
    /// chrF as sacreBLEU computes it.
    Chrf(ChrfOptions),
    /// TER as sacreBLEU computes it.
    Ter(TerOptions),
    /// Word or character error rate, as jiwer computes it.
    ErrorRate(ErrorRateOptions),
    /// Share of hypotheses that equal a reference after runs of white space are collapsed.
    ExactMatch(ExactMatchOptions),
    /// Mel-cepstral distortion of log-mel spectrograms.
    MelCepstral(CepstralOptions),
    /// Mean squared error of log-mel spectrograms.
    MelError(MelErrorOptions),
    /// Share of a classifier's answers that are right, or wrong.
    Accuracy(AccuracyOptions),
    /// Mean over a classifier's classes of F1.
    F1(F1Options),
    /// Loss, perplexity or bits per character of a likelihood.
    Likelihood(LikelihoodOptions),
    /// Mean of a recipe's objective on an evaluation set.
    Objective(ObjectiveOptions),
    /// Mean of a term over the last updates of training.
    Training(TrainingOptions),
}

/// Reads the options of a metric from the parts of a signature.
pub type ReadOptions = fn(&mut Parts<'_>) -> Result<Convention, SignatureError>;

/// Defines the list of all metrics, and for those with signatures the function that reads their
/// options.
macro_rules! metrics {
    ($($entry:path $(=> $read:path)?,)*) => {
        /// All metrics, in the order in which they are listed.
        pub static METRICS: &[&Entry] = &[$(&$entry,)*];

        /// The metrics with signatures, in the same order.
        static READERS: &[(&Entry, ReadOptions)] = &[$($((&$entry, $read),)?)*];
    };
}

metrics! {
    text::BLEU => text::read_bleu,
    text::CHRF => text::read_chrf,
    text::TER => text::read_ter,
    edit::WER => edit::read_words,
    edit::CER => edit::read_characters,
    text::EXACT_MATCH => text::read_exact_match,
    audio::MEL_ERROR => audio::read_error,
    audio::MCD => audio::read_cepstra,
    speed::UPDATES_PER_SECOND,
    speed::TOKENS_PER_SECOND,
    speed::TARGET_TOKENS_PER_SECOND,
    speed::SENTENCES_PER_SECOND,
    speed::UTTERANCES_PER_SECOND,
    speed::MEL_FRAMES_PER_SECOND,
    speed::TIME_TO_TRAIN,
    likelihood::LOSS => likelihood::read_loss,
    training::TRAIN_LOSS => training::read_loss,
    likelihood::VALID_LOSS,
    likelihood::PERPLEXITY => likelihood::read_perplexity,
    likelihood::PPL,
    training::TRAIN_PERPLEXITY => training::read_perplexity,
    likelihood::VALID_PERPLEXITY,
    likelihood::BITS_PER_CHARACTER => likelihood::read_bits,
    speed::BATCH,
    speed::UTTERANCES_A_GPU,
    speed::MEMORY,
    classification::ACCURACY => classification::read_accuracy,
    classification::TOP1,
    classification::TOP5,
    classification::ERROR => classification::read_error,
    classification::F1 => classification::read_f1,
    training::TRAIN_ACCURACY => training::read_accuracy,
    text::CHRF2,
    audio::MOS,
    speed::SCALING_EFFICIENCY,
    speed::LATENCY_MS,
}

impl Entry {
    /// The metric with this name, ignoring case.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().copied().find(|metric| metric.name.eq_ignore_ascii_case(name))
    }

    /// The metric whose signatures have this name, and the function that reads its options.
    ///
    /// # Errors
    /// No metric has this name; the error names the nearest one.
    pub fn with_signature(name: &str) -> Result<(&'static Self, ReadOptions), ScoreError> {
        let found = READERS.iter().copied().find(|(entry, _)| entry.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = READERS.iter().map(|(entry, _)| entry.name).collect();
            unknown("metric", name, &names)
        })
    }

    /// Whether a claim on this metric may have a signature with this convention.
    #[must_use]
    pub fn takes(&self, convention: &Convention) -> bool {
        let own = convention.entry();
        match self.path {
            Path::ScoredAs(of, required) => {
                let stated = convention.metric().parts();
                let is_stated =
                    |(key, value): &(&str, &str)| stated.iter().any(|(k, v)| k == key && v == value);
                own == of && required.iter().all(is_stated)
            }
            Path::Scored | Path::Trained => own == self,
            Path::Timed { .. } | Path::Unjudged(_) => false,
        }
    }

    /// Whether the metric's signatures have a part `metric:`. sacreBLEU's do not.
    pub(super) fn is_named(&self) -> bool {
        ![&text::BLEU, &text::CHRF, &text::TER].contains(&self)
    }

    /// The metric of a signature without a part `metric:`, by its other parts.
    pub(super) fn unnamed(parts: &Parts<'_>) -> Option<&'static Self> {
        if parts.has("nc") || parts.has("nw") {
            Some(&text::CHRF)
        } else if parts.is("tok", "tercom") {
            Some(&text::TER)
        } else if parts.has("tok") || parts.has("smooth") {
            Some(&text::BLEU)
        } else {
            None
        }
    }
}

impl<'de> Deserialize<'de> for &'static Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Entry::with_signature(&name).map(|(entry, _)| entry).map_err(serde::de::Error::custom)
    }
}

impl Convention {
    /// Name, unit and direction of the metric.
    pub fn entry(&self) -> &'static Entry {
        self.metric().entry()
    }

    /// Checks the options and rejects invalid ones.
    ///
    /// # Errors
    /// The option, its value and its range.
    pub fn check(&self) -> Result<(), ScoreError> {
        self.metric().check()
    }

    /// The convention for scoring each sentence of a corpus separately. Of any kind of BLEU it is
    /// sacreBLEU's sentence BLEU.
    pub(super) fn of_sentences(self) -> Self {
        let smoothing = Smoothing::default();
        let bleu =
            |case, tokenizer| Self::Bleu(BleuOptions { case, effective_order: true, tokenizer, smoothing });
        match self {
            Self::Bleu(options) => bleu(options.case, options.tokenizer),
            // This text is already tokenised.
            Self::TokenisedBleu(TokenisedBleuOptions { case, .. }) => bleu(case, Tokenizer::None),
            other => other,
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
