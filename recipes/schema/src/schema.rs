//! The JSON Schemas of recipes, derived from the types in [`crate::spec`].
//!
//! There are two: one for a resolved recipe, against which every resolved tree is checked, and one
//! for a recipe file, for editors.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::spec::Task;

/// Name prefix of the copy of a definition in which no key is required.
const PARTIAL: &str = "Partial";

/// Any task, for the parts of the schema that all tasks share.
pub(crate) const ANY: Task = Task::ALL[0];

/// The schema of a resolved recipe of a task. It has no null, because TOML has none.
pub(crate) fn recipe_schema(task: Task) -> &'static Value {
    static SCHEMAS: OnceLock<BTreeMap<Task, Value>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let schema = |task: Task| {
            let mut schema = task.schema();
            drop_nulls(&mut schema);
            schema
        };
        Task::ALL.iter().map(|task| (*task, schema(*task))).collect()
    });
    &schemas[&task]
}

/// The blocks and definitions of all tasks. A block that differs between tasks may be that of any
/// task.
fn of_all_tasks() -> (Map<String, Value>, Map<String, Value>) {
    let mut blocks: Vec<(String, Vec<Value>)> = Vec::new();
    let mut defs = Map::new();
    for schema in Task::ALL.iter().map(|task| recipe_schema(*task)) {
        let members = |key: &str| schema[key].as_object().cloned().unwrap_or_default();
        defs.extend(members("$defs"));
        for (name, block) in members("properties") {
            match blocks.iter_mut().find(|(known, _)| *known == name) {
                Some((_, kinds)) if kinds.contains(&block) => {}
                Some((_, kinds)) => kinds.push(block),
                None => blocks.push((name, vec![block])),
            }
        }
    }
    let any = |mut kinds: Vec<Value>| match kinds.len() {
        1 => kinds.remove(0),
        _ => {
            let description = kinds[0]["description"].take();
            kinds.iter_mut().filter_map(Value::as_object_mut).for_each(|kind| {
                kind.remove("description");
            });
            json!({ "description": description, "anyOf": kinds })
        }
    };
    (blocks.into_iter().map(|(name, kinds)| (name, any(kinds))).collect(), defs)
}

/// The JSON Schema (draft 2020-12) of a recipe file. The file is a whole recipe, or, if
/// `recipe.base` names a base, the differences from it. Both may have overlays `[arm.NAME]` and
/// `[tier.NAME]` of any part.
pub fn schema() -> Value {
    let (blocks, mut defs) = of_all_tasks();
    let required = recipe_schema(ANY)["required"].clone();

    let partials: Vec<(String, Value)> = defs
        .iter()
        .filter(|(_, definition)| is_table(definition))
        .map(|(name, definition)| (format!("{PARTIAL}{name}"), partial(definition, &defs)))
        .collect();
    let mut whole: Map<String, Value> = blocks.clone();
    let mut changed: Map<String, Value> = blocks
        .iter()
        .map(|(name, block)| {
            (name.clone(), if name == "recipe" { block.clone() } else { partial(block, &defs) })
        })
        .collect();
    let overlay_blocks: Map<String, Value> = changed
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "recipe" | "claim"))
        .map(|(name, block)| (name.clone(), block.clone()))
        .chain([("without".to_owned(), without()), ("preset".to_owned(), preset())])
        .collect();
    defs.extend(partials);
    short_forms(&mut defs, &mut whole, &mut changed);
    let overlay = |blocks: &Map<String, Value>| {
        json!({
            "description": "Any part of a recipe, laid over it.",
            "type": "object",
            "properties": blocks,
            "additionalProperties": false,
        })
    };
    defs.insert("Overlay".to_owned(), overlay(&overlay_blocks));
    let inherit = json!({
        "description": "Lay the base's tier of this name below; without it this recipe does not have the base's tier.",
        "type": "boolean",
    });
    let tier_blocks = overlay_blocks.into_iter().chain([("inherit".to_owned(), inherit)]).collect();
    defs.insert("Tier".to_owned(), overlay(&tier_blocks));
    about_of_a_file(&mut defs);

    let mut names: Map<String, Value> = whole.keys().map(|name| (name.clone(), json!(true))).collect();
    for (name, of, description) in [
        ("arm", "Overlay", "Named overlays that the claims tell apart, or names of presets."),
        ("tier", "Tier", "Named overlays of another size, or names of presets."),
    ] {
        let overlays = json!({
            "description": description,
            "type": "object",
            "additionalProperties": { "anyOf": [{ "type": "string" }, { "$ref": format!("#/$defs/{of}") }] },
        });
        names.insert(name.to_owned(), overlays);
    }
    let shared = json!({ "$ref": "#/$defs/PartialClaimSpec", "description": "Keys that all claims of the file share." });
    names.insert("claims".to_owned(), shared);
    let names_one =
        |key: &str| json!({ "properties": { "recipe": { "required": [key] } }, "required": ["recipe"] });
    let has_base = json!({ "anyOf": [names_one("base"), names_one("use")] });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "zoo recipe file",
        "description": "One TOML file: model, data, hyperparameters, and what was published for them.",
        "type": "object",
        "properties": names,
        "additionalProperties": false,
        "if": has_base,
        "then": { "properties": changed, "required": ["recipe"] },
        "else": { "properties": whole, "required": required },
        "$defs": defs,
    })
}

