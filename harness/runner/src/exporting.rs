//! A table in a file that other programs read: CSV, JSON or Parquet, by the file's ending.

mod parquet;

use std::path::Path;

use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Format, Table};

/// The endings of the formats, for messages.
const ENDINGS: &str = ".csv, .json or .parquet";

/// A format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Csv,
    Json,
    Parquet,
}

impl FileFormat {
    fn of(file: &Path) -> Result<Self> {
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Failure::usage(format!("{} does not end in {ENDINGS}", file.display()))
                .hint("the ending chooses the format; without --out the table goes to stdout, in --format")),
        }
    }
}

/// Writes a table to stdout in a format, or, if a file is named, to it in the format of its ending.
/// `command` and `key` are those of the document of JSON.
///
/// # Errors
/// The file exists, has another ending, or cannot be written; stdout cannot be written.
pub fn write(command: &str, key: &str, table: &Table, format: Format, file: Option<&Path>) -> Result<()> {
    let Some(file) = file else {
        return output::write_table(command, key, table, format);
    };
    let chosen = FileFormat::of(file)?;
    if file.exists() {
        return Err(Failure::usage(format!("{} is there already", file.display()))
            .hint("give a name that is free; nothing is overwritten"));
    }
    let bytes = match chosen {
        FileFormat::Csv => table.render(Format::Csv).into_bytes(),
        FileFormat::Json => output::table_text(command, key, table, Format::Json)?.into_bytes(),
        FileFormat::Parquet => parquet::encode(table).map_err(|error| parquet::failure(file, &error))?,
    };
    write_whole(file, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_chooses_the_format_and_others_are_refused() {
        let of = |name: &str| FileFormat::of(Path::new(name));
        assert_eq!(of("a.csv").unwrap(), FileFormat::Csv);
        assert_eq!(of("b/a.b.JSON").unwrap(), FileFormat::Json);
        assert_eq!(of("a.parquet").unwrap(), FileFormat::Parquet);
        for name in ["a", "a.xls", ".csv"] {
            let message = of(name).unwrap_err().to_string();
            assert!(message.contains(".csv, .json or .parquet"), "{message}");
        }
    }
}
