//! Checks a tree against the recipe schema: unknown keys, missing keys, wrong types, invalid
//! choices.

use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::{did_you_mean, listed};
use crate::schema::{ANY, follow, kind_of, recipe_schema, task_of_kind};
use crate::spec::Task;
use crate::tree::{Entry, Node, Origin, Table, Value};

/// Checks a whole resolved recipe. Its task selects the schema. If it has no valid task, only
/// `[recipe]` is checked.
pub(crate) fn check_recipe(root: &Node, found: &mut Diagnostics) {
    let about = root.table().and_then(|table| table.entry("recipe"));
    let task = about.and_then(|about| about.node.table()?.string("task")?.parse::<Task>().ok());
    match (task, about) {
        (None, Some(about)) => check_about(&about.node, &about.key_origin, found),
        (task, _) => {
            let task = task.unwrap_or(ANY);
            let own = against(task, root);
            let fits = |other: &&Task| !own.is_empty() && against(**other, root).is_empty();
            let other = Task::ALL.iter().filter(|other| **other != task).find(fits);
            found.extend(match other {
                Some(other) => of_another_task(task, *other, root),
                None => own,
            });
        }
    }
}

/// The errors of a recipe as one of this task.
fn against(task: Task, root: &Node) -> Diagnostics {
    let mut found = Diagnostics::default();
    let schema = recipe_schema(task);
    Check { schema, found: &mut found }.value(schema, root, "", &root.origin);
    found
}

/// The error of a recipe that states one task and has the blocks of another.
fn of_another_task(stated: Task, other: Task, root: &Node) -> Diagnostics {
    let message = format!("the task is `{stated}`, but the blocks are those of a recipe of `{other}`");
    Diagnostic::new(root.locate("recipe.task"), message).hint(format!("task = \"{other}\"")).into()
}

/// Checks the searches of a recipe of this task whose other blocks are known to be right.
pub(crate) fn check_searches(task: Task, root: &Node, found: &mut Diagnostics) {
    let schema = recipe_schema(task);
    let Some(entry) = root.table().and_then(|table| table.entry("decode")) else { return };
    let mut check = Check { schema, found };
    match schema["properties"].get("decode") {
        Some(searches) => check.value(searches, &entry.node, "decode", &entry.key_origin),
        None => check.unknown(schema, entry, &[], ""),
    }
}

/// Checks the block `[recipe]`, which recipes of all tasks share.
pub(crate) fn check_about(block: &Node, at: &Origin, found: &mut Diagnostics) {
    let schema = recipe_schema(ANY);
    Check { schema, found }.value(&schema["properties"]["recipe"], block, "recipe", at);
}

struct Check<'s, 'f> {
    schema: &'s Json,
    found: &'f mut Diagnostics,
}

