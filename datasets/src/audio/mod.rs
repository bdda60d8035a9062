//! Speech: files become samples.

pub mod decode;
