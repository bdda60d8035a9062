//! Comparison of a model with the same model in another framework, rung by rung: inputs, outputs,
//! losses, gradients, one update.
//!
//! `docs/align.md` describes the file's layout and the limits. The comparison stops at the first
//! rung that fails, because later rungs would fail for the same reason.

mod acoustic;
mod classifier;
mod compare;
mod language;
mod limits;
mod reference;
mod rung;
mod synthesis;

pub use acoustic::AcousticCase;
pub use classifier::ClassifierCase;
pub use language::LanguageCase;
pub use reference::{AlignError, DescribedVocabulary, Description, Reference};
pub use rung::{Alignment, Rung};
pub use synthesis::SynthesisCase;
