//! Options of the metrics on lines of text.

use crate::metrics::contract::{Case, ScoreError, unknown};

/// How BLEU splits a line into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tokenizer {
    /// mteval-v13a.
    #[default]
    V13a,
    /// mteval-v14, international.
    Intl,
    /// One token per character.
    Char,
    /// White space only, for text that is already tokenised.
    None,
    /// Chinese characters become single tokens; the rest is split as in 13a.
    Zh,
}

impl Tokenizer {
    /// All tokenizers.
    pub const ALL: [Tokenizer; 5] =
        [Tokenizer::V13a, Tokenizer::Intl, Tokenizer::Char, Tokenizer::None, Tokenizer::Zh];

    /// sacreBLEU's name, which is also used in the signature.
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::V13a => "13a",
            Tokenizer::Intl => "intl",
            Tokenizer::Char => "char",
            Tokenizer::None => "none",
            Tokenizer::Zh => "zh",
        }
    }

    /// The tokenizer with this name. An unknown name is an error and never becomes 13a.
    pub fn parse(name: &str) -> Result<Self, ScoreError> {
        const MODEL: [&str; 6] = ["ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K"];
        if let Some(found) = Tokenizer::ALL.into_iter().find(|t| t.name() == name) {
            return Ok(found);
        }
        if MODEL.iter().any(|m| name == *m || name.starts_with(&format!("{m}-"))) {
            let hint =
                "tokenise both sides with that tool first and score with `none`; the signature will say so";
            return Err(ScoreError::Unsupported { what: "tokenizer", name: name.to_string(), hint });
        }
        Err(unknown("tokenizer", name, &Tokenizer::ALL.map(Tokenizer::name)))
    }
}

/// How BLEU treats n-gram orders without a match.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Smoothing {
    /// No smoothing: a single order without a match makes the score 0.
    None,
    /// The count is halved for each further order without a match (NIST, mteval-v13a).
    #[default]
    Exp,
    /// This number of matches replaces zero matches.
    Floor(f64),
    /// This number is added to matches and totals, from bigrams on.
    AddK(f64),
}

impl Smoothing {
    /// Name of the smoothing in sacreBLEU.
    pub fn name(self) -> &'static str {
        match self {
            Smoothing::None => "none",
            Smoothing::Exp => "exp",
            Smoothing::Floor(_) => "floor",
            Smoothing::AddK(_) => "add-k",
        }
    }

    /// The smoothing with this name. `floor` (default 0.1) and `add-k` (default 1) take a value
    /// above 0 with at most two decimals, because the signature prints two and one signature must
    /// not stand for two metrics.
    pub fn new(name: &str, value: Option<f64>) -> Result<Self, ScoreError> {
        let smoothing = match name {
            "none" => Smoothing::None,
            "exp" => Smoothing::Exp,
            "floor" => Smoothing::Floor(value.unwrap_or(0.1)),
            "add-k" => Smoothing::AddK(value.unwrap_or(1.0)),
            _ => return Err(unknown("smoothing", name, &["none", "exp", "floor", "add-k"])),
        };
        if let (Smoothing::None | Smoothing::Exp, Some(v)) = (smoothing, value) {
            let hint = "only floor and add-k take a value";
            return Err(ScoreError::OutOfRange { option: "smoothing value", value: v.to_string(), hint });
        }
        smoothing.check()?;
        Ok(smoothing)
    }

    pub(crate) fn check(self) -> Result<(), ScoreError> {
        let (Smoothing::Floor(v) | Smoothing::AddK(v)) = self else { return Ok(()) };
        let printed = format!("{v:.2}").parse::<f64>().ok();
        if v > 0.0 && v <= 100.0 && printed == Some(v) {
            return Ok(());
        }
        let hint = "above 0, at most 100, and no more than two decimals, which is what a signature can state";
        Err(ScoreError::OutOfRange { option: "smoothing value", value: v.to_string(), hint })
    }
}

