//! What a number was computed as: the options of every metric, as closed sets.

use super::error::{ScoreError, unknown};
use zoo_recipes::spec::Direction;

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Metric {
    /// BLEU, 0 to 100.
    Bleu,
    /// chrF or chrF++, 0 to 100.
    Chrf,
    /// Translation edit rate in percent; may exceed 100.
    Ter,
    /// Word error rate in percent; may exceed 100.
    Wer,
    /// Character error rate in percent; may exceed 100.
    Cer,
    /// Right ones among all, in percent.
    Accuracy,
    /// Hypotheses equal to a reference, in percent.
    ExactMatch,
    /// Mean loss, in nats.
    Loss,
    /// Exponential of the mean token loss.
    Perplexity,
    /// Mel-cepstral distortion, in dB.
    Mcd,
    /// Mean squared error of log-mel spectrograms.
    MelError,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 11] = [
        Metric::Bleu,
        Metric::Chrf,
        Metric::Ter,
        Metric::Wer,
        Metric::Cer,
        Metric::Accuracy,
        Metric::ExactMatch,
        Metric::Loss,
        Metric::Perplexity,
        Metric::Mcd,
        Metric::MelError,
    ];

    /// The name in recipes, records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Bleu => "bleu",
            Metric::Chrf => "chrf",
            Metric::Ter => "ter",
            Metric::Wer => "wer",
            Metric::Cer => "cer",
            Metric::Accuracy => "accuracy",
            Metric::ExactMatch => "exact-match",
            Metric::Loss => "loss",
            Metric::Perplexity => "perplexity",
            Metric::Mcd => "mcd",
            Metric::MelError => "mel-error",
        }
    }

    /// Which way is better.
    pub fn direction(self) -> Direction {
        match self {
            Metric::Bleu | Metric::Chrf | Metric::Accuracy | Metric::ExactMatch => Direction::Higher,
            Metric::Ter
            | Metric::Wer
            | Metric::Cer
            | Metric::Loss
            | Metric::Perplexity
            | Metric::Mcd
            | Metric::MelError => Direction::Lower,
        }
    }

    /// Whether values are in percent: a score of one half is 50, and errors may exceed 100.
    pub fn is_percentage(self) -> bool {
        match self {
            Metric::Bleu
            | Metric::Chrf
            | Metric::Ter
            | Metric::Wer
            | Metric::Cer
            | Metric::Accuracy
            | Metric::ExactMatch => true,
            Metric::Loss | Metric::Perplexity | Metric::Mcd | Metric::MelError => false,
        }
    }

    /// The metric of that name. An error names the nearest.
    pub fn parse(name: &str) -> Result<Self, ScoreError> {
        let all = Metric::ALL.map(Metric::name);
        Metric::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| unknown("metric", name, &all))
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

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
    pub(crate) fn check(&self) -> Result<(), ScoreError> {
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

/// What an error rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorUnit {
    /// Words: the metric is `wer`.
    Word,
    /// Code points, spaces among them: the metric is `cer`.
    Character,
}

/// What an error rate makes of white space; ends of lines never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// As jiwer 4.0 does unasked. Words part at U+0020 and at two white-space characters or more: one tab alone stays inside of a word.
    /// Characters stand as they are.
    #[default]
    Jiwer,
    /// Runs of any white space are one space: Python's `str.split`, which OpenSeq2Seq counts words by.
    Collapse,
}

impl Whitespace {
    /// All of them.
    pub const ALL: [Whitespace; 2] = [Whitespace::Jiwer, Whitespace::Collapse];

    /// The name in a signature's `space:` part.
    pub fn name(self) -> &'static str {
        match self {
            Whitespace::Jiwer => "jiwer",
            Whitespace::Collapse => "collapse",
        }
    }

    /// The treatment of that name.
    pub fn parse(name: &str) -> Result<Self, ScoreError> {
        let all = Whitespace::ALL.map(Whitespace::name);
        let found = Whitespace::ALL.into_iter().find(|w| w.name() == name);
        found.ok_or_else(|| unknown("treatment of white space", name, &all))
    }
}

/// Options of word and character error rate. Edits cost 1 each; of equally short alignments jiwer's is counted (`align:jiwer`).
/// sclite's costs of 4, 3 and 3 are not built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRateOptions {
    /// Words or characters.
    pub unit: ErrorUnit,
    /// Case.
    pub case: Case,
    /// White space.
    pub whitespace: Whitespace,
}

/// Bands of a spectrogram that no front end goes beyond.
pub(super) const MOST_MELS: usize = 4096;

