//! Data on stdout in the requested format.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use zoo_recipes::untrusted::escaped;
use zoo_results::exit::Exit;
pub use zoo_results::report::{Cell, Column, Format, Table};

use crate::error::{Failure, Result};

/// A table with these titles. A title that starts with `#` marks a column of numbers.
pub fn columns<'t>(titles: impl IntoIterator<Item = &'t str>) -> Table {
    let column = |title: &'t str| match title.strip_prefix('#') {
        Some(title) => Column::numbers(title),
        None => Column::words(title),
    };
    Table::new(titles.into_iter().map(column).collect())
}

/// A row of text cells.
pub fn words<const N: usize>(cells: [String; N]) -> Vec<Cell> {
    cells.into_iter().map(Cell::words).collect()
}

/// The rows of a table as JSON.
pub fn rows_as_json(table: &Table) -> serde_json::Value {
    serde_json::from_str(&table.render(Format::Json)).unwrap_or_default()
}

/// Writes text to stdout. Control characters are escaped on a terminal. A reader that closes the
/// pipe (`zoo list | head -1`) is not a failure.
///
/// # Errors
/// The text cannot be written.
pub fn write(text: &str) -> Result<()> {
    send(text).map(|_| ())
}

/// As [`write`], for commands that print without end. Returns false if the reader has closed the
/// pipe.
///
/// # Errors
/// As for [`write`].
pub fn send(text: &str) -> Result<bool> {
    // Files and other programs get the text unchanged, because JSON and CSV have their own rules.
    let text = if io::stdout().is_terminal() { escaped(text) } else { text.into() };
    send_unchanged(&text)
}

/// Writes text to a terminal in the place of the text that was there. Returns false if the terminal
/// was closed.
///
/// # Errors
/// As for [`write`].
pub fn redraw(text: &str) -> Result<bool> {
    send_unchanged(&redrawn(text))
}

/// Text that begins at the top of the terminal, and clears the rest of each line and what is below.
fn redrawn(text: &str) -> String {
    format!("\u{1b}[H{}\u{1b}[J", escaped(text).replace('\n', "\u{1b}[K\n"))
}

fn send_unchanged(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(Exit::Internal, format!("cannot write to stdout: {error}"))),
    }
}

/// Writes a value as indented JSON.
///
/// # Errors
/// As for [`write`].
pub fn write_json(value: &impl Serialize) -> Result<()> {
    write(&json_text(value)?)
}

fn json_text(value: &impl Serialize) -> Result<String> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Ok(format!("{text}\n")),
        Err(error) => Err(Failure::new(Exit::Internal, format!("cannot write JSON: {error}"))),
    }
}

/// Whether stderr is coloured: only on a terminal, and only without `NO_COLOR` (empty counts as not
/// set).
pub fn colour_on_stderr() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_drawn_again_leaves_nothing_of_the_former_one() {
        let drawn = redrawn("a\u{1b}[2J\nb\n");
        assert_eq!(drawn, "\u{1b}[Ha\\u{1b}[2J\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
    }

    #[test]
    fn a_hash_marks_numbers() {
        let mut table = columns(["name", "#size in bytes"]);
        table.push(vec![Cell::words("a"), Cell::count(12_000)]);
        assert_eq!(table.render(Format::Csv), "name,size_in_bytes\r\na,12000\r\n");
        assert_eq!(rows_as_json(&table), serde_json::json!([{"name": "a", "size_in_bytes": 12000}]));
    }
}
