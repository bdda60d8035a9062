//! Data on stdout in the requested format.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use zoo_recipes::untrusted::escaped;
use zoo_results::exit::Exit;
pub use zoo_results::report::{Cell, Column, Format, Table};

use crate::error::{Failure, Result};
use crate::paint::painted;

/// Version of the documents of `--format json`. It grows when a key is removed or gets another
/// meaning; a new key does not change it.
pub const JSON_VERSION: u32 = 1;

/// A table with these titles. A title that starts with `#` marks a column of numbers. What follows
/// a `|` is the key of the column for programs, if it is not made from the title.
pub fn columns<'t>(titles: impl IntoIterator<Item = &'t str>) -> Table {
    let column = |title: &'t str| {
        let (title, key) = title.split_once('|').map_or((title, None), |(title, key)| (title, Some(key)));
        let column = match title.strip_prefix('#') {
            Some(title) => Column::numbers(title),
            None => Column::words(title),
        };
        match key {
            Some(key) => column.keyed(key),
            None => column,
        }
    };
    Table::new(titles.into_iter().map(column).collect())
}

/// A row of text cells.
pub fn words<const N: usize>(cells: [String; N]) -> Vec<Cell> {
    cells.into_iter().map(Cell::words).collect()
}

/// A value that a recipe writes in TOML, as a value of JSON. A text that is not a value of TOML
/// stays a text.
pub fn value_of_toml(text: &str) -> Value {
    let read = toml::from_str::<BTreeMap<String, Value>>(&format!("value = {text}"));
    read.ok().and_then(|mut read| read.remove("value")).unwrap_or_else(|| text.into())
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

/// Whether a path for output names stdout.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes the bytes of a file to stdout.
///
/// # Errors
/// Stdout is a terminal, or cannot be written.
pub fn write_bytes(bytes: &[u8]) -> Result<()> {
    if io::stdout().is_terminal() {
        return Err(Failure::usage("stdout is a terminal, and the file is not text")
            .hint("give a file, or redirect stdout: `> FILE`"));
    }
    send_bytes(bytes).map(|_| ())
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
    let text = escaped(text);
    let text = if colour_is_allowed() { painted(&text) } else { text.into_owned() };
    format!("\u{1b}[H{}\u{1b}[J", text.replace('\n', "\u{1b}[K\n"))
}

fn send_unchanged(text: &str) -> Result<bool> {
    send_bytes(text.as_bytes())
}

fn send_bytes(bytes: &[u8]) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(Exit::Internal, format!("cannot write to stdout: {error}"))),
    }
}

/// The envelope of a document of JSON: version, command, and the command's own members.
#[derive(Serialize)]
struct Document<'d, T> {
    version: u32,
    command: &'d str,
    #[serde(flatten)]
    members: &'d T,
}

/// Writes the document of a command as indented JSON. `members` is a struct or a map.
///
/// # Errors
/// As for [`write`].
pub fn write_document(command: &str, members: &impl Serialize) -> Result<()> {
    write(&document(command, members)?)
}

fn document(command: &str, members: &impl Serialize) -> Result<String> {
    match serde_json::to_string_pretty(&Document { version: JSON_VERSION, command, members }) {
        Ok(text) => Ok(format!("{text}\n")),
        Err(error) => Err(Failure::new(Exit::Internal, format!("cannot write JSON: {error}"))),
    }
}

/// Writes a table in a format: as JSON, its rows under `key` in the document of the command.
///
/// # Errors
/// As for [`write`].
pub fn write_table(command: &str, key: &str, table: &Table, format: Format) -> Result<()> {
    let text = table_text(command, key, table, format)?;
    if format == Format::Human { write_painted(&text) } else { write(&text) }
}

/// The text that [`write_table`] writes.
///
/// # Errors
/// The table cannot be written as JSON.
pub fn table_text(command: &str, key: &str, table: &Table, format: Format) -> Result<String> {
    match format {
        Format::Json => document(command, &BTreeMap::from([(key, table.objects())])),
        format => Ok(table.render(format)),
    }
}

/// Writes a value as one line of JSON, for commands that print one line for each input.
///
/// # Errors
/// As for [`write`].
pub fn write_json_line(value: &impl Serialize) -> Result<()> {
    match serde_json::to_string(value) {
        Ok(line) => write(&format!("{line}\n")),
        Err(error) => Err(Failure::new(Exit::Internal, format!("cannot write JSON: {error}"))),
    }
}

/// Writes text for people to stdout. On a terminal, outcomes of verdicts are coloured.
///
/// # Errors
/// As for [`write`].
pub fn write_painted(text: &str) -> Result<()> {
    match colour_on_stdout() {
        true => send_unchanged(&painted(&escaped(text))).map(|_| ()),
        false => write(text),
    }
}

/// Whether stderr is coloured: only on a terminal, and only without `NO_COLOR` (empty counts as not
/// set).
pub fn colour_on_stderr() -> bool {
    io::stderr().is_terminal() && colour_is_allowed()
}

/// Whether stdout is coloured, as [`colour_on_stderr`].
pub fn colour_on_stdout() -> bool {
    io::stdout().is_terminal() && colour_is_allowed()
}

fn colour_is_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
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
    fn a_hash_marks_numbers_and_a_bar_the_key() {
        let mut table = columns(["name", "#size|bytes"]);
        table.push(vec![Cell::words("a"), Cell::count(12_000)]);
        assert_eq!(table.render(Format::Csv), "name,bytes\r\na,12000\r\n");
        assert_eq!(table.render(Format::Human), "name   size\na     12000\n");
        let text = document("runs", &BTreeMap::from([("rows", table.objects())])).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        let expected =
            serde_json::json!({"version": 1, "command": "runs", "rows": [{"name": "a", "bytes": 12000}]});
        assert_eq!(read, expected);
        assert!(text.starts_with("{\n  \"version\": 1,\n  \"command\": \"runs\",\n"), "{text}");
    }

    #[test]
    fn a_value_of_a_recipe_becomes_a_value_of_json() {
        for (toml, json) in [
            ("256", serde_json::json!(256)),
            ("\"fp16\"", serde_json::json!("fp16")),
            ("[0.9, 0.98]", serde_json::json!([0.9, 0.98])),
            ("{ kind = \"none\" }", serde_json::json!({ "kind": "none" })),
            ("a checkpoint of x", serde_json::json!("a checkpoint of x")),
        ] {
            assert_eq!(value_of_toml(toml), json, "{toml}");
        }
    }
}
