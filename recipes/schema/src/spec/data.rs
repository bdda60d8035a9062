//! The `[data]` block.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AudioManifestSpec, AugmentationSpec, Cleaners, FeaturesSpec, SymbolSet, TonesSpec};

/// The `[data]` block: where examples come from and how they become batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// Name of a public corpus definition (URLs, digests, licence, splits).
    /// Absent for generated data and the user's own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Split of the corpus or of the files to train on. Absent: `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_split: Option<String>,
    /// How examples are read.
    pub reader: ReaderSpec,
    /// Limits each split to its first examples. Absent: all are read.
    /// Sub-words are learned from the examples that are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// How text becomes token ids.
    pub tokenizer: TokenizerSpec,
    /// Whether source sequences begin with the begin token (OpenSeq2Seq's `use_start_token`).
    /// Targets then begin with it too: the decoder starts from it, or writes it
    /// (`model.decoder.begin_token_in_target`). It counts in the lengths of both.
    #[serde(default)]
    pub begin_token_in_source: bool,
    /// How recordings become frames of features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeaturesSpec>,
    /// Augmentation of training recordings. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<AugmentationSpec>,
    /// Limits on the length of training examples.
    #[serde(default)]
    pub filter: FilterSpec,
    /// How training examples form batches.
    pub batching: BatchingSpec,
    /// Evaluation sets by name. Training validates on `valid`.
    pub eval: BTreeMap<String, EvalSetSpec>,
}

impl DataSpec {
    /// Name of the split to train on.
    pub fn training(&self) -> &str {
        self.train_split.as_deref().unwrap_or("train")
    }

    /// The corpus to fetch; `None` for generated data, own files, and a corpus in a folder of the
    /// user.
    pub fn corpus_to_fetch(&self) -> Option<&str> {
        let own = matches!(&self.reader, ReaderSpec::AudioManifest(spec) if spec.folder.is_some());
        self.corpus.as_deref().filter(|name| !name.is_empty() && !own)
    }

    /// Largest number of examples to read of a split; `None` for all.
    pub fn most_of(&self, split: &str) -> Option<usize> {
        let share = self.share?;
        Some(if split == self.training() { share.train } else { share.eval } as usize)
    }

    /// The target languages of an evaluation set, as indices of [`ReaderSpec::targets`].
    pub fn targets_of(&self, set: &EvalSetSpec) -> Vec<usize> {
        set.targets_among(&self.reader.targets())
    }
}

/// Number of examples to read of each split, counted from its first. Joined recordings are counted
/// by `reader.join` instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareSpec {
    /// Examples of the split to train on.
    pub train: u32,
    /// Examples of every other split.
    pub eval: u32,
}

impl EvalSetSpec {
    /// Indices of the set's target languages: its own, or all.
    pub fn targets_among(&self, targets: &[impl AsRef<str>]) -> Vec<usize> {
        let own = |index: &usize| self.target.as_deref().is_none_or(|own| own == targets[*index].as_ref());
        (0..targets.len()).filter(own).collect()
    }
}

/// A generic reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReaderSpec {
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
    Reversal {
        /// Further target languages of the toy task, each with its own decoder.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further_targets: Vec<ToyLanguage>,
        /// Number of distinct symbols. Published: 10 Greek letters.
        symbols: u32,
        /// Length of the shortest string, inclusive.
        min_length: u32,
        /// Length of the longest string, inclusive.
        max_length: u32,
        /// Number of training pairs.
        train: u32,
        /// Number of validation pairs.
        valid: u32,
        /// Number of test pairs.
        test: u32,
        /// Seed of the generator. The published one is unseeded.
        seed: u64,
    },
    /// Recordings with their transcripts, from a corpus or from the user's manifests.
    AudioManifest(AudioManifestSpec),
    /// A toy task of this project: random words in which every letter is a tone.
    /// Splits `train`, `valid`, `test`.
    Tones(TonesSpec),
}

impl ReaderSpec {
    /// Sample rate of speech, in hertz; `None` for text.
    pub fn sample_rate_hz(&self) -> Option<u32> {
        match self {
            Self::AudioManifest(spec) => Some(spec.sample_rate_hz),
            Self::Tones(spec) => Some(spec.sample_rate_hz),
            Self::ParallelText { .. } | Self::Reversal { .. } => None,
        }
    }

