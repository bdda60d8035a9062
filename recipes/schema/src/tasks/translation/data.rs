//! The `[data]` block of a translation recipe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{Asked, DataBlock, EvalSet, Generated, NormalizeStep, References, ShareSpec};

/// Where pairs of sentences come from and how they become batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextDataSpec {
    /// Name of a public corpus definition (URLs, digests, licence, splits).
    /// Absent for generated data and the user's own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// How pairs of sentences are read.
    pub reader: TextReaderSpec,
    /// Limits each split to its first examples. Absent: all are read.
    /// Sub-words are learned from the examples that are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// How text becomes token ids.
    pub tokenizer: TextTokenizerSpec,
    /// Whether source sequences begin with the begin token (OpenSeq2Seq's `use_start_token`).
    /// Targets then begin with it too: the decoder starts from it, or writes it
    /// (`model.decoder.begin_token_in_target`). It counts in the lengths of both.
    #[serde(default)]
    pub begin_token_in_source: bool,
    /// Limits on the length of training examples.
    #[serde(default)]
    pub filter: TextFilterSpec,
    /// How training examples form batches.
    pub batching: TextBatchingSpec,
    /// Evaluation sets by name. Training validates on `valid`.
    pub eval: BTreeMap<String, TextSetSpec>,
}

impl TextDataSpec {
    /// Largest number of pairs to read of a split; `None` for all.
    pub fn most_of(&self, split: &str) -> Option<usize> {
        self.share.map(|share| share.most(split == self.training()))
    }

    /// The target languages of an evaluation set, as indices of [`TextReaderSpec::targets`].
    pub fn targets_of(&self, set: &TextSetSpec) -> Vec<usize> {
        set.targets_among(&self.reader.targets())
    }
}

impl DataBlock for TextDataSpec {
    fn corpus(&self) -> Option<&str> {
        self.corpus.as_deref()
    }

    fn is_generated(&self) -> bool {
        matches!(self.reader, TextReaderSpec::Reversal(_))
    }

    fn most_training_examples(&self) -> Option<usize> {
        self.most_of(self.training())
    }

    fn eval_sets(&self) -> Vec<&str> {
        self.eval.keys().map(String::as_str).collect()
    }

    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>> {
        let set = self.eval.get(name)?;
        let targets = self.reader.targets();
        let languages = set.targets_among(&targets).into_iter().filter_map(|at| targets.get(at).copied());
        Some(EvalSet {
            split: &set.split,
            lines: set.lines,
            languages: languages.collect(),
            target: set.target.as_deref(),
        })
    }

    fn languages(&self) -> Vec<&str> {
        self.reader.targets()
    }

    fn asked(&self, eval: &str) -> Vec<Asked> {
        let Some(set) = self.eval.get(eval) else { return Vec::new() };
        let mut asked = Vec::new();
        if let TextTokenizerSpec::SentencePiece { model: Some(_), .. } = &self.tokenizer {
            asked.push(Asked::OwnFiles("a SentencePiece model"));
        }
        match &self.reader {
            TextReaderSpec::Reversal(spec) => {
                let lines = u64::from(spec.generated().of(&set.split));
                asked.push(Asked::Characters(lines * 2 * u64::from(spec.max_length)));
            }
            TextReaderSpec::ParallelText { files, .. } if !files.is_empty() => {
                asked.push(Asked::OwnFiles("files"));
            }
            TextReaderSpec::ParallelText { .. } => {}
        }
        asked
    }
}

/// A reader of pairs of sentences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextReaderSpec {
    /// Parallel text: two files with equal line counts, where line i of one is the translation of
    /// line i of the other.
    ParallelText {
        /// Source language code, e.g. `en`.
        source: String,
        /// Target language code, e.g. `de`.
        target: String,
        /// Further target languages of the same lines, e.g. `["fr"]`.
        /// The model then has one encoder, and one decoder per target language.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further_targets: Vec<String>,
        /// The user's own files by split name. Empty if `data.corpus` names a corpus.
        #[serde(default)]
        files: BTreeMap<String, ParallelFiles>,
    },
    /// OpenSeq2Seq's toy task: reverse a random string of symbols. Splits `train`, `valid`, `test`.
    /// The target language is `reversed`.
    Reversal(ReversalSpec),
}