/// The text of [`schema`] as it is committed: indented, with a final line end.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

/// Adds the keys of `[recipe]` that only files have, e.g. `recipe.base` and `recipe.without`. A
/// resolved recipe has none of them.
fn about_of_a_file(defs: &mut Map<String, Value>) {
    if let Some(properties) = defs.get_mut("About").and_then(|about| about["properties"].as_object_mut()) {
        let base = json!({
            "description": "Recipe to build upon, by name or path. Its claims and tiers are not inherited; all else is.",
            "type": "string",
        });
        properties.insert("base".to_owned(), base);
        properties.insert("without".to_owned(), without());
        properties.insert(
            "use".to_owned(),
            named("Parts to build upon, such as `model/jasper-10x5`, in this order, above the base."),
        );
    }
    // With a base, `[recipe]` is inherited too, so only the name is required.
    if let Some(about) = defs.get_mut("About").and_then(Value::as_object_mut) {
        let required = about.insert("required".to_owned(), json!(["name"]));
        about.insert("if".to_owned(), json!({ "not": { "required": ["base"] } }));
        about.insert("then".to_owned(), json!({ "required": required }));
    }
}

/// Adds the short forms, which only files have: see [`crate::forms`].
fn short_forms(
    defs: &mut Map<String, Value>,
    whole: &mut Map<String, Value>,
    changed: &mut Map<String, Value>,
) {
    let mut with_both = Vec::new();
    for (name, definition) in defs.iter_mut().filter(|(name, _)| name.starts_with(PARTIAL)) {
        let properties = definition.get_mut("properties").and_then(Value::as_object_mut);
        let Some(properties) = properties else { continue };
        let sides = ["encoder", "decoder"].map(|side| properties.get(side)?["$ref"].as_str());
        let [Some(encoder), Some(decoder)] = sides else { continue };
        let both = json!({
            "description": "Keys that encoder and decoder share.",
            "anyOf": [{ "$ref": encoder }, { "$ref": decoder }],
        });
        properties.insert("both".to_owned(), both);
        with_both.push(json!({ "$ref": format!("#/$defs/{name}") }));
    }
    if let Some(model) = whole.get_mut("model") {
        let written_out = model.take();
        let both = json!({ "anyOf": with_both });
        *model = json!({ "if": { "required": ["both"] }, "then": both, "else": written_out });
    }
    let mut claim = defs.get("PartialClaimSpec").cloned().unwrap_or_default();
    if let Some(properties) = claim["properties"].as_object_mut() {
        let lines = json!({
            "description": "Line, or lines, of the source: `7` or `7-9`.",
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
        });
        properties.insert("line".to_owned(), lines);
        let keys = json!({
            "description": "Keys whose values `rows` lists.", "type": "array", "items": { "type": "string" },
        });
        properties.insert("columns".to_owned(), keys);
        let rows = json!({
            "description": "One claim a row: a value for each key of `columns`.",
            "type": "array",
            "items": { "type": "array" },
        });
        properties.insert("rows".to_owned(), rows);
    }
    defs.insert("ClaimBlock".to_owned(), claim);
    for blocks in [whole, changed] {
        if let Some(claims) = blocks.get_mut("claim") {
            claims["items"] = json!({ "$ref": "#/$defs/ClaimBlock" });
        }
    }
}

