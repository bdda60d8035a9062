//! The `[data]` block of a text classification recipe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{Asked, DataBlock, EvalSet, Generated, ShareSpec};

/// Number of a position without a word, for vocabularies in which 0 is the number of a word. It has
/// no vector.
pub const NO_WORD: u32 = u32::MAX;

/// Positions of a text that are assumed where only the data determines them.
pub const ASSUMED_POSITIONS: u32 = 64;

/// Texts, their words as numbers, and how they form batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledDataSpec {
    /// Name of a corpus of labelled texts; absent for the user's own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Read only the first texts of each class of each split; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// Where the texts come from.
    pub reader: LabelledReaderSpec,
    /// Number of classes.
    pub classes: u32,
    /// Words of a text, and their numbers.
    pub tokenizer: LabelledTokenizerSpec,
    /// Number of positions of the model's input.
    pub length: LabelledLengthSpec,
    /// A part of the training texts that is not trained on; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutSpec>,
    /// Cross-validation; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<FoldsSpec>,
    /// How training texts form batches.
    pub batching: LabelledBatchingSpec,
    /// Named evaluation sets.
    pub eval: BTreeMap<String, LabelledSetSpec>,
}

/// Where labelled texts come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LabelledReaderSpec {
    /// The texts of `data.corpus`.
    Corpus {},
    /// Text files. The first word of a line is the class, the rest is the text. Classes are in the
    /// order of their names, or of their numbers if all are numbers.
    LabelledLines {
        /// For each split, its file; relative to the recipe file.
        files: BTreeMap<String, String>,
    },
    /// Folders of files whose names end in `.txt`: one subfolder for each class, in the order of
    /// their names.
    TextFolder {
        /// For each split, its folder; relative to the recipe file.
        folders: BTreeMap<String, String>,
    },
    /// A toy of our own: random words, some of which occur in texts of one class only. Splits
    /// `train`, `valid` and `test`.
    MarkedWords {
        /// Training texts.
        train: u32,
        /// Validation texts.
        #[serde(default, skip_serializing_if = "is_zero")]
        valid: u32,
        /// Test texts.
        test: u32,
        /// Seed of the generator.
        seed: u64,
    },
}

/// Words of a text, and their numbers. Texts are read as bytes, in any encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LabelledTokenizerSpec {
    /// Keras's `imdb.load_data`: lower-case words between ASCII punctuation other than `'`. Numbers
    /// are by falling count in the training texts, from 4 on; 1 starts a text, 2 is a word that is
    /// too rare, and 0 is padding. Words that the training texts do not have are left out.
    Keras {
        /// `num_words`: number of rows of the embedding. Rarer words become number 2.
        words: u32,
        /// Append the text's pairs of neighbours that the training texts have. Their numbers are
        /// above those of words.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        bigrams: bool,
    },
    /// Words of a language model: those that the run of `train.transfer` kept, with their numbers,
    /// the first of which is 0. A text is split as in OpenSeq2Seq's `IMDBCorpus` and `SSTCorpus`,
    /// by NLTK's rules for the words of a sentence. What the model lacks is split again in lower
    /// case, and is the unknown word if the model lacks that, too. Padding has no number.
    LanguageModel {
        /// Changes of a text before it is split.
        rules: LabelledRules,
        /// The model's word for those that it lacks.
        unknown: String,
        /// Number of the model's words, for plans: an estimate. The model has as many as the run
        /// kept.
        words: u32,
    },
    /// Kim's cleaning, in lower case, as in harvardnlp/sent-conv-torch. Numbers are in order of
    /// appearance in the training texts, then in those of the evaluation sets; 0 is padding.
    Kim {},
}

/// See [`LabelledTokenizerSpec::LanguageModel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelledRules {
    /// Reviews with HTML line breaks, in which every full stop is a word of its own (IMDB).
    Reviews,
    /// Single sentences (SST).
    Sentences,
}

/// Number of positions of the model's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LabelledLengthSpec {
    /// The last numbers of a text; shorter texts get padding in front (Keras's `pad_sequences`).
    Last {
        /// Positions.
        positions: u32,
    },
    /// As many as the longest text of all splits has, with a margin of padding on both sides.
    /// Shorter texts get padding behind (sent-conv-torch).
    Longest {
        /// Padding in front of every text, and behind the longest.
        margin: u32,
    },
}

