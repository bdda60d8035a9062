//! Options of the metrics on lines of text, as closed sets.

use crate::metrics::error::{ScoreError, unknown};

/// Is case looked at?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// As it stands.
    #[default]
    Mixed,
    /// Both sides are lower-cased.
    Lower,
}

/// How BLEU splits a line into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tokenizer {
    /// mteval-v13a.
    #[default]
    V13a,
    /// mteval-v14, international.
    Intl,
    /// One token a character.
    Char,
    /// White space only: for text that is tokenised already.
    None,
    /// Chinese characters one by one, the rest as 13a does.
    Zh,
}

impl Tokenizer {
    /// All of them.
    pub const ALL: [Tokenizer; 5] =
        [Tokenizer::V13a, Tokenizer::Intl, Tokenizer::Char, Tokenizer::None, Tokenizer::Zh];

    /// sacreBLEU's name, which is also what the signature says.
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::V13a => "13a",
            Tokenizer::Intl => "intl",
            Tokenizer::Char => "char",
            Tokenizer::None => "none",
            Tokenizer::Zh => "zh",
        }
    }

    /// The tokenizer of that name; never a silent 13a.
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

/// What BLEU does about n-gram orders without a match.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Smoothing {
    /// Nothing: one order without a match makes the score 0.
    None,
    /// Halved for each further order without a match (NIST, mteval-v13a).
    #[default]
    Exp,
    /// This many matches instead of none.
    Floor(f64),
    /// This is added to matches and totals from bigrams on.
    AddK(f64),
}

impl Smoothing {
    /// sacreBLEU's name.
    pub fn name(self) -> &'static str {
        match self {
            Smoothing::None => "none",
            Smoothing::Exp => "exp",
            Smoothing::Floor(_) => "floor",
            Smoothing::AddK(_) => "add-k",
        }
    }

    /// From a name and, for `floor` (default 0.1) and `add-k` (default 1), a value above 0 with at most two
    /// decimals: the signature prints two, and one signature must not stand for two metrics.
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
    /// Case.
    pub case: Case,
    /// Stop at the highest order that the hypotheses have (meant for single sentences).
    pub effective_order: bool,
    /// Tokens.
    pub tokenizer: Tokenizer,
    /// Smoothing.
    pub smoothing: Smoothing,
}

/// Whose tokenised BLEU: both are BLEU-4 on white-space tokens without smoothing, and differ at the edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenisedBleu {
    /// Moses' `multi-bleu.perl`. Any number of references; ASCII white space; `-lc` lowers ASCII letters only.
    MultiBleu,
    /// fairseq's `fairseq-score` (libbleu). One reference; an empty line counts as one token; a reference's
    /// `<unk>` matches nothing; the whole of Unicode is lowered and split.
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

/// What is done about hyphened words before tokenised BLEU counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compounds {
    /// Nothing.
    #[default]
    Whole,
    /// `a-b` becomes three tokens on both sides, as tensor2tensor's and fairseq's scripts do: `compounds:split` in a signature. It
    /// adds matches: about 0.7 to 1 BLEU on English-German.
    Split,
}

/// Options of chrF. Beta is 2: the signature cannot state another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChrfOptions {
    /// Case.
    pub case: Case,
    /// Highest character n-gram order, 1 to 99.
    pub char_order: usize,
    /// Highest word n-gram order, 0 to 99: 0 is chrF, 2 is chrF++.
    pub word_order: usize,
    /// Keep white space in character n-grams.
    pub whitespace: bool,
    /// Smooth with an epsilon over all orders instead of the effective order (`eff:no`).
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

/// Options of TER. Tercom's Asian normalisation is not built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerOptions {
    /// Case; Tercom lowers by default.
    pub case: Case,
    /// Tercom's normalisation and tokenisation.
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
    /// Whose BLEU.
    pub whose: TokenisedBleu,
    /// Case.
    pub case: Case,
    /// Hyphened words.
    pub compounds: Compounds,
}

/// Options of exact match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExactMatchOptions {
    /// Case.
    pub case: Case,
}

impl Case {
    /// The part of a signature.
    pub(crate) fn part(self) -> (&'static str, String) {
        ("case", if self == Case::Lower { "lc" } else { "mixed" }.to_string())
    }
}

impl std::fmt::Display for Smoothing {
    /// As a signature has it, with two decimals where there is a value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Smoothing::None | Smoothing::Exp => f.write_str(self.name()),
            Smoothing::Floor(v) | Smoothing::AddK(v) => write!(f, "{}[{v:.2}]", self.name()),
        }
    }
}
