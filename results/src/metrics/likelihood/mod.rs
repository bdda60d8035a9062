//! Likelihoods: mean loss, perplexity and bits per character, from what each record cost.
//!
//! A record is `{"nats": 12.3, "tokens": 4}`: the negative log-likelihood of its units in nats, summed, and how many units there are.
//!
//! | key | meaning |
//! |---|---|
//! | `nats` | summed cost of every unit that the model predicted, end tokens and unknown ones among them |
//! | `tokens`, `words`, `characters`, `bytes` | how many units, end tokens and unknown ones among them; the signature's `unit:` says which is read. Of `unit:sentence` and `unit:example` a record is one |
//! | `end` | the share of end tokens in both: `{"nats": 0.4, "count": 1}`; needed by `end:no` |
//! | `unknown` | the share of unknown tokens in both; needed by `unk:left-out` |
//! | `state` | `carried` if the model began the record with the state that the one before left; absent: `reset` |
//!
//! A loss that is not a likelihood, or that is smoothed or weighted, is `of:objective`: its records are `{"loss": 3.2, "count": 80}`.

mod metric;
mod objective;
mod options;
mod record;

pub use metric::{BITS_PER_CHARACTER, LOSS, PERPLEXITY, PPL, VALID_LOSS, VALID_PERPLEXITY};
pub use objective::ObjectiveOptions;
pub use options::{LikelihoodOptions, Quantity, SequenceOptions, Unit, Unknowns};
pub use record::{LikelihoodPart, LikelihoodRecord, LossRecord, ModelState};
