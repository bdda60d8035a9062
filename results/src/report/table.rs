//! A table that is rendered in four formats.

use std::fmt::Write as _;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::verdict::Outcome;

/// Output formats of `zoo` on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Columns padded with spaces.
    #[default]
    Human,
    /// An array of objects.
    Json,
    /// RFC 4180, with a header line.
    Csv,
    /// A Markdown table.
    Md,
}

/// Error for an unknown name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`\nhint: human, json, csv or md")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        match word {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "md" => Ok(Self::Md),
            _ => Err(UnknownFormat(word.to_owned())),
        }
    }
}

/// Alignment of a column's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Left-aligned, for words.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Title for people.
    pub title: String,
    /// Key in JSON and CSV.
    pub key: String,
    /// Alignment of the text.
    pub alignment: Alignment,
}

impl Column {
    /// A column of words. The key is the title with `_` for spaces.
    #[must_use]
    pub fn words(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            key: title.replace(' ', "_").to_lowercase(),
            alignment: Alignment::Left,
        }
    }

    /// A column of numbers.
    #[must_use]
    pub fn numbers(title: &str) -> Self {
        Self { alignment: Alignment::Right, ..Self::words(title) }
    }

    /// The column with another key for programs, such as one with the unit.
    #[must_use]
    pub fn keyed(self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self }
    }
}

/// One field, in the forms for people and for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Text for `human` and `md`.
    pub text: String,
    /// Value for `json` and `csv`, unrounded. CSV has no lists and objects: it has `text` for them.
    pub value: Value,
}

impl Cell {
    /// A cell of words; an empty text becomes null for programs.
    #[must_use]
    pub fn words(text: impl Into<String>) -> Self {
        let text = text.into();
        let value = if text.is_empty() { Value::Null } else { Value::from(text.clone()) };
        Self { text, value }
    }

    /// A number with its printed form; `-` and null if there is none.
    #[must_use]
    pub fn number(value: Option<f64>) -> Self {
        match value {
            Some(value) => Self { text: crate::verdict::number(value), value: Value::from(value) },
            None => Self { text: "-".to_owned(), value: Value::Null },
        }
    }

    /// A whole number.
    #[must_use]
    pub fn count(value: u64) -> Self {
        Self { text: value.to_string(), value: Value::from(value) }
    }

    /// A list: an array for JSON, and the items with `between` between them elsewhere.
    #[must_use]
    pub fn list<T: ToString + Into<Value>>(items: impl IntoIterator<Item = T>, between: &str) -> Self {
        let (texts, values): (Vec<String>, Vec<Value>) =
            items.into_iter().map(|item| (item.to_string(), item.into())).unzip();
        Self { text: texts.join(between), value: Value::Array(values) }
    }

    /// An outcome: in words for people, and as the ledger spells it for programs.
    #[must_use]
    pub fn outcome(outcome: Outcome) -> Self {
        Self::of(outcome.to_string(), outcome.word())
    }

    /// A yes or no, with its printed words.
    #[must_use]
    pub fn flag(value: bool, [yes, no]: [&str; 2]) -> Self {
        Self { text: if value { yes } else { no }.to_owned(), value: Value::from(value) }
    }

    /// Any value, with its printed form.
    #[must_use]
    pub fn of(text: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { text: text.into(), value: value.into() }
    }
}