    /// Whether the reader generates its data and reads no files.
    pub fn is_generated(&self) -> bool {
        matches!(self, Self::Reversal { .. } | Self::Tones(_))
    }
}

/// A target language of the toy task besides the reversed string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToyLanguage {
    /// The string unchanged.
    Copied,
}

impl ReaderSpec {
    /// The target languages, each with its own decoder. The first one is `target`.
    /// Speech has one: its transcript.
    pub fn targets(&self) -> Vec<&str> {
        match self {
            Self::ParallelText { target, further_targets, .. } => {
                [target].into_iter().chain(further_targets).map(String::as_str).collect()
            }
            Self::Reversal { further_targets, .. } => {
                let further = further_targets.iter().map(|ToyLanguage::Copied| "copied");
                ["reversed"].into_iter().chain(further).collect()
            }
            Self::AudioManifest(_) | Self::Tones(_) => vec!["transcript"],
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

/// Text normalisation steps. They are applied in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormalizeStep {
    /// Unicode lower case.
    Lowercase,
    /// Moses `normalize-punctuation.perl` for the side's language.
    MosesPunctuation,
    /// Moses `tokenizer.perl` for the side's language, with escaping, without aggressive hyphens.
    MosesTokenize,
    /// Moses `tokenizer.perl -a`.
    MosesTokenizeAggressive,
    /// Moses `tokenizer.perl -a` since November 2018: the full stop after a line's last word is
    /// always a separate token.
    #[serde(rename = "moses-tokenize-aggressive-2018")]
    MosesTokenizeAggressive2018,
    /// Moses `remove-non-printing-char.perl`: replaces every control, format and unassigned
    /// character by a space.
    RemoveNonPrinting,
    /// Replaces `’` by `'`.
    StraightApostrophes,
}

/// A tokenizer: how text becomes ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TokenizerSpec {
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
    /// Characters of a transcript. Each is an output class.
    Characters {
        /// All characters, in the order of their classes. The space separates words.
        alphabet: String,
        /// Normalisation steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// Words of a small lexicon, spelled in sounds. Each sound is an output class.
    Lexicon {
        /// Pronunciation of each word, as a list of sounds.
        words: BTreeMap<String, Vec<String>>,
        /// Optional sound before, between and after words. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silence: Option<String>,
    },
    /// Input symbols of a speech synthesiser, each with an id.
    /// A character that is not a symbol is an error.
    Symbols {
        /// Set of symbols.
        symbols: SymbolSet,
        /// Characters of the set `own`, in the order of their ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        characters: Option<String>,
        /// Cleaning of a text before it is split into symbols.
        #[serde(default)]
        cleaners: Cleaners,
        /// Characters of a cleaned text that are ignored.
        /// NVIDIA ignores every character that is not a symbol: in LJSpeech these are `"`, `[` and
        /// `]`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        leave_out: String,
        /// Whether a text is enclosed in the set's begin and end symbols.
        #[serde(default)]
        ends: bool,
        /// After the text, at least one pad is added, up to a multiple of this length.
        /// The pads count in the length (OpenSeq2Seq: 8). Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pad_to: Option<u32>,
    },
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

/// Limits on training examples. Text lengths are in tokens, special tokens included.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
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
    /// Shortest recording, in seconds, before speed perturbation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_seconds: Option<f64>,
    /// Longest recording, in seconds, before speed perturbation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
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

/// How training examples form batches. One micro-step computes one batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BatchingSpec {
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
    /// A fixed number of utterances in shuffled order. The remainder of an epoch is left out.
    Utterances {
        /// Utterances per batch.
        utterances: u32,
    },
    /// Utterances in shuffled order, as many as fit into `max_seconds`, at least one (lhotse's
    /// simple sampler).
    Seconds {
        /// Largest total duration of a batch, in seconds.
        max_seconds: f64,
    },
}

/// An evaluation set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalSetSpec {
    /// Split of the corpus or reader.
    pub split: String,
    /// Target language, if the reader has several. Only `valid` may omit it: all languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Lines (or utterances) that the set must have in each of its target languages.
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

/// Text that hypotheses are scored against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum References {
    /// The text after the tokenizer's `normalize` steps, with sub-words joined.
    #[default]
    Normalized,
    /// The file unchanged.
    Raw,
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