fn preset() -> Value {
    named("Presets to lay below: see docs/recipes.md for their names.")
}

/// The schema of one name or several names.
fn named(description: &str) -> Value {
    json!({
        "description": description,
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
    })
}

fn without() -> Value {
    json!({
        "description": "Dotted keys to take out of what is below, before this is laid over it.",
        "type": "array",
        "items": { "type": "string" },
    })
}

/// Whether the definition is a table, or a choice of tables by `kind`.
fn is_table(definition: &Value) -> bool {
    definition["type"] == "object"
        || definition["oneOf"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind["type"] == "object"))
}

/// A copy in which no key is required, and in which a table without its `kind` may be of any kind.
fn partial(schema: &Value, defs: &Map<String, Value>) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut copy = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "required" | "default" => {}
            "oneOf" if is_table(schema) => {
                let kinds =
                    value.as_array().map(|kinds| kinds.iter().map(|kind| partial(kind, defs)).collect());
                copy.insert("anyOf".to_owned(), Value::Array(kinds.unwrap_or_default()));
            }
            "anyOf" => {
                let kinds =
                    value.as_array().map(|kinds| kinds.iter().map(|kind| partial(kind, defs)).collect());
                copy.insert(key.clone(), Value::Array(kinds.unwrap_or_default()));
            }
            "$ref" => {
                let name = value.as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
                let prefix = if defs.get(name).is_some_and(is_table) { PARTIAL } else { "" };
                copy.insert(key.clone(), json!(format!("#/$defs/{prefix}{name}")));
            }
            "properties" => {
                let inner = value.as_object().cloned().unwrap_or_default();
                let inner: Map<String, Value> =
                    inner.into_iter().map(|(name, value)| (name, partial(&value, defs))).collect();
                copy.insert(key.clone(), Value::Object(inner));
            }
            "additionalProperties" => {
                copy.insert(key.clone(), partial(value, defs));
            }
            // An array is replaced as a whole, so its items must be complete.
            _ => {
                copy.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(copy)
}

/// Removes null, so that leaving a key out is the only way to omit an optional value.
fn drop_nulls(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(default) = members.get_mut("default") {
                strip(default);
                if default.is_null() {
                    members.remove("default");
                }
            }
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    members.insert("type".to_owned(), only);
                }
            }
            let alone = members.get_mut("anyOf").and_then(Value::as_array_mut).and_then(|choices| {
                choices.retain(|choice| choice["type"] != "null");
                if let [Value::Object(only)] = choices.as_slice() { Some(only.clone()) } else { None }
            });
            if let Some(only) = alone {
                members.remove("anyOf");
                members.extend(only);
            }
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn strip(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, value| !value.is_null());
        members.values_mut().for_each(strip);
    }
}

/// The keys of a claim.
pub(crate) fn keys_of_claims() -> impl Iterator<Item = &'static str> + Clone {
    let keys = recipe_schema(ANY)["$defs"]["ClaimSpec"]["properties"].as_object();
    keys.into_iter().flat_map(|keys| keys.keys().map(String::as_str))
}

/// Checks that a recipe of some task has a key with this dotted path, in any of its kinds.
///
/// # Errors
/// The unknown segment, and the keys that are known in its place.
pub(crate) fn find_path(path: &str) -> Result<(), (String, Vec<String>)> {
    let mut places: Vec<Place<'_>> = Task::ALL.iter().map(|task| Place::of(*task)).collect();
    for segment in path.split('.') {
        let (next, mut known) = inside(&places, segment);
        if next.is_empty() {
            known.sort();
            known.dedup();
            return Err((segment.to_owned(), known));
        }
        places = next;
    }
    Ok(())
}

