//! Tables of verdicts in four formats, the generated parts of README and RESULTS, a page about the
//! runs of a recipe, images of matrices, and pictures of profiles.

mod account;
mod earlier;
pub mod exponents;
pub mod heatmap;
pub mod page;
mod readme;
mod results;
mod rows;
mod table;
mod tally;
mod verdicts;
mod words;

pub use account::{Account, ClaimAccount, Listed, RecipeStanding, uncounted};
pub use earlier::Earlier;
pub use readme::{RESULTS, RUNS, ReadmeError, check, replace};
pub use results::{Generated, render};
pub use rows::{score_rows, verdict_rows};
pub use table::{Alignment, Cell, Column, Format, Table, UnknownFormat};
pub use tally::{ByStatement, Tally, heading};
pub use verdicts::{ledger_table, score_value};
pub use words::{duration, grouped};
