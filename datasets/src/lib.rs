//! Data: verified downloads, corpora, text, audio, pictures, samplers and batches. This crate does
//! not depend on a tensor library.

pub mod audio;
pub mod batches;
pub mod corpora;
pub mod fetch;
pub mod image;
pub mod random;
pub mod readers;
pub mod set_size;
pub mod speech;
pub mod tasks;
pub mod temporary;
pub mod text;
