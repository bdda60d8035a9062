//! The conditions of one score.

use serde::Serialize;

use crate::metrics::{
    BleuOptions, Case, ChrfOptions, Compounds, Convention, ErrorRateOptions, ExactMatchOptions, Smoothing,
    Source, TerOptions, TokenisedBleuOptions, Tokenizer,
};

/// Treatment of both sides before n-grams are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Whether Moses' tokenizer is applied first.
    pub tokenised: bool,
    /// Whether hyphenated compounds are split, as in `compound_split_bleu.sh` of tensor2tensor and
    /// fairseq; only with white-space tokens.
    pub split: bool,
    /// The metric's own tokenizer; `None` for metrics without a choice of tokenizer.
    pub tokenizer: Option<Tokenizer>,
}

/// The conditions of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Treatment of the text.
    pub text: Text,
    /// Treatment of case.
    pub case: Case,
    /// File of hypotheses, as an index into the settings.
    pub setting: usize,
}

/// A condition in which two points may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// How the text is split into tokens.
    Tokenisation,
    /// Splitting of hyphenated compounds.
    CompoundSplitting,
    /// Treatment of case.
    Case,
    /// Search used for decoding.
    Search,
    /// Choice of weights: averaged or not.
    Weights,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 5] =
        [Self::Tokenisation, Self::CompoundSplitting, Self::Case, Self::Search, Self::Weights];

    /// The cause in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokenisation => "tokenisation",
            Self::CompoundSplitting => "compound splitting",
            Self::Case => "case",
            Self::Search => "search",
            Self::Weights => "weights",
        }
    }

    /// Whether scores by a convention can depend on the cause.
    pub(super) fn applies_to(self, convention: &Convention) -> bool {
        match self {
            Self::Tokenisation | Self::CompoundSplitting => Text::is_varied(convention),
            Self::Case => convention.metric().source() == Source::Text,
            Self::Search | Self::Weights => true,
        }
    }
}

impl Text {
    /// Whether published scores of a metric differ in the treatment of the text.
    #[must_use]
    pub fn is_varied(convention: &Convention) -> bool {
        matches!(convention, Convention::Bleu(_) | Convention::TokenisedBleu(..))
    }

    /// Treatments used for published scores of a metric.
    pub(super) fn all(convention: &Convention) -> Vec<Self> {
        let plain = |tokenizer| Self { tokenised: false, split: false, tokenizer };
        if !Self::is_varied(convention) {
            return vec![plain(None)];
        }
        let none = plain(Some(Tokenizer::None));
        let mut all: Vec<Self> = [Tokenizer::V13a, Tokenizer::Intl].map(|t| plain(Some(t))).into();
        all.extend([
            none,
            Self { split: true, ..none },
            Self { tokenised: true, ..none },
            Self { tokenised: true, split: true, ..none },
        ]);
        let own = Self::of(convention);
        if !all.contains(&own) {
            all.push(own);
        }
        all
    }

    /// The treatment that a convention itself implies.
    pub(super) fn of(convention: &Convention) -> Self {
        let tokenizer = match convention {
            Convention::Bleu(options) => Some(options.tokenizer),
            Convention::TokenisedBleu(..) => Some(Tokenizer::None),
            _ => None,
        };
        let split = matches!(
            convention,
            Convention::TokenisedBleu(TokenisedBleuOptions { compounds: Compounds::Split, .. })
        );
        Self { tokenised: false, split, tokenizer }
    }

    /// Compounds are split on white-space tokens only, because 13a and intl would split the
    /// inserted marks.
    pub(super) fn is_possible(&self) -> bool {
        !self.split || self.tokenizer == Some(Tokenizer::None)
    }

    /// The tokens, in one or two words.
    #[must_use]
    pub fn tokens(&self) -> &'static str {
        match (self.tokenised, self.tokenizer) {
            (true, _) => "tokenised (Moses)",
            (false, Some(Tokenizer::None)) => "none",
            (false, Some(tokenizer)) => tokenizer.name(),
            (false, None) => "the metric's own",
        }
    }
}

/// The convention with another treatment and case. The preprocessing of the text itself is not part
/// of it.
pub(super) fn convention(of: &Convention, text: Text, case: Case) -> Convention {
    match *of {
        Convention::Bleu(options) => Convention::Bleu(BleuOptions {
            case,
            tokenizer: text.tokenizer.unwrap_or(options.tokenizer),
            ..options
        }),
        Convention::TokenisedBleu(options) if text.tokenizer == Some(Tokenizer::None) => {
            let compounds = Compounds::Whole;
            Convention::TokenisedBleu(TokenisedBleuOptions { case, compounds, ..options })
        }
        Convention::TokenisedBleu(..) => Convention::Bleu(BleuOptions {
            case,
            effective_order: false,
            tokenizer: text.tokenizer.unwrap_or_default(),
            smoothing: Smoothing::None,
        }),
        Convention::Chrf(options) => Convention::Chrf(ChrfOptions { case, ..options }),
        Convention::Ter(options) => Convention::Ter(TerOptions { case, ..options }),
        Convention::ErrorRate(options) => Convention::ErrorRate(ErrorRateOptions { case, ..options }),
        Convention::ExactMatch(_) => Convention::ExactMatch(ExactMatchOptions { case }),
        other => other,
    }
}

/// The case treatment of a convention.
pub(super) fn case_of(convention: &Convention) -> Case {
    match convention {
        Convention::Bleu(options) => options.case,
        Convention::Chrf(options) => options.case,
        Convention::Ter(options) => options.case,
        Convention::ErrorRate(options) => options.case,
        Convention::TokenisedBleu(options) => options.case,
        Convention::ExactMatch(options) => options.case,
        _ => Case::Mixed,
    }
}
