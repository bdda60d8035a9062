//! Models, batches and losses that only one task has. Each task is a folder here.

pub mod image_classification;
pub mod language_modelling;
pub mod speech_recognition;
pub mod speech_synthesis;
pub mod text_classification;
pub mod translation;