/// Options of mel-cepstral distortion. The DCT-II is orthonormal (`dct:ortho`), c0 is left out, and utterances weigh alike
/// (`mean:utterance`); other scales and means are not built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CepstralOptions {
    /// The last coefficient K of 1 to K, below the number of bands.
    pub coefficients: usize,
    /// Pair frames by dynamic time warping? Else by their place, as for a decoder that was forced with the target's frames.
    pub warped: bool,
    /// Mel bands, 2 to 4096.
    pub mels: usize,
}

impl Default for CepstralOptions {
    /// 13 coefficients of 80 bands, warped.
    fn default() -> Self {
        Self { coefficients: 13, warped: true, mels: 80 }
    }
}

impl CepstralOptions {
    fn check(&self) -> Result<(), ScoreError> {
        check_mels(self.mels, 2)?;
        if (1..self.mels).contains(&self.coefficients) {
            return Ok(());
        }
        let (option, value) = ("last cepstral coefficient", self.coefficients.to_string());
        Err(ScoreError::OutOfRange { option, value, hint: "from 1, and below the number of mel bands" })
    }
}

fn check_mels(mels: usize, least: usize) -> Result<(), ScoreError> {
    if (least..=MOST_MELS).contains(&mels) {
        return Ok(());
    }
    let (option, value) = ("number of mel bands", mels.to_string());
    Err(ScoreError::OutOfRange { option, value, hint: "1 to 4096, of cepstra 2 at least; 80 is usual" })
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Target tokens as the model sees them.
    Token,
    /// Target words.
    Word,
    /// Sentences or utterances.
    Sentence,
}

impl Unit {
    /// The name in a signature's `unit:` part.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Token => "token",
            Unit::Word => "word",
            Unit::Sentence => "sentence",
        }
    }
}

/// A metric and every option that changes its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Convention {
    /// sacreBLEU's BLEU.
    Bleu(BleuOptions),
    /// multi-bleu's or fairseq's.
    TokenisedBleu(TokenisedBleu, Case, Compounds),
    /// sacreBLEU's chrF.
    Chrf(ChrfOptions),
    /// sacreBLEU's TER.
    Ter(TerOptions),
    /// Word or character error rate, as jiwer computes it.
    ErrorRate(ErrorRateOptions),
    /// Hypotheses that equal a reference once white space is collapsed.
    ExactMatch(Case),
    /// Right ones among all.
    Accuracy(Unit),
    /// Mean loss in nats by unit, and the label smoothing in it (0: the plain cross-entropy).
    Loss(Unit, f64),
    /// exp of the mean plain cross-entropy by unit.
    Perplexity(Unit),
    /// Mel-cepstral distortion of log-mel spectrograms.
    MelCepstral(CepstralOptions),
    /// Mean squared error of log-mel spectrograms, all frames of all utterances alike.
    MelError {
        /// Mel bands.
        mels: usize,
    },
}

impl Convention {
    /// Which metric.
    pub fn metric(&self) -> Metric {
        match self {
            Convention::Bleu(_) | Convention::TokenisedBleu(..) => Metric::Bleu,
            Convention::Chrf(_) => Metric::Chrf,
            Convention::Ter(_) => Metric::Ter,
            Convention::ErrorRate(o) => match o.unit {
                ErrorUnit::Word => Metric::Wer,
                ErrorUnit::Character => Metric::Cer,
            },
            Convention::ExactMatch(_) => Metric::ExactMatch,
            Convention::Accuracy(_) => Metric::Accuracy,
            Convention::Loss(..) => Metric::Loss,
            Convention::Perplexity(_) => Metric::Perplexity,
            Convention::MelCepstral(_) => Metric::Mcd,
            Convention::MelError { .. } => Metric::MelError,
        }
    }

    /// Is it made from what was measured of each utterance, kept as lines?
    pub fn is_from_measures(&self) -> bool {
        matches!(self, Convention::MelCepstral(_) | Convention::MelError { .. })
    }

    /// Is it made from hypotheses and references?
    pub fn is_from_text(&self) -> bool {
        !matches!(
            self,
            Convention::Accuracy(_)
                | Convention::Loss(..)
                | Convention::Perplexity(_)
                | Convention::MelCepstral(_)
                | Convention::MelError { .. }
        )
    }

    /// Options that no metric can have.
    pub fn check(&self) -> Result<(), ScoreError> {
        match self {
            Convention::Bleu(o) => o.smoothing.check(),
            Convention::Chrf(o) => o.check(),
            Convention::MelCepstral(o) => o.check(),
            Convention::MelError { mels } => check_mels(*mels, 1),
            Convention::Loss(_, s) if !(0.0..1.0).contains(s) => Err(ScoreError::OutOfRange {
                option: "label smoothing",
                value: s.to_string(),
                hint: "0 up to, not including, 1",
            }),
            _ => Ok(()),
        }
    }
}