/// The first task whose recipes have a table of this kind at a dotted path. An index is a segment
/// of the path.
pub(crate) fn task_of_kind(path: &str, kind: &str) -> Option<Task> {
    let step = |places: Vec<Place<'static>>, segment: &str| match segment.parse::<usize>() {
        Ok(_) => places.into_iter().map(Place::item).collect(),
        Err(_) => inside(&places, segment).0,
    };
    Task::ALL.iter().copied().find(|task| {
        let places = path.split('.').fold(vec![Place::of(*task)], step);
        places.into_iter().flat_map(Place::kinds).any(|table| kind_of(table) == Some(kind))
    })
}

/// A part of a schema, and the schema that its references point into.
#[derive(Clone, Copy)]
struct Place<'s> {
    root: &'s Value,
    schema: &'s Value,
}

impl Place<'static> {
    /// The whole schema of a task.
    fn of(task: Task) -> Self {
        let root = recipe_schema(task);
        Self { root, schema: root }
    }
}

impl<'s> Place<'s> {
    /// An item of the array that stands here.
    fn item(self) -> Self {
        Self { schema: &follow(self.root, self.schema)["items"], ..self }
    }

    /// The tables that may stand here.
    fn kinds(self) -> Vec<&'s Value> {
        let schema = follow(self.root, self.schema);
        match schema["oneOf"].as_array() {
            Some(kinds) => kinds.iter().collect(),
            None => vec![schema],
        }
    }
}

/// What stands under a key in any kind of these places, and the keys that are known there.
fn inside<'s>(places: &[Place<'s>], segment: &str) -> (Vec<Place<'s>>, Vec<String>) {
    let (mut next, mut known) = (Vec::new(), Vec::new());
    for place in places {
        for table in place.kinds() {
            let properties = table["properties"].as_object();
            known.extend(properties.into_iter().flat_map(|properties| properties.keys().cloned()));
            let inner = match properties.and_then(|properties| properties.get(segment)) {
                Some(inner) => inner,
                None if table["additionalProperties"].is_object() => &table["additionalProperties"],
                None => continue,
            };
            next.push(Place { root: place.root, schema: inner });
        }
    }
    (next, known)
}

/// The kind that a table of a choice has.
pub(crate) fn kind_of(choice: &Value) -> Option<&str> {
    choice["properties"]["kind"]["const"].as_str()
}

/// Follows a `$ref`, if the schema is one.
pub(crate) fn follow<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        Some(name) => &root["$defs"][name],
        None => schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_every_kind() {
        for path in
            ["train.log_every", "train.schedule.warmup_updates", "decode.any-name.beam", "data.eval.x.lines"]
        {
            assert_eq!(find_path(path), Ok(()), "{path}");
        }
        let (segment, known) = find_path("train.log_evry").unwrap_err();
        assert_eq!(segment, "log_evry");
        assert!(known.contains(&"log_every".to_owned()));
        assert!(find_path("train.log_every.x").is_err());
    }

    #[test]
    fn a_definition_has_one_meaning_in_all_tasks() {
        let (_, all) = of_all_tasks();
        for schema in Task::ALL.iter().map(|task| recipe_schema(*task)) {
            for (name, definition) in schema["$defs"].as_object().unwrap() {
                assert_eq!(all.get(name), Some(definition), "{name}");
            }
        }
    }

    #[test]
    fn nothing_in_the_schemas_is_null() {
        fn walk(value: &Value, path: &str) {
            match value {
                Value::Object(members) => {
                    members.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}")));
                }
                Value::Array(items) => items.iter().for_each(|item| walk(item, path)),
                Value::String(text) => assert!(text != "null", "{path}"),
                Value::Null => panic!("{path} is null"),
                _ => {}
            }
        }
        Task::ALL.iter().for_each(|task| walk(recipe_schema(*task), ""));
        walk(&schema(), "");
    }
}
