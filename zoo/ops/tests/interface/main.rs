//! Tests of operations through the crate's public functions.
//!
//! They are one program, because every program takes seconds to link.

mod ctc;
mod half_precision;
