//! Tables of verdicts in four formats, and the generated part of the README.

mod readme;
mod table;
mod verdicts;

pub use readme::{BEGIN, END, ReadmeError, RecipeStanding, check, render, replace};
pub use table::{Alignment, Cell, Column, Format, Table, UnknownFormat};
pub use verdicts::{ledger_table, verdict_table};