/// Training texts that form a split of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldOutSpec {
    /// Name of the split.
    pub split: String,
    /// Number of texts, drawn at random.
    pub texts: u32,
    /// Seed of the draw. The split is the same for all seeds of the training.
    pub seed: u64,
}

/// Cross-validation of the training texts: they are cut into parts of equal size, and each part has
/// a model of its own, which is trained on the texts of the other parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FoldsSpec {
    /// Number of parts.
    pub count: u32,
    /// Order in which the texts are cut into parts.
    pub order: FoldOrder,
    /// Name of the split of all texts, part by part. The model of its part classifies each text.
    pub tested: String,
    /// Name of the split of the texts of all parts that are not trained on.
    pub held_out: String,
    /// Share of the whole batches of a part's training texts that is trained on, rounded to whole
    /// batches. The other texts, drawn at random, are those of `held_out`.
    pub trained: f64,
    /// Seed of the draws. The splits are the same for all seeds of the training.
    pub seed: u64,
}

/// See [`FoldsSpec::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FoldOrder {
    /// Random. No model is trained on a text of its part.
    Shuffled,
    /// The order of the file. As in sent-conv-torch, the first and the last text of a part are also
    /// trained on.
    AsInTheFile,
}

/// How training texts form batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledBatchingSpec {
    /// Texts in a batch.
    pub texts: u32,
    /// Order of the texts in an epoch.
    pub order: LabelledOrder,
    /// What happens to the texts of an epoch that do not fill a batch.
    pub remainder: LabelledRemainder,
}

/// See [`LabelledBatchingSpec::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelledOrder {
    /// A new random order in every epoch.
    Shuffled,
    /// The texts of each batch are drawn once. Each epoch has these batches in a new random order
    /// (sent-conv-torch, and Kim's own code).
    ShuffledBatches,
}

/// See [`LabelledBatchingSpec::remainder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelledRemainder {
    /// They form a smaller batch (Keras, PyTorch).
    Short,
    /// They are left out.
    Drop,
}

/// A named evaluation set of texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledSetSpec {
    /// Split of the corpus or reader, or one that `data.held_out` or `data.folds` makes.
    pub split: String,
    /// Texts that the set must have; another number is an error.
    pub lines: u32,
}

impl LabelledDataSpec {
    /// Positions of the model's input; [`ASSUMED_POSITIONS`] where only the data determines them.
    pub fn positions(&self) -> u32 {
        match self.length {
            LabelledLengthSpec::Last { positions } => positions,
            LabelledLengthSpec::Longest { margin } => {
                margin.saturating_mul(2).saturating_add(ASSUMED_POSITIONS)
            }
        }
    }

    /// Number of models: one for each part of a cross-validation.
    pub fn models(&self) -> u32 {
        self.folds.as_ref().map_or(1, |folds| folds.count.max(1))
    }

    pub(super) fn made(&self) -> Option<Generated> {
        match self.reader {
            LabelledReaderSpec::MarkedWords { train, valid, test, seed: _ } => {
                Some(Generated { train, valid, test })
            }
            _ => None,
        }
    }
}

impl DataBlock for LabelledDataSpec {
    fn corpus(&self) -> Option<&str> {
        self.corpus.as_deref()
    }

    fn is_generated(&self) -> bool {
        self.made().is_some()
    }

    fn asked(&self, eval: &str) -> Vec<Asked> {
        match (self.made(), self.eval.get(eval)) {
            (_, None) => Vec::new(),
            // Generated words have fewer letters than a position of the model's input has bytes.
            (Some(made), Some(set)) => {
                let texts = u64::from(made.of(&set.split)).saturating_add(u64::from(made.train));
                vec![Asked::Characters(texts.saturating_mul(u64::from(self.positions())))]
            }
            (None, _) if self.corpus.is_none() => vec![Asked::OwnFiles("texts")],
            _ => Vec::new(),
        }
    }

    fn most_training_examples(&self) -> Option<usize> {
        self.share.map(|share| share.most(true))
    }

    fn eval_sets(&self) -> Vec<&str> {
        self.eval.keys().map(String::as_str).collect()
    }

    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>> {
        let set = self.eval.get(name)?;
        Some(EvalSet { split: &set.split, lines: set.lines, languages: Vec::new(), target: None })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
