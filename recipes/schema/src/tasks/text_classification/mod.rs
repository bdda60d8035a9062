//! Text classification: from a text to one of several classes.

mod check;
mod data;
mod model;
mod shape;

pub use data::*;
pub use model::*;
pub use shape::*;

use crate::spec::{NoSearch, Task, TaskTypes};

/// From a text to one of several classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextClassification {}

impl TaskTypes for TextClassification {
    const TASK: Task = Task::TextClassification;
    const SEARCHES: bool = false;
    type Data = LabelledDataSpec;
    type Model = TextClassifierSpec;
    type Loss = TextLossSpec;
    type Search = NoSearch;
}
