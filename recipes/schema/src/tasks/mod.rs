//! The blocks that only some tasks have. Each task is a folder here.

pub mod image_classification;
