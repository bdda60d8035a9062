//! Language modelling: from the words or characters so far to the next one.

mod block;
mod check;
mod data;
mod model;

pub use data::*;
pub use model::*;

use crate::spec::{NoSearch, Task, TaskTypes};

/// From the words or characters so far to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LanguageModelling {}

impl TaskTypes for LanguageModelling {
    const TASK: Task = Task::LanguageModelling;
    const SEARCHES: bool = false;
    type Data = LanguageDataSpec;
    type Model = LanguageModelSpec;
    type Loss = LanguageLossSpec;
    type Search = NoSearch;
}
