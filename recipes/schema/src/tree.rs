//! A TOML tree with the position of every key and value. An error that is found after the overlays
//! were applied can thus still be reported with its line and column.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::origin::Origin;

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A TOML value. Date-times are kept as text, because no recipe key has this type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// The name of the value's type in messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date-time",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// A table, with its keys in the order in which they were first written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// One key of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_origin: Origin,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    pub(crate) fn string(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The origin of `path` (segments joined by `.`, array positions as numbers), or of the nearest
    /// enclosing value that was written. For a table, it is the origin of the key.
    pub(crate) fn locate(&self, path: &str) -> Origin {
        let mut node = self;
        let mut origin = &self.origin;
        for segment in path.split('.').filter(|segment| !segment.is_empty()) {
            match &node.value {
                Value::Table(table) => match table.entry(segment) {
                    Some(entry) => {
                        node = &entry.node;
                        origin = if node.table().is_some() { &entry.key_origin } else { &node.origin };
                    }
                    None => break,
                },
                Value::Array(items) => match segment.parse().ok().and_then(|at: usize| items.get(at)) {
                    Some(item) => {
                        node = item;
                        origin = &item.origin;
                    }
                    None => break,
                },
                _ => break,
            }
        }
        origin.clone()
    }

    /// Converts to plain JSON. Non-finite floats become `null`; they are refused before the JSON is
    /// read.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::String(text) | Value::Datetime(text) => serde_json::Value::from(text.as_str()),
            Value::Integer(number) => serde_json::Value::from(*number),
            Value::Float(number) => serde_json::Value::from(*number),
            Value::Boolean(flag) => serde_json::Value::from(*flag),
            Value::Array(items) => items.iter().map(Node::to_json).collect(),
            Value::Table(table) => {
                table.entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect()
            }
        }
    }
}

/// Converts byte offsets to lines and columns.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    file: Arc<str>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str, file: &str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts, file: file.into() }
    }

    fn origin(&self, offset: usize) -> Origin {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        // A span starts inside a character only if the parser has a bug. The column is then 1.
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        Origin::File { file: self.file.clone(), line, column }
    }
}

/// Parses TOML. All syntax errors are reported together.
pub(crate) fn parse(text: &str, file: &str) -> Result<Node, Diagnostics> {
    let lines = Lines::new(text, file);
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut found = Diagnostics::default();
    for error in errors {
        let offset = error.span().map_or(0, |span| span.start);
        found.push(Diagnostic::new(lines.origin(offset), error.message().to_owned()));
    }
    let mut node =
        Node { value: Value::Table(table(root.get_ref(), &lines, &mut found)), origin: lines.origin(0) };
    node.origin = lines.origin(0);
    found.into_result(node)
}

/// Parses the right-hand side of `--set key=value`, as TOML if possible, otherwise as a bare
/// string.
pub(crate) fn parse_override(text: &str, origin: &Origin) -> Result<Node, String> {
    let node = match DeValue::parse(text) {
        Ok(value) => {
            let mut found = Diagnostics::default();
            let lines = Lines::new(text, "");
            let node = value_node(value.get_ref(), 0, &lines, &mut found);
            match found.into_result(node) {
                Ok(node) => node,
                Err(found) => {
                    return Err(found.iter().map(|one| one.message.clone()).collect::<Vec<_>>().join("; "));
                }
            }
        }
        Err(error) => {
            let bare = !text.is_empty() && !text.contains(['"', '\'', '[', ']', '{', '}', '\n']);
            // `.5`, `1e` and `0x` are mistyped numbers. A word or a path is a bare string.
            let letters: Vec<bool> = text.chars().map(char::is_alphabetic).collect();
            let begins = letters.first() == Some(&true) || text.starts_with('/');
            if !bare || !(begins || letters.windows(2).any(|pair| pair[0] && pair[1])) {
                return Err(format!("`{text}` is not a TOML value: {}", error.message()));
            }
            Node { value: Value::String(text.to_owned()), origin: origin.clone() }
        }
    };
    Ok(with_origin(node, origin))
}

