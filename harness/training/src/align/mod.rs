//! A model held against the same model in another framework, rung by rung: inputs, outputs, losses, gradients, one update.
//!
//! The file's layout and the limits are in `docs/align.md`. Comparison stops at the first rung that breaks: what is behind it
//! would break for the same reason.

mod acoustic;
mod compare;
mod limits;
mod reference;
mod rung;
mod synthesis;

pub use acoustic::AcousticCase;
pub use reference::{AlignError, DescribedVocabulary, Description, Reference};
pub use rung::{Alignment, Rung};
pub use synthesis::SynthesisCase;
