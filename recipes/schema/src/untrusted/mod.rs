//! Untrusted input: files that a user or a recipe names, and text from them that is printed to a
//! terminal. It is part of this crate because every other crate depends on this one.

mod file;
mod text;

pub use file::{check_regular, hint, hint_line, hint_or, open, read, read_to_string};
pub use text::{escaped, one_line, shown};
