//! Image classification: from a picture to one of several classes.

mod check;
mod data;
mod model;
mod shape;

pub use data::*;
pub use model::*;
pub use shape::*;

use crate::spec::{NoSearch, Task, TaskTypes};

/// From a picture to one of several classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageClassification {}

impl TaskTypes for ImageClassification {
    const TASK: Task = Task::ImageClassification;
    const SEARCHES: bool = false;
    type Data = PictureDataSpec;
    type Model = ClassifierSpec;
    type Loss = ClassifierLossSpec;
    type Search = NoSearch;
}