/// OpenSeq2Seq's toy task: reverse a random string of symbols.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReversalSpec {
    /// Further target languages of the toy task, each with its own decoder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_targets: Vec<ToyLanguage>,
    /// Number of distinct symbols. Published: 10 Greek letters.
    pub symbols: u32,
    /// Length of the shortest string, inclusive.
    pub min_length: u32,
    /// Length of the longest string, inclusive.
    pub max_length: u32,
    /// Number of training pairs.
    pub train: u32,
    /// Number of validation pairs.
    pub valid: u32,
    /// Number of test pairs.
    pub test: u32,
    /// Seed of the generator. The published one is unseeded.
    pub seed: u64,
}

impl ReversalSpec {
    /// Numbers of the pairs of each split.
    pub(crate) fn generated(&self) -> Generated {
        Generated { train: self.train, valid: self.valid, test: self.test }
    }
}

/// A target language of the toy task besides the reversed string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToyLanguage {
    /// The string unchanged.
    Copied,
}

impl TextReaderSpec {
    /// The target languages, each with its own decoder. The first one is `target`.
    pub fn targets(&self) -> Vec<&str> {
        match self {
            Self::ParallelText { target, further_targets, .. } => {
                [target].into_iter().chain(further_targets).map(String::as_str).collect()
            }
            Self::Reversal(spec) => {
                let further = spec.further_targets.iter().map(|ToyLanguage::Copied| "copied");
                ["reversed"].into_iter().chain(further).collect()
            }
        }
    }
}

/// One split of the user's own parallel text. Paths are relative to the recipe file; `.gz` files
/// are decompressed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelFiles {
    /// Path of the source side.
    pub source: String,
    /// Path of the target side.
    pub target: String,
    /// Paths of further target languages, in the order of `data.reader.further_targets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_targets: Vec<String>,
}

impl ParallelFiles {
    /// Path of the target side with this index of the target languages.
    pub fn target(&self, index: usize) -> Option<&str> {
        [&self.target].into_iter().chain(&self.further_targets).nth(index).map(String::as_str)
    }
}

/// How text becomes token ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextTokenizerSpec {
    /// Words separated by white space. The vocabulary is counted on the training split.
    Words {
        /// Ids of the special tokens.
        specials: Specials,
        /// The number of vocabulary rows is rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_vocabulary_to: u32,
        /// Whether both sides share one vocabulary.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        joint: bool,
        /// Largest number of vocabulary rows, special tokens included, before padding.
        /// The rarest words are left out (fairseq's `--nwordstgt`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_vocabulary: Option<u32>,
        /// `max_vocabulary` of the target side's own vocabulary. Absent: `max_vocabulary`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_target_vocabulary: Option<u32>,
        /// Words that occur less often than this in training are left out (torchtext's `min_freq`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_count: Option<u32>,
        /// Whether the text is already split into sub-words, marked as by subword-nmt (`@@`).
        /// Sub-words are then joined before scoring.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        subwords: bool,
        /// Normalisation steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// Byte pair encoding of subword-nmt, learned on both sides of the training split together.
    SubwordNmt {
        /// Number of merge operations to learn.
        merges: u32,
        /// Whether both sides share one dictionary, sorted by count as in fairseq.
        joined_dictionary: bool,
        /// Ids of the special tokens.
        specials: Specials,
        /// The number of vocabulary rows is rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_vocabulary_to: u32,
        /// Largest number of vocabulary rows, special tokens included, before padding.
        /// The rarest words are left out (fairseq's `--nwordstgt`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_vocabulary: Option<u32>,
        /// Normalisation steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// A SentencePiece model on raw text: an existing one, or a BPE model learned on the training
    /// split.
    SentencePiece {
        /// Number of pieces, the four special tokens included.
        pieces: u32,
        /// Whether both sides share one model.
        joint: bool,
        /// Ids of the special tokens.
        specials: Specials,
        /// Existing SentencePiece model to use, relative to the recipe file.
        /// Absent: one is trained.
        #[serde(default)]
        model: Option<String>,
    },
}

impl TextTokenizerSpec {
    /// The `normalize` steps. Empty for SentencePiece, which has its own normalisation.
    pub fn normalize(&self) -> &[NormalizeStep] {
        match self {
            Self::Words { normalize, .. } | Self::SubwordNmt { normalize, .. } => normalize,
            Self::SentencePiece { .. } => &[],
        }
    }
}

/// Ids of the special tokens in the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Specials {
    /// OpenSeq2Seq: pad 0, end 1, begin 2, unknown 3.
    Openseq2seq,
    /// fairseq: begin 0, pad 1, end 2, unknown 3.
    Fairseq,
    /// NVIDIA's GNMT: pad 0, unknown 1, begin 2, end 3.
    Gnmt,
}

