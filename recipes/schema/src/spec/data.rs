//! The `[data]` block.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AudioManifestSpec, AugmentationSpec, Cleaners, FeaturesSpec, SymbolSet, TonesSpec};

/// Where examples come from and how they become batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// Name of a public corpus definition (URLs, digests, licence, splits). Absent for generated data and own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Split of the corpus or of the files that is trained on; absent: `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_split: Option<String>,
    /// How examples are read.
    pub reader: ReaderSpec,
    /// Read only the first examples of each split; absent: all. Sub-words are learnt on what is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// How text becomes token ids.
    pub tokenizer: TokenizerSpec,
    /// Source sequences begin with the begin token (OpenSeq2Seq's `use_start_token`). So do the targets: the decoder starts from
    /// it, or writes it (`model.decoder.begin_token_in_target`). It counts in the lengths of both.
    #[serde(default)]
    pub begin_token_in_source: bool,
    /// How recordings become frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeaturesSpec>,
    /// How training recordings are varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<AugmentationSpec>,
    /// Which training examples are kept, and at what length.
    #[serde(default)]
    pub filter: FilterSpec,
    /// How training examples are put together.
    pub batching: BatchingSpec,
    /// Named evaluation sets. `valid` is the one that training looks at.
    pub eval: BTreeMap<String, EvalSetSpec>,
}

impl DataSpec {
    /// Name of the split that is trained on.
    pub fn training(&self) -> &str {
        self.train_split.as_deref().unwrap_or("train")
    }

    /// The corpus that is to be fetched: none of generated data, of own files, and of a corpus that lies in a folder of the user's.
    pub fn corpus_to_fetch(&self) -> Option<&str> {
        let own = matches!(&self.reader, ReaderSpec::AudioManifest(spec) if spec.folder.is_some());
        self.corpus.as_deref().filter(|name| !name.is_empty() && !own)
    }

    /// How many examples of a split are read at most.
    pub fn most_of(&self, split: &str) -> Option<usize> {
        let share = self.share?;
        Some(if split == self.training() { share.train } else { share.eval } as usize)
    }

    /// The target languages of an evaluation set, as indices of [`ReaderSpec::targets`].
    pub fn targets_of(&self, set: &EvalSetSpec) -> Vec<usize> {
        set.targets_among(&self.reader.targets())
    }
}

/// How many examples are read of each split, counted from its first. Joined recordings are counted by `reader.join` instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareSpec {
    /// Of the split that is trained on.
    pub train: u32,
    /// Of every other split.
    pub eval: u32,
}

impl EvalSetSpec {
    /// Indices of the target languages that the set is in: its own, or all of them.
    pub fn targets_among(&self, targets: &[impl AsRef<str>]) -> Vec<usize> {
        let own = |index: &usize| self.target.as_deref().is_none_or(|own| own == targets[*index].as_ref());
        (0..targets.len()).filter(own).collect()
    }
}

/// A generic reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReaderSpec {
    /// Two files of equal line count, line i of one being the translation of line i of the other.
    ParallelText {
        /// Source language code, e.g. `en`.
        source: String,
        /// Target language code, e.g. `de`.
        target: String,
        /// Further languages that the same lines are translated into, e.g. `["fr"]`: the model has one encoder and a decoder for each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further_targets: Vec<String>,
        /// The user's own files by split name; empty when `data.corpus` names a corpus.
        #[serde(default)]
        files: BTreeMap<String, ParallelFiles>,
    },
    /// OpenSeq2Seq's toy: a random string of symbols, to be reversed. Splits `train`, `valid`, `test`. Its language is `reversed`.
    Reversal {
        /// Further languages of the toy, each with a decoder of its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further_targets: Vec<ToyLanguage>,
        /// Number of distinct symbols (published: 10 Greek letters).
        symbols: u32,
        /// Shortest string, inclusive.
        min_length: u32,
        /// Longest string, inclusive.
        max_length: u32,
        /// Training pairs.
        train: u32,
        /// Validation pairs.
        valid: u32,
        /// Test pairs.
        test: u32,
        /// Seed of the generator (the published one is unseeded).
        seed: u64,
    },
    /// Recordings with their transcripts: those of a corpus, or those that files list.
    AudioManifest(AudioManifestSpec),
    /// A toy of our own: random words, every letter of which is a tone. Splits `train`, `valid`, `test`.
    Tones(TonesSpec),
}

