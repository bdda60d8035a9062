//! Tests of models, layers and searches through the crate's public functions.
//!
//! They are one program, because every program takes seconds to link.

mod acoustic;
mod convolution;
mod languages;
mod observed;
mod recurrent;
mod searches;
