//! The `[data]` block of a language modelling recipe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::ShareSpec;

/// Target of an input that has none: it was added to a row that has ended. It is the number of no
/// unit.
pub const NO_TARGET: u32 = u32::MAX;

/// A text, its units, and how they form windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageDataSpec {
    /// Name of a corpus of text, or of labelled texts, whose labels are not read; absent for the
    /// user's own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Read only the first lines of each split; absent: all. The vocabulary is always that of the
    /// whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// Where the text comes from.
    pub reader: LanguageReaderSpec,
    /// What the model predicts.
    pub unit: LanguageUnitSpec,
    /// Numbers of the units.
    pub vocabulary: LanguageVocabularySpec,
    /// How the training text forms batches.
    pub batching: TrainingWindowsSpec,
    /// Named evaluation sets.
    pub eval: BTreeMap<String, LanguageSetSpec>,
}

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LanguageReaderSpec {
    /// Text files in UTF-8: those of the corpus, or those that are named here.
    Text {
        /// For each split, its file, relative to the recipe file. Empty for a corpus.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
        /// Share of the characters of the only split, `text`, that is `train`; the rest is `valid`.
        /// Absent: the splits are those of the corpus or of `files`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        training_share: Option<f64>,
    },
    /// A toy of our own: lines of a small Markov chain of two-letter words. Splits `train`, `valid`
    /// and `test`.
    Babble {
        /// Number of different words, 100 at most.
        words: u32,
        /// Training lines.
        train: u32,
        /// Validation lines.
        valid: u32,
        /// Test lines.
        test: u32,
        /// Seed of the generator.
        seed: u64,
    },
}

/// The unit of a language model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LanguageUnitSpec {
    /// Words between white space.
    Word {
        /// Word that is added at the end of each line; absent: lines leave no trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end_of_line: Option<String>,
        /// Word that stands for those that are not in the vocabulary; absent: such a word is an
        /// error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown: Option<String>,
        /// Changes of each line before it is split into words; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<WordRules>,
    },
    /// Unicode characters, line feeds included.
    Character {},
}

/// See [`LanguageUnitSpec::Word`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WordRules {
    /// `@-@` becomes a hyphen, each hyphen a word of its own, `etc` with the space and the
    /// character after it `etc.`, and `n 't` a space and `n't` (OpenSeq2Seq, for WikiText).
    Openseq2seq,
    /// The words of film reviews as OpenSeq2Seq splits them for its classifiers, all in lower case.
    /// Ours: a language model whose words a classifier can read.
    Reviews,
}

/// The numbers of the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageVocabularySpec {
    /// Number of units that the text must have; another number is an error unless it is
    /// `estimated`.
    pub size: u32,
    /// Whether `size` is an estimate for plans. The model has as many units as the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Units that occur less often are left out: `data.unit.unknown` stands for them. Absent: none
    /// are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_count: Option<u64>,
    /// Order of the units.
    pub order: VocabularyOrder,
    /// Splits that are counted.
    pub of: VocabularySplits,
}

/// See [`LanguageVocabularySpec::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VocabularyOrder {
    /// Order of first appearance: in the training split, then in `valid`, then in the other splits
    /// by name (PyTorch's `word_language_model`).
    Appearance,
    /// By falling count; of equal counts by the unit (TensorFlow's `ptb` reader).
    Frequency,
    /// The unknown word, then by falling count; of equal counts in the order of first appearance.
    /// The first line is not counted (OpenSeq2Seq).
    Openseq2seq,
    /// Sorted by code point (char-rnn, nanoGPT).
    Sorted,
}

/// See [`LanguageVocabularySpec::of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VocabularySplits {
    /// The training split.
    Training,
    /// All splits.
    All,
    /// The split `vocabulary` of the corpus, or the file of that name: each line begins with a
    /// unit. `order` must be `appearance`: that of the list.
    List,
}

/// How the training text forms batches. A window is the input of one row; its targets are the same
/// units one place later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrainingWindowsSpec {
    /// The text is cut into `rows` contiguous parts of equal length (the rest is left out); batch k
    /// has window k of every part. An epoch reads every window once.
    Contiguous {
        /// Parts of the text: rows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
        /// What happens to the last window of a part, if it has fewer units.
        last: LastWindow,
        /// State of a recurrent model at the beginning of a window.
        state: WindowState,
    },
    /// Windows at random places, independent of each other. The text has no epochs: `batches` of
    /// them are one epoch of the run.
    Random {
        /// Windows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
        /// Batches between two validations.
        batches: u32,
    },
    /// The text is cut into windows from a place in the first one on, which is drawn anew for each
    /// pass; what does not fill a window is left out. A batch has the next `rows` windows, also
    /// across the end of a pass (OpenSeq2Seq). An epoch has as many batches as fit into one pass.
    Chunks {
        /// Windows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
        /// Whether the windows of a pass are shuffled.
        shuffled: bool,
        /// Read only so many units of the text; absent: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_units: Option<u32>,
    },
    /// Every row reads whole lines, one after the other. A row that has read one takes the next of
    /// an endless series of passes over the text, each in an order of its own. A line is preceded
    /// by the unit that ends lines. A window begins with the state at the end of the one before,
    /// also across lines and passes (LM1B). An epoch has as many batches as one pass fills.
    Sentences {
        /// Rows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
    },
}