impl ReaderSpec {
    /// Samples a second, of speech.
    pub fn sample_rate_hz(&self) -> Option<u32> {
        match self {
            Self::AudioManifest(spec) => Some(spec.sample_rate_hz),
            Self::Tones(spec) => Some(spec.sample_rate_hz),
            Self::ParallelText { .. } | Self::Reversal { .. } => None,
        }
    }

    /// It makes its data and reads nothing.
    pub fn is_generated(&self) -> bool {
        matches!(self, Self::Reversal { .. } | Self::Tones(_))
    }
}

/// What a string of the toy may become beside its reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToyLanguage {
    /// The string itself.
    Copied,
}

impl ReaderSpec {
    /// The target languages, each with a decoder of its own; the first is that of `target`. Of speech, its one transcript.
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

/// One split of a user's own parallel text; paths are relative to the recipe file. `.gz` is read as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelFiles {
    /// Path of the source side.
    pub source: String,
    /// Path of the target side.
    pub target: String,
    /// Paths of the further target languages, in the order of `data.reader.further_targets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_targets: Vec<String>,
}

impl ParallelFiles {
    /// Path of the side in the target language of this index.
    pub fn target(&self, index: usize) -> Option<&str> {
        [&self.target].into_iter().chain(&self.further_targets).nth(index).map(String::as_str)
    }
}

/// Text normalisation steps, applied in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormalizeStep {
    /// Unicode lower case.
    Lowercase,
    /// Moses `normalize-punctuation.perl` for the side's language.
    MosesPunctuation,
    /// Moses `tokenizer.perl` for the side's language, escaping on, no aggressive hyphens.
    MosesTokenize,
    /// Moses `tokenizer.perl -a`.
    MosesTokenizeAggressive,
    /// The same since November 2018: the full stop of a line's last word always stands apart.
    #[serde(rename = "moses-tokenize-aggressive-2018")]
    MosesTokenizeAggressive2018,
    /// Moses `remove-non-printing-char.perl`: a space for every control, format and unassigned character.
    RemoveNonPrinting,
    /// `’` becomes `'`.
    StraightApostrophes,
}

/// From text to ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TokenizerSpec {
    /// White-space separated words, each an entry of a vocabulary counted on the training split.
    Words {
        /// Ids of the special tokens.
        specials: Specials,
        /// Round the number of rows up to a multiple of this.
        #[serde(default = "one")]
        pad_vocabulary_to: u32,
        /// One vocabulary for both sides; else each side has its own.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        joint: bool,
        /// Most rows, special tokens included and before padding; the rarest words are left out (fairseq's `--nwordstgt`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_vocabulary: Option<u32>,
        /// Most rows of the target side's own vocabulary, where they are others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_target_vocabulary: Option<u32>,
        /// Words that the training split has less often than this are left out (torchtext's `min_freq`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_count: Option<u32>,
        /// The words of the text are parts of words already, as subword-nmt marks them (`@@`): they are joined before anything is
        /// scored.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        subwords: bool,
        /// Steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// subword-nmt byte pair encoding, learnt on both sides of the training split together.
    SubwordNmt {
        /// Number of merge operations to learn.
        merges: u32,
        /// One dictionary for both sides, sorted by count as fairseq does.
        joined_dictionary: bool,
        /// Ids of the special tokens.
        specials: Specials,
        /// Round the number of rows up to a multiple of this.
        #[serde(default = "one")]
        pad_vocabulary_to: u32,
        /// Most rows, special tokens included and before padding; the rarest words are left out (fairseq's `--nwordstgt`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_vocabulary: Option<u32>,
        /// Steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// A SentencePiece model on raw text: one of others, or a BPE learnt on the training split.
    SentencePiece {
        /// Number of pieces, the four special tokens included.
        pieces: u32,
        /// One model for both sides.
        joint: bool,
        /// Ids of the special tokens.
        specials: Specials,
        /// A model to use rather than to train; relative to the recipe file.
        #[serde(default)]
        model: Option<String>,
    },
    /// The characters of a transcript, each a class of a frame.
    Characters {
        /// All of them, in the order of the classes; the space stands between words.
        alphabet: String,
        /// Steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// Words of a small lexicon, as the sounds that they are made of, each a class of a frame.
    Lexicon {
        /// Sounds of each word.
        words: BTreeMap<String, Vec<String>>,
        /// A sound that may stand before, between and behind words, or not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silence: Option<String>,
    },
    /// The symbols of a text that is to be spoken, each an id. A character that is no symbol is an error.
    Symbols {
        /// Which symbols.
        symbols: SymbolSet,
        /// The characters of the set `own`, in the order of their ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        characters: Option<String>,
        /// What is done to a text first.
        #[serde(default)]
        cleaners: Cleaners,
        /// Characters of a cleaned text that are passed over. (NVIDIA passes over whatever is no symbol: of LJSpeech these are `"`, `[` and
        /// `]`.)
        #[serde(default, skip_serializing_if = "String::is_empty")]
        leave_out: String,
        /// A text stands between the set's begin and end.
        #[serde(default)]
        ends: bool,
        /// Behind it the set's pad is repeated until the length is a multiple of this, once at least; the length counts them (OpenSeq2Seq: 8).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pad_to: Option<u32>,
    },
}

/// Where the special tokens stand in the vocabulary.
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

/// What happens to long training examples. Lengths of text are in tokens, special tokens included.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// Longest source.
    #[serde(default)]
    pub max_source_tokens: Option<u32>,
    /// Longest target.
    #[serde(default)]
    pub max_target_tokens: Option<u32>,
    /// Cut or leave out what is longer.
    #[serde(default)]
    pub too_long: TooLong,
    /// Pairs of which one side has more than so many times the tokens of the other are left out (Moses' `clean-corpus-n -ratio`).
    /// Special tokens do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ratio: Option<f64>,
    /// Shortest recording, before its speed is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_seconds: Option<f64>,
    /// Longest recording, before its speed is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
}

/// See [`FilterSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TooLong {
    /// Leave the pair out.
    #[default]
    Drop,
    /// Cut it to the limit (OpenSeq2Seq does).
    Truncate,
}