/// Limits on training pairs. Lengths are in tokens, special tokens included.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextFilterSpec {
    /// Longest source, in tokens.
    #[serde(default)]
    pub max_source_tokens: Option<u32>,
    /// Longest target, in tokens.
    #[serde(default)]
    pub max_target_tokens: Option<u32>,
    /// Whether longer examples are truncated or left out.
    #[serde(default)]
    pub too_long: TooLong,
    /// Largest ratio of the two sides' tokens, without special tokens.
    /// Pairs with a larger one are left out (Moses' `clean-corpus-n -ratio`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ratio: Option<f64>,
}

/// Treatment of training examples that are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TooLong {
    /// Leave the example out.
    #[default]
    Drop,
    /// Truncate the example to the limit (OpenSeq2Seq).
    Truncate,
}

/// How training pairs form batches. One micro-step computes one batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextBatchingSpec {
    /// A fixed number of sentences in shuffled order, without bucketing.
    /// The remainder of an epoch is left out.
    Sentences {
        /// Sentences per batch.
        sentences: u32,
        /// Padded lengths are rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_length_to: u32,
    },
    /// As many sentences of similar length as fit: sentences x longest side <= `max_tokens`
    /// (fairseq).
    Tokens {
        /// Largest padded size of the larger side, in tokens.
        max_tokens: u32,
        /// A batch with more sentences than this is cut to a multiple of it.
        #[serde(default = "one")]
        sentences_multiple_of: u32,
        /// Padded lengths are rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_length_to: u32,
    },
    /// A fixed number of sentences of similar length (NVIDIA's GNMT).
    /// A pair's bucket is the length of its longer side / `width`, at most the last bucket. In
    /// every epoch, each bucket is shuffled and cut into blocks of `batches_together` batches,
    /// without the remainder. Then the blocks are shuffled.
    Buckets {
        /// Sentences per batch.
        sentences: u32,
        /// Number of buckets.
        buckets: u32,
        /// Number of lengths in a bucket. Lengths include special tokens.
        width: u32,
        /// Consecutive batches from one bucket: in the source, those of the GPUs.
        #[serde(default = "one")]
        batches_together: u32,
        /// Padded lengths are rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_length_to: u32,
    },
}

/// An evaluation set of pairs of sentences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextSetSpec {
    /// Split of the corpus or reader.
    pub split: String,
    /// Target language, if the reader has several. Only `valid` may omit it: all languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Lines that the set must have in each of its target languages.
    /// Lines that the corpus's preparation leaves out count. Another number is an error.
    pub lines: u32,
    /// Text that hypotheses are scored against.
    #[serde(default)]
    pub references: References,
    /// Detokenizes hypotheses before scoring, for references without tokenization.
    /// Absent: hypotheses are scored as the tokenizer writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detokenize: Option<Detokenizer>,
    /// Tokens, split at white space, that the references must have.
    /// This tells versions of a test set apart.
    #[serde(default)]
    pub reference_tokens: Option<u32>,
}

impl TextSetSpec {
    /// Indices of the set's target languages: its own, or all.
    pub fn targets_among(&self, targets: &[impl AsRef<str>]) -> Vec<usize> {
        let own = |index: &usize| self.target.as_deref().is_none_or(|own| own == targets[*index].as_ref());
        (0..targets.len()).filter(own).collect()
    }
}

/// Detokenizer of hypotheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detokenizer {
    /// Moses `detokenizer.perl` for the target language.
    Moses,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