impl TrainingWindowsSpec {
    /// Rows of a batch, and units of a window.
    pub fn shape(self) -> [u32; 2] {
        match self {
            Self::Contiguous { rows, steps, .. }
            | Self::Random { rows, steps, .. }
            | Self::Chunks { rows, steps, .. }
            | Self::Sentences { rows, steps } => [rows, steps],
        }
    }

    /// Whether a window begins with the state at the end of the one before.
    pub fn carries(self) -> bool {
        matches!(self, Self::Contiguous { state: WindowState::Carried, .. } | Self::Sentences { .. })
    }
}

/// See [`TrainingWindowsSpec::Contiguous`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LastWindow {
    /// It is shorter than the others (PyTorch).
    Short,
    /// It is left out (TensorFlow).
    Drop,
}

/// State of a recurrent model at the beginning of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowState {
    /// The state at the end of the window before, without a gradient; zeros at the beginning of an
    /// epoch or evaluation.
    Carried,
    /// Zeros.
    Reset,
}

/// A named evaluation set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageSetSpec {
    /// Split of the corpus or reader.
    pub split: String,
    /// Lines that the split must have; another number is an error.
    pub lines: u32,
    /// How the text is read.
    pub windows: EvaluationWindowsSpec,
}

/// How the text of an evaluation set is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EvaluationWindowsSpec {
    /// All of the text; see [`TrainingWindowsSpec::Contiguous`].
    Contiguous {
        /// Parts of the text: rows of a batch.
        rows: u32,
        /// Units of a window. With carried state, the number changes the loss only by rounding.
        steps: u32,
        /// What happens to the last window of a part, if it has fewer units.
        last: LastWindow,
        /// State of a recurrent model at the beginning of a window.
        state: WindowState,
        /// Number that the summed loss is divided by.
        #[serde(default, skip_serializing_if = "LossDivisor::is_predicted")]
        divisor: LossDivisor,
    },
    /// Windows at random places, drawn once from a seed: an estimate of the loss.
    Random {
        /// Windows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
        /// Number of batches.
        batches: u32,
        /// Seed of the places.
        seed: u64,
    },
    /// The text is cut into windows from its beginning on; what does not fill a window is left out.
    /// The last batch is filled with the first windows, which count again (OpenSeq2Seq).
    Chunks {
        /// Windows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
        /// Read only so many units of the text; absent: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_units: Option<u32>,
    },
    /// The lines in their order; see [`TrainingWindowsSpec::Sentences`]. Every unit is predicted
    /// once: the last windows of a row may be shorter, or empty.
    Sentences {
        /// Rows of a batch.
        rows: u32,
        /// Units of a window.
        steps: u32,
    },
}

impl EvaluationWindowsSpec {
    /// Rows of a batch, and units of a window.
    pub fn shape(self) -> [u32; 2] {
        match self {
            Self::Contiguous { rows, steps, .. }
            | Self::Random { rows, steps, .. }
            | Self::Chunks { rows, steps, .. }
            | Self::Sentences { rows, steps } => [rows, steps],
        }
    }

    /// Whether a window begins with the state at the end of the one before.
    pub fn carries(self) -> bool {
        matches!(self, Self::Contiguous { state: WindowState::Carried, .. } | Self::Sentences { .. })
    }

    /// Number that the summed loss is divided by.
    pub fn divisor(self) -> LossDivisor {
        match self {
            Self::Contiguous { divisor, .. } => divisor,
            Self::Random { .. } | Self::Chunks { .. } | Self::Sentences { .. } => LossDivisor::Predicted,
        }
    }
}

/// Number that the summed loss of an evaluation set is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossDivisor {
    /// The units that are predicted.
    #[default]
    Predicted,
    /// All units of the parts, also the first of each part, which is given and not predicted: what
    /// PyTorch's `word_language_model` divides by. The perplexity is a little too low.
    All,
}

impl LossDivisor {
    fn is_predicted(&self) -> bool {
        *self == Self::Predicted
    }
}