/// How training examples are put into batches. A batch is what one micro-step computes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BatchingSpec {
    /// A fixed number of sentences in shuffled order, no bucketing; the remainder of an epoch is left out.
    Sentences {
        /// Sentences a batch.
        sentences: u32,
        /// Round padded lengths up to a multiple of this.
        #[serde(default = "one")]
        pad_length_to: u32,
    },
    /// As many sentences of like length as fit: sentences x longest side <= `max_tokens` (fairseq).
    Tokens {
        /// Largest padded size of the larger side.
        max_tokens: u32,
        /// Batches of more sentences than this are cut to a multiple of it.
        #[serde(default = "one")]
        sentences_multiple_of: u32,
        /// Round padded lengths up to a multiple of this.
        #[serde(default = "one")]
        pad_length_to: u32,
    },
    /// A fixed number of sentences of like length (NVIDIA's GNMT). A pair is in the bucket of its longer side's length / `width`, the
    /// last bucket if that is beyond it. Every epoch each bucket is shuffled and cut into blocks of `batches_together`; the remainder
    /// is left out; then the blocks are shuffled.
    Buckets {
        /// Sentences a batch.
        sentences: u32,
        /// Buckets.
        buckets: u32,
        /// Lengths in a bucket, special tokens included.
        width: u32,
        /// Batches of one bucket that follow each other: those of the GPUs.
        #[serde(default = "one")]
        batches_together: u32,
        /// Round padded lengths up to a multiple of this.
        #[serde(default = "one")]
        pad_length_to: u32,
    },
    /// A fixed number of utterances in shuffled order; the remainder of an epoch is left out.
    Utterances {
        /// Utterances a batch.
        utterances: u32,
    },
    /// Utterances in shuffled order, as many as last no longer than this together (lhotse's simple sampler); one at least.
    Seconds {
        /// Sum of their lengths.
        max_seconds: f64,
    },
}

/// A named evaluation set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalSetSpec {
    /// Split of the corpus or reader.
    pub split: String,
    /// Target language, where the reader has several. `valid` may leave it out: it then is of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Lines (or utterances) the set must have in each of its target languages, those counted that the corpus's preparation leaves
    /// out; another count is an error.
    pub lines: u32,
    /// Which text the hypotheses are scored against.
    #[serde(default)]
    pub references: References,
    /// Take the tokenisation off the hypotheses before they are scored: for references that have none. Absent: they are scored as the
    /// tokenizer writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detokenize: Option<Detokenizer>,
    /// White-space tokens the references must have: tells versions of a test set apart.
    #[serde(default)]
    pub reference_tokens: Option<u32>,
}

/// See [`EvalSetSpec::references`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum References {
    /// After the tokenizer's `normalize` steps, sub-words undone.
    #[default]
    Normalized,
    /// The file as it is.
    Raw,
}

/// See [`EvalSetSpec::detokenize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detokenizer {
    /// Moses `detokenizer.perl` for the target's language.
    Moses,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
