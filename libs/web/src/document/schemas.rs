//! Rewrites schemas for generators of clients: some make no enumeration of a `oneOf` of constants, and all make a member
//! with a default a required one of their types, so that every caller would have to name it.

use serde_json::{Map, Value, json};

/// Rewrites a schema and all schemas inside.
pub(super) fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            // First, because a default may be the value of an enumeration.
            describe_default(members);
            join_constants(members);
            for (name, member) in members {
                // Values, not schemas.
                if !matches!(name.as_str(), "const" | "enum" | "example" | "examples") {
                    simplify(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Moves a default to the description.
fn describe_default(schema: &mut Map<String, Value>) {
    // The member of an object that has this name, rather than a default.
    if schema.get("default").is_some_and(|default| default.is_object() && !is_schema(schema)) {
        return;
    }
    let Some(default) = schema.shift_remove("default") else { return };
    let text = match &default {
        Value::Null => return,
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => return,
        Value::Object(members) if members.is_empty() => return,
        other => other.to_string(),
    };
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    if let Some(description) = with_default(description, &text) {
        schema.insert("description".to_owned(), description.into());
    }
}

/// Returns a description that names the default; `None` if it does so already.
fn with_default(description: &str, default: &str) -> Option<String> {
    if description.to_ascii_lowercase().contains("default") {
        return None;
    }
    Some(format!("{description} Default: `{default}`.").trim_start().to_owned())
}

/// Returns whether an object is a schema, and not a map of properties, which may have any name.
fn is_schema(object: &Map<String, Value>) -> bool {
    ["type", "description", "$ref"].iter().any(|keyword| object.get(*keyword).is_some_and(Value::is_string))
        || ["type", "allOf", "anyOf", "oneOf"]
            .iter()
            .any(|keyword| object.get(*keyword).is_some_and(Value::is_array))
}

/// Replaces choices that are all texts by one `enum`, and lists their descriptions in that of the schema.
fn join_constants(schema: &mut Map<String, Value>) {
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let Some(words) = choices.iter().map(words_of).collect::<Option<Vec<_>>>() else { return };
    let lines: Vec<String> = choices.iter().filter_map(line_of).collect();
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = [&[description.to_owned()], lines.as_slice()].concat().join("\n");
    schema.shift_remove("oneOf");
    schema.insert("description".to_owned(), description.trim_start().into());
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), words.concat().into());
}

/// Returns the texts that a choice allows; `None` if it allows more than fixed texts.
fn words_of(choice: &Value) -> Option<Vec<Value>> {
    if choice.get("type")? != "string" {
        return None;
    }
    match choice.get("const") {
        Some(word) => Some(vec![word.clone()]),
        None => choice.get("enum")?.as_array().cloned(),
    }
}

/// Returns the description of a constant as an item of a list.
fn line_of(choice: &Value) -> Option<String> {
    let (word, description) = (choice.get("const")?.as_str()?, choice.get("description")?.as_str()?);
    Some(format!("- `{word}`: {description}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simplified(mut schema: Value) -> Value {
        simplify(&mut schema);
        schema
    }

    #[test]
    fn described_constants_become_an_enumeration() {
        let choices = json!([
            {"type": "string", "enum": ["open"]},
            {"type": "string", "const": "full", "description": "Has no place left."},
        ]);
        assert_eq!(
            simplified(json!({"description": "A status.", "oneOf": choices})),
            json!({
                "description": "A status.\n- `full`: Has no place left.",
                "type": "string",
                "enum": ["open", "full"],
            })
        );
        let nullable = json!({"anyOf": [{"oneOf": choices}, {"type": "null"}]});
        assert_eq!(simplified(nullable)["anyOf"][0]["enum"], json!(["open", "full"]));
        let union = json!({"oneOf": [{"$ref": "#/components/schemas/A"}, {"type": "string", "const": "b"}]});
        assert_eq!(simplified(union.clone()), union);
    }

    #[test]
    fn a_default_becomes_a_part_of_the_description() {
        let cases = [
            (
                json!({"type": "integer", "default": 10}),
                json!({"type": "integer", "description": "Default: `10`."}),
            ),
            (
                json!({"description": "Rows.", "type": "integer", "default": 10}),
                json!({"description": "Rows. Default: `10`.", "type": "integer"}),
            ),
            (
                json!({"description": "Rows; default 10.", "type": "integer", "default": 10}),
                json!({"description": "Rows; default 10.", "type": "integer"}),
            ),
            (json!({"type": "array", "default": []}), json!({"type": "array"})),
            (json!({"type": ["string", "null"], "default": null}), json!({"type": ["string", "null"]})),
        ];
        for (schema, expected) in cases {
            assert_eq!(simplified(schema), expected);
        }
        let object = json!({"properties": {"default": {"type": "string"}, "type": {"type": "string"}}});
        assert_eq!(simplified(object.clone()), object);
    }
}
