//! Tests of training, and of models against their references.
//!
//! They are one program, because every program takes seconds to link.

mod acoustic;
mod classifier;
mod halves;
mod language;
mod parity;
mod sampled_language;
mod synthesis;
mod text;
mod training;
mod transfer;
