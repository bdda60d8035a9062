//! Likelihoods: mean loss, perplexity and bits per character, from the cost of each record.
//!
//! A record is `{"nats": 12.3, "tokens": 4}`: the summed negative log-likelihood of its units in
//! nats, and the number of units. The signature's `unit:` selects the count that is read. For
//! `unit:sentence` and `unit:example`, each record is one unit.
//!
//! | key | meaning |
//! |---|---|
//! | `nats` | summed cost of all predicted units, including end and unknown tokens |
//! | `tokens`, `words`, `characters`, `bytes` | number of units, with end and unknown tokens |
//! | `end` | the share of end tokens: `{"nats": 0.4, "count": 1}`; needed by `end:no` |
//! | `unknown` | the share of unknown tokens; needed by `unk:left-out` |
//! | `state` | `carried` if the record began with the previous record's state; default `reset` |
//!
//! A loss that is not a likelihood, or that is smoothed or weighted, is `of:objective`. Its records
//! are `{"loss": 3.2, "count": 80}`.

mod metric;
mod options;
mod record;

pub use metric::{
    BITS_PER_CHARACTER, LOSS, PERPLEXITY, PPL, VALID_LOSS, VALID_PERPLEXITY, read_bits, read_loss,
    read_perplexity,
};
pub use options::{LikelihoodOptions, ObjectiveOptions, Quantity, SequenceOptions, Unknowns};
pub use record::{LikelihoodPart, LikelihoodRecord, LossRecord, ModelState};
