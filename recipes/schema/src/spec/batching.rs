//! Batches of pairs of token sequences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

fn one() -> u32 {
    1
}