/// Rows under columns. A short row is filled with empty cells; cells beyond the columns are
/// dropped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// Rows of the table.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, mut row: Vec<Cell>) {
        row.resize(self.columns.len(), Cell::words(""));
        self.rows.push(row);
    }

    /// The table without the column of this key.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        if let Some(at) = self.columns.iter().position(|column| column.key == key) {
            self.columns.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// The table as text that ends with a newline.
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Human => self.human(),
            Format::Json => self.json(),
            Format::Csv => self.csv(),
            Format::Md => self.markdown(),
        }
    }

    fn human(&self) -> String {
        let one_line = |text: &str| text.replace(['\n', '\r', '\t'], " ");
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let body = self.rows.iter().map(|row| row.iter().map(|cell| one_line(&cell.text)).collect());
        let lines: Vec<Vec<String>> = std::iter::once(titles).chain(body).collect();
        let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let padded = line.iter().zip(&self.columns).zip(&widths).map(|((cell, column), width)| {
                let gap = " ".repeat(width - cell.chars().count());
                match column.alignment {
                    Alignment::Left => format!("{cell}{gap}"),
                    Alignment::Right => format!("{gap}{cell}"),
                }
            });
            let line = padded.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The rows as an array of objects.
    #[must_use]
    pub fn objects(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let fields = self.columns.iter().zip(row).map(|(c, cell)| (c.key.clone(), cell.value.clone()));
            Value::Object(fields.collect::<Map<_, _>>())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }

    fn json(&self) -> String {
        // A tree of maps, arrays, texts and finite numbers can always be written as text.
        format!("{:#}\n", self.objects())
    }

    fn csv(&self) -> String {
        let field = |text: String| {
            if text.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text
            }
        };
        let plain = |cell: &Cell| match &cell.value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => cell.text.clone(),
            other => other.to_string(),
        };
        let mut text = self.columns.iter().map(|c| field(c.key.clone())).collect::<Vec<_>>().join(",");
        text.push_str("\r\n");
        for row in &self.rows {
            text.push_str(&row.iter().map(|cell| field(plain(cell))).collect::<Vec<_>>().join(","));
            text.push_str("\r\n");
        }
        text
    }

    fn markdown(&self) -> String {
        let cell = |text: &str| text.replace('|', "\\|").replace(['\n', '\r'], " ");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(|c| cell(&c.title)).collect());
        let rules = self.columns.iter().map(|c| if c.alignment == Alignment::Left { "---" } else { "---:" });
        let _ = writeln!(text, "|{}|", rules.collect::<Vec<_>>().join("|"));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(|c| cell(&c.text)).collect()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![Column::words("claim"), Column::numbers("our score")]);
        table.push(vec![Cell::words("a, \"b\" | c"), Cell::number(Some(26.4))]);
        table.push(vec![Cell::words("d")]);
        table
    }

    #[test]
    fn four_formats() {
        assert_eq!(table().render(Format::Human), "claim       our score\na, \"b\" | c      26.40\nd\n");
        assert_eq!(table().render(Format::Csv), "claim,our_score\r\n\"a, \"\"b\"\" | c\",26.4\r\nd,\r\n");
        assert_eq!(
            table().render(Format::Md),
            "| claim | our score |\n|---|---:|\n| a, \"b\" \\| c | 26.40 |\n| d |  |\n"
        );
        let read: Value = serde_json::from_str(&table().render(Format::Json)).unwrap();
        assert_eq!(
            read,
            serde_json::json!([{"claim": "a, \"b\" | c", "our_score": 26.4}, {"claim": "d", "our_score": null}])
        );
    }

    #[test]
    fn a_list_is_an_array_for_json_and_a_text_elsewhere() {
        let mut table = Table::new(vec![Column::words("arms"), Column::words("age").keyed("age_seconds")]);
        table.push(vec![Cell::list([1_u64, 2], ", "), Cell::of("2 min", 120)]);
        assert_eq!(table.render(Format::Human), "arms  age\n1, 2  2 min\n");
        assert_eq!(table.render(Format::Csv), "arms,age_seconds\r\n\"1, 2\",120\r\n");
        assert_eq!(table.objects(), serde_json::json!([{"arms": [1, 2], "age_seconds": 120}]));
        let outcome = Cell::outcome(Outcome::NotRun);
        assert_eq!((outcome.text.as_str(), outcome.value), ("NOT RUN", "NOT-RUN".into()));
    }

    #[test]
    fn formats_by_name() {
        assert_eq!("md".parse(), Ok(Format::Md));
        assert!("xml".parse::<Format>().unwrap_err().to_string().contains("hint:"));
    }
}
