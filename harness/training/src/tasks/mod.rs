//! What is compared with another framework, task by task. The rest of the crate names no task.

pub mod image_classification;
pub mod language_modelling;
pub mod speech_recognition;
pub mod speech_synthesis;
pub mod text_classification;
pub mod translation;