/// Options of sacreBLEU's BLEU. The maximum order is 4: the signature cannot state another.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BleuOptions {
    /// Treatment of case.
    pub case: Case,
    /// Stop at the highest order that the hypotheses have (meant for single sentences).
    pub effective_order: bool,
    /// Tokenizer of both sides.
    pub tokenizer: Tokenizer,
    /// Smoothing of orders without a match.
    pub smoothing: Smoothing,
}

/// The tool whose tokenised BLEU is computed. Both compute BLEU-4 on white-space tokens without
/// smoothing; they differ in edge cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenisedBleu {
    /// Moses' `multi-bleu.perl`. Any number of references; ASCII white space; `-lc` lower-cases
    /// only ASCII letters.
    MultiBleu,
    /// fairseq's `fairseq-score` (libbleu). One reference; an empty line counts as one token; a
    /// reference's `<unk>` matches nothing; lower-casing and splitting use all of Unicode.
    Fairseq,
}

impl TokenisedBleu {
    /// The name in a signature's `impl:` part.
    pub fn name(self) -> &'static str {
        match self {
            TokenisedBleu::MultiBleu => "multi-bleu",
            TokenisedBleu::Fairseq => "fairseq",
        }
    }
}

/// Treatment of hyphenated words before tokenised BLEU counts n-grams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compounds {
    /// Words are kept whole.
    #[default]
    Whole,
    /// `a-b` becomes three tokens on both sides, as in the scripts of tensor2tensor and fairseq:
    /// `compounds:split` in a signature. This adds matches: about 0.7 to 1 BLEU on English-German.
    Split,
}

/// Options of chrF. Beta is 2: the signature cannot state another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChrfOptions {
    /// Treatment of case.
    pub case: Case,
    /// Highest order of character n-grams, 1 to 99.
    pub char_order: usize,
    /// Highest order of word n-grams, 0 to 99: 0 is chrF, 2 is chrF++.
    pub word_order: usize,
    /// Keep white space in character n-grams.
    pub whitespace: bool,
    /// Smooth with an epsilon over all orders instead of using the effective order (`eff:no`).
    pub eps_smoothing: bool,
}

impl Default for ChrfOptions {
    fn default() -> Self {
        ChrfOptions {
            case: Case::Mixed,
            char_order: 6,
            word_order: 0,
            whitespace: false,
            eps_smoothing: false,
        }
    }
}

impl ChrfOptions {
    pub(super) fn check_orders(&self) -> Result<(), ScoreError> {
        if !(1..=99).contains(&self.char_order) {
            let (option, value, hint) = ("chrF character order", self.char_order.to_string(), "1 to 99");
            return Err(ScoreError::OutOfRange { option, value, hint });
        }
        if self.word_order > 99 {
            let (option, value, hint) = ("chrF word order", self.word_order.to_string(), "0 to 99");
            return Err(ScoreError::OutOfRange { option, value, hint });
        }
        Ok(())
    }
}

/// Options of TER. Tercom's Asian normalisation is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerOptions {
    /// Treatment of case; Tercom lower-cases by default.
    pub case: Case,
    /// Apply Tercom's normalisation and tokenisation.
    pub normalized: bool,
    /// Remove punctuation.
    pub no_punct: bool,
}

impl Default for TerOptions {
    fn default() -> Self {
        TerOptions { case: Case::Lower, normalized: false, no_punct: false }
    }
}

/// Options of BLEU on tokenised text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenisedBleuOptions {
    /// The tool whose BLEU is computed.
    pub whose: TokenisedBleu,
    /// Treatment of case.
    pub case: Case,
    /// Treatment of hyphenated words.
    pub compounds: Compounds,
}

/// Options of exact match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExactMatchOptions {
    /// Treatment of case.
    pub case: Case,
}

impl std::fmt::Display for Smoothing {
    /// The form in a signature; a value has two decimals.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Smoothing::None | Smoothing::Exp => f.write_str(self.name()),
            Smoothing::Floor(v) | Smoothing::AddK(v) => write!(f, "{}[{v:.2}]", self.name()),
        }
    }
}