impl<'s> Check<'s, '_> {
    /// Checks a value. `at` is the position of the value's key; the value has its own origin.
    fn value(&mut self, schema: &'s Json, node: &Node, path: &str, at: &Origin) {
        let schema = follow(self.schema, schema);
        if let Some(choices) = schema["oneOf"].as_array() {
            if choices.iter().all(|choice| choice["const"].is_string()) {
                self.word(choices, node, path);
            } else {
                self.tagged(choices, node, path, at);
            }
            return;
        }
        match schema["type"].as_str() {
            Some("object") => match node.table() {
                Some(table) => self.table(schema, table, &[], path, at),
                None => self.wrong_type(node, "a table", path),
            },
            Some("array") => match &node.value {
                Value::Array(items) => {
                    self.items(schema, node, items.len(), path);
                    for (index, item) in items.iter().enumerate() {
                        self.value(&schema["items"], item, &join(path, &index.to_string()), &item.origin);
                    }
                }
                _ => self.wrong_type(node, "an array", path),
            },
            Some("integer") => self.integer(schema, node, path),
            Some("number") => match node.value {
                Value::Float(number) if !number.is_finite() => {
                    self.report(&node.origin, format!("`{path}` is {number}; expected a finite number"));
                }
                Value::Float(_) | Value::Integer(_) => {}
                _ => self.wrong_type(node, "a number", path),
            },
            Some("boolean") if !matches!(node.value, Value::Boolean(_)) => {
                self.wrong_type(node, "a boolean", path)
            }
            Some("string") if !matches!(node.value, Value::String(_)) => {
                self.wrong_type(node, "a string", path)
            }
            _ => {}
        }
    }

    /// Checks the number of items of an array, if the schema limits it.
    fn items(&mut self, schema: &Json, node: &Node, there: usize, path: &str) {
        let limit = |key: &str| schema[key].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let (least, most) = (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(usize::MAX));
        if !(least..=most).contains(&there) {
            let due = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            self.report(&node.origin, format!("`{path}` has {there} items; {due} are due here"));
        }
    }

    fn integer(&mut self, schema: &Json, node: &Node, path: &str) {
        let Value::Integer(number) = node.value else { return self.wrong_type(node, "an integer", path) };
        let (least, most) = match schema["format"].as_str() {
            Some("uint32") => (0, i64::from(u32::MAX)),
            Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let least = schema["minimum"].as_i64().unwrap_or(least);
        if !(least..=most).contains(&number) {
            self.report(&node.origin, format!("`{path}` is {number}; it must be {least} to {most}"));
        }
    }

    fn word(&mut self, choices: &[Json], node: &Node, path: &str) {
        let words = choices.iter().filter_map(|choice| choice["const"].as_str());
        match &node.value {
            Value::String(text) if words.clone().any(|word| word == text) => {}
            Value::String(text) => {
                let hint = did_you_mean(text, words, "choices");
                self.found.push(
                    Diagnostic::new(node.origin.clone(), format!("`{path}` does not accept `{text}`"))
                        .hint(hint),
                );
            }
            _ => self.wrong_type(node, "a string", path),
        }
    }

    /// Checks a table whose `kind` determines its keys.
    fn tagged(&mut self, choices: &'s [Json], node: &Node, path: &str, at: &Origin) {
        let Some(table) = node.table() else { return self.wrong_type(node, "a table", path) };
        let kinds = choices.iter().filter_map(|choice| kind_of(choice));
        match table.get("kind") {
            None => {
                let all: Vec<String> = kinds.map(|kind| format!("`{kind}`")).collect();
                let hint = format!("one of {}", all.join(", "));
                self.found.push(Diagnostic::new(at.clone(), format!("`{path}` lacks its `kind`")).hint(hint));
            }
            Some(Node { value: Value::String(kind), origin }) => {
                match choices.iter().find(|choice| kind_of(choice) == Some(kind)) {
                    Some(choice) => self.table(choice, table, choices, path, at),
                    None => {
                        let message = format!("`{path}` has no kind `{kind}`");
                        let hint = match task_of_kind(path, kind) {
                            Some(task) => {
                                format!("`{kind}` is of the task `{task}`; {}", listed(kinds, "kinds"))
                            }
                            None => did_you_mean(kind, kinds, "kinds"),
                        };
                        self.found.push(Diagnostic::new(origin.clone(), message).hint(hint));
                    }
                }
            }
            Some(other) => self.wrong_type(other, "a string", &join(path, "kind")),
        }
    }

    fn table(&mut self, schema: &'s Json, table: &Table, siblings: &[Json], path: &str, at: &Origin) {
        let properties = schema["properties"].as_object();
        for entry in &table.entries {
            let inner = join(path, &entry.key);
            if let Some(known) = properties.and_then(|properties| properties.get(&entry.key)) {
                self.value(known, &entry.node, &inner, &entry.key_origin);
            } else if schema["additionalProperties"].is_object() {
                self.value(&schema["additionalProperties"], &entry.node, &inner, &entry.key_origin);
            } else {
                self.unknown(schema, entry, siblings, path);
            }
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if table.get(key).is_none() {
                let what = if path.is_empty() { "the recipe".to_owned() } else { format!("`{path}`") };
                let meaning = schema["properties"][key]["description"].as_str().unwrap_or_default();
                let meaning = meaning.lines().next().unwrap_or_default();
                let one = Diagnostic::new(at.clone(), format!("{what} lacks `{key}`"));
                self.found.push(if meaning.is_empty() { one } else { one.hint(format!("{key}: {meaning}")) });
            }
        }
    }

    fn unknown(&mut self, schema: &Json, entry: &Entry, siblings: &[Json], path: &str) {
        let key = &entry.key;
        let place = if path.is_empty() { "a recipe".to_owned() } else { format!("`{path}`") };
        let owner = siblings.iter().find(|sibling| sibling["properties"].get(key).is_some());
        let known = schema["properties"].as_object();
        let hint = match owner.and_then(kind_of) {
            Some(owner) => {
                format!(
                    "`{key}` is a key of kind `{owner}`; this is `{}`",
                    kind_of(schema).unwrap_or_default()
                )
            }
            None => did_you_mean(
                key,
                known.into_iter().flat_map(|known| known.keys().map(String::as_str)),
                "keys",
            ),
        };
        self.found.push(
            Diagnostic::new(entry.key_origin.clone(), format!("{place} has no key `{key}`")).hint(hint),
        );
    }

    fn wrong_type(&mut self, node: &Node, due: &str, path: &str) {
        self.report(&node.origin, format!("`{path}` is {}; expected {due}", node.value.type_name()));
    }

    fn report(&mut self, at: &Origin, message: String) {
        self.found.push(Diagnostic::new(at.clone(), message));
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