fn with_origin(mut node: Node, origin: &Origin) -> Node {
    node.origin = origin.clone();
    match &mut node.value {
        Value::Array(items) => {
            *items = std::mem::take(items).into_iter().map(|item| with_origin(item, origin)).collect();
        }
        Value::Table(table) => {
            for entry in &mut table.entries {
                entry.key_origin = origin.clone();
                let value = std::mem::replace(&mut entry.node.value, Value::Boolean(false));
                entry.node = with_origin(Node { value, origin: origin.clone() }, origin);
            }
        }
        _ => {}
    }
    node
}

fn table(source: &DeTable<'_>, lines: &Lines<'_>, found: &mut Diagnostics) -> Table {
    let mut entries = Vec::new();
    for (key, value) in source.iter() {
        let key_start = key.span().start;
        entries.push(Entry {
            key: key.get_ref().to_string(),
            key_origin: lines.origin(key_start),
            node: value_node(value.get_ref(), value.span().start, lines, found),
        });
    }
    Table { entries }
}

fn value_node(source: &DeValue<'_>, start: usize, lines: &Lines<'_>, found: &mut Diagnostics) -> Node {
    let origin = lines.origin(start);
    let value = match source {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                let message = format!("the integer {number} does not fit into 64 bits");
                found.push(Diagnostic::new(origin.clone(), message));
                Value::Integer(0)
            }
        },
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(time) => Value::Datetime(time.to_string()),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| value_node(item.get_ref(), item.span().start, lines, found)).collect(),
        ),
        DeValue::Table(inner) => Value::Table(table(inner, lines, found)),
    };
    Node { value, origin }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# head\n[a]\nb = 1\n\"ü\" = [1.5, 2]\n[a.c.d]\ne = \"x\"\n[[f]]\ng = 1\n[[f]]\ng = true\n";

    #[test]
    fn every_value_knows_its_line_and_column() {
        let root = parse(TEXT, "x.toml").unwrap();
        for (path, at) in [
            ("a", "x.toml:2:2"),
            ("a.b", "x.toml:3:5"),
            ("a.c.d", "x.toml:5:6"),
            ("a.c.d.e", "x.toml:6:5"),
            ("f.1.g", "x.toml:10:5"),
            ("a.nothing.here", "x.toml:2:2"),
            ("f.7", "x.toml:7:1"),
        ] {
            assert_eq!(root.locate(path).to_string(), at, "{path}");
        }
        let Value::Array(items) =
            &root.table().unwrap().get("a").unwrap().table().unwrap().get("ü").unwrap().value
        else {
            panic!("an array")
        };
        assert_eq!(items[1].origin.to_string(), "x.toml:4:13", "columns are characters, not bytes");
    }

    #[test]
    fn all_syntax_errors_are_found() {
        let found = parse("a = \nb = 1\nb = 2\n", "x.toml").unwrap_err();
        let lines: Vec<String> = found.iter().map(|one| one.origin.to_string()).collect();
        assert_eq!(lines.len(), 2, "{found}");
        assert!(lines[1].starts_with("x.toml:3:1"), "{found}");
    }

    #[test]
    fn integers_beyond_64_bits_are_refused() {
        let found = parse("a = 9223372036854775808\n", "x.toml").unwrap_err();
        assert!(found.to_string().contains("does not fit"), "{found}");
        assert!(parse("a = -9223372036854775808\nb = 0x7f_ff\n", "x.toml").is_ok());
    }

    #[test]
    fn overrides_are_toml_or_bare_words() {
        let origin = Origin::Override { text: "a=b".into() };
        let value = |text: &str| parse_override(text, &origin).map(|node| node.value);
        assert_eq!(value("0.1"), Ok(Value::Float(0.1)));
        assert_eq!(value("12"), Ok(Value::Integer(12)));
        assert_eq!(value("true"), Ok(Value::Boolean(true)));
        for word in ["pre", "/data/4-gram.arpa.gz", "4-gram.arpa.gz", "../a.arpa", "./1/lm"] {
            assert_eq!(value(word), Ok(Value::String(word.into())));
        }
        assert_eq!(value("\"pre\""), Ok(Value::String("pre".into())));
        assert!(matches!(value("[1, 2]"), Ok(Value::Array(items)) if items.len() == 2));
        for text in ["", "[1", "\"x", "1e", ".5", "0x"] {
            assert!(value(text).is_err(), "{text}");
        }
        let node = parse_override("{ kind = \"fixed\", lr = 1 }", &origin).unwrap();
        assert_eq!(node.locate("lr").to_string(), "--set a=b");
    }
}
