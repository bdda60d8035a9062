//! Tables of verdicts in four formats, the generated part of the README, a page on the runs of a recipe, and pictures of matrices.

pub mod heatmap;
pub mod page;
mod readme;
mod table;
mod verdicts;
mod words;

pub use readme::{BEGIN, END, ReadmeError, RecipeStanding, check, render, replace};
pub use table::{Alignment, Cell, Column, Format, Table, UnknownFormat};
pub use verdicts::{ledger_table, verdict_table};
pub use words::{duration, grouped};
