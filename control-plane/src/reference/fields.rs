//! The fields of a schema as lines of a table, with those of nested objects.

use serde::Serialize;
use serde_json::{Map, Value};

/// Deeper objects are named, not shown.
const DEPTH_MAX: usize = 2;

/// A line of the table.
#[derive(Debug, Serialize)]
pub(super) struct FieldRow {
    name: String,
    kind: String,
    is_required: bool,
    text: String,
    depth: usize,
}

/// Returns the fields of an object schema with its `$defs` inside. Leaves out `_meta` and `_next`, which all answers have.
pub(super) fn rows(schema: &Value) -> Vec<FieldRow> {
    let empty = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&empty);
    let mut rows = Vec::new();
    add(&mut rows, schema, definitions, 0);
    rows
}

fn add(rows: &mut Vec<FieldRow>, schema: &Value, definitions: &Map<String, Value>, depth: usize) {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        if depth == 0 && ["_meta", "_next"].contains(&name.as_str()) {
            continue;
        }
        let target = resolve(member, definitions);
        let text = member["description"].as_str().or(target["description"].as_str()).unwrap_or_default();
        rows.push(FieldRow {
            name: name.clone(),
            kind: kind_of(member, definitions),
            is_required: required.iter().any(|one| one == name),
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            depth,
        });
        let inner = if target["type"] == "array" { resolve(&target["items"], definitions) } else { target };
        if depth == DEPTH_MAX {
            continue;
        }
        add(rows, inner, definitions, depth + 1);
        for variant in variants_of(inner, definitions) {
            add_variant(rows, variant, definitions, depth + 1);
        }
    }
}

/// Adds a line for one of several kinds of objects, and its own fields below.
fn add_variant(rows: &mut Vec<FieldRow>, variant: &Value, definitions: &Map<String, Value>, depth: usize) {
    let kind = resolve(&variant["properties"]["type"], definitions);
    let kind = kind["const"].as_str().or(kind["enum"][0].as_str());
    let Some(kind) = kind else { return };
    let text = variant["description"].as_str().unwrap_or_default();
    rows.push(FieldRow {
        name: kind.to_owned(),
        kind: format!("object with type \"{kind}\""),
        is_required: false,
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        depth,
    });
    if depth < DEPTH_MAX {
        add(rows, variant, definitions, depth + 1);
    }
}

/// Returns the kinds of objects that a schema allows, if there are several.
fn variants_of<'a>(schema: &'a Value, definitions: &'a Map<String, Value>) -> Vec<&'a Value> {
    let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array()).into_iter().flatten();
    choices
        .map(|choice| resolve(choice, definitions))
        .filter(|choice| choice["properties"].is_object())
        .collect()
}

/// Follows a reference, also one beside null.
fn resolve<'a>(schema: &'a Value, definitions: &'a Map<String, Value>) -> &'a Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return definitions.get(name).unwrap_or(schema);
    }
    let choices = schema["allOf"].as_array().or(schema["anyOf"].as_array());
    let mut named = choices.into_iter().flatten().filter(|choice| choice["type"] != "null");
    match (named.next(), named.next()) {
        (Some(only), None) => resolve(only, definitions),
        _ => schema,
    }
}

/// Returns the type in words: `text`, `list: object`, `"a" or "b"`, with the bounds that a caller must know.
fn kind_of(schema: &Value, definitions: &Map<String, Value>) -> String {
    let target = resolve(schema, definitions);
    if let Some(values) = target["enum"].as_array() {
        let shown: Vec<String> =
            values.iter().filter(|value| !value.is_null()).map(Value::to_string).collect();
        return shown.join(" | ");
    }
    if let Some(value) = target.get("const") {
        return value.to_string();
    }
    let names: Vec<&str> = match &target["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ if variants_of(target, definitions).len() > 1 => return "one of these objects".to_owned(),
        _ => return "any value".to_owned(),
    };
    let is_nullable = names.contains(&"null") || schema.to_string().contains("{\"type\":\"null\"}");
    let mut kind = match names.first().copied().unwrap_or_default() {
        "array" => format!("list: {}", kind_of(&target["items"], definitions)),
        "string" => target["format"].as_str().unwrap_or("text").to_owned(),
        other => other.to_owned(),
    };
    let bounds = [
        ("minLength", "≥", " characters"),
        ("maxLength", "≤", " characters"),
        ("minimum", "≥", ""),
        ("maximum", "≤", ""),
        ("maxItems", "≤", " items"),
    ];
    for (bound, sign, unit) in bounds {
        match target[bound].as_i64() {
            // A length of 1 says only that the text is not empty.
            Some(value) if value > 1 || !bound.starts_with("min") => {
                kind += &format!(", {sign} {value}{unit}");
            }
            _ => {}
        }
    }
    if is_nullable { kind + " or null" } else { kind }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_fields_follow_their_object() {
        let schema = json!({
            "required": ["a"],
            "properties": {
                "a": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "b": {"type": ["string", "null"], "maxLength": 5},
                "d": {"oneOf": [{"$ref": "#/$defs/Wait"}, {"$ref": "#/$defs/Stop"}]},
                "_meta": {"type": "object"},
            },
            "$defs": {
                "Wait": {"properties": {"type": {"const": "wait"}, "for": {"type": "string"}}},
                "Stop": {"properties": {"type": {"enum": ["stop"]}}},
                "Item": {"type": "object", "properties": {"c": {"enum": ["x", "y"]}}},
            },
        });
        let shown: Vec<String> = rows(&schema)
            .into_iter()
            .map(|row| format!("{} {} {} {}", row.depth, row.name, row.kind, row.is_required))
            .collect();
        let expected = [
            "0 a list: object true",
            "1 c \"x\" | \"y\" false",
            "0 b text, ≤ 5 characters or null false",
            "0 d one of these objects false",
            "1 wait object with type \"wait\" false",
            "2 type \"wait\" false",
            "2 for text false",
            "1 stop object with type \"stop\" false",
            "2 type \"stop\" false",
        ];
        assert_eq!(shown, expected);
    }
}
