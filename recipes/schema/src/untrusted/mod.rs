//! Input that this program did not write: files that a user or a recipe names, and text from them on its way to a
//! terminal. It is in this crate because every other crate builds on it.

mod file;
mod text;

pub use file::{check_regular, hint, hint_line, hint_or, open, read, read_to_string};
pub use text::{escaped, one_line, shown};
