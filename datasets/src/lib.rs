//! Data: files fetched and verified, corpora, text, audio, pictures, samplers, batches. Nothing here knows a tensor library.

pub mod audio;
pub mod batches;
pub mod corpora;
pub mod fetch;
pub mod image;
pub mod prepare;
pub mod random;
pub mod readers;
pub mod speech;
pub mod tasks;
pub mod temporary;
pub mod text;
