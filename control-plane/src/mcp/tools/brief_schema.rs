//! Shortens the schemas of tools: a list of tools is part of every prompt, so each token counts. `describe_api` returns the
//! whole schema.

use http::Method;
use serde_json::{Map, Value, json};

/// How deep objects and arrays are described.
const DEPTH: usize = 2;
/// Choices of an enum, and members of an object inside another, that are listed.
const CHOICES_MAX: usize = 20;
const INNER_MEMBERS_MAX: usize = 12;
/// Longest description of a member.
const DESCRIPTION_CHARS: usize = 60;
/// An output schema is listed if it has at most so many bytes: about a hundred tokens.
const OUTPUT_BYTES_MAX: usize = 330;

/// Members of a problem with their types. A client checks refusals against the output schema, too.
const OF_PROBLEM: [(&str, &str); 17] = [
    ("type", "string"),
    ("title", "string"),
    ("status", "integer"),
    ("code", "string"),
    ("detail", "string"),
    ("error", "string"),
    ("requestId", "string"),
    ("hint", "string"),
    ("retryAfterSeconds", "integer"),
    ("fieldErrors", "array"),
    ("existingPageId", "string"),
    ("updatedAt", "string"),
    ("requiredScope", "string"),
    ("limit", "integer"),
    ("used", "integer"),
    ("upgradeUrl", "string"),
    ("runId", "string"),
];

/// How a schema shows that a value may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// As one of its types.
    Listed,
    /// As one of its types, if the description says what null means. Elsewhere it means the same as no value.
    Described,
    /// By no type at all, which is shorter.
    Untyped,
}

/// Returns the input schema of a tool: the names of all arguments, their types, choices and short descriptions.
pub(super) fn of_input(schema: &Value, method: &Method) -> Map<String, Value> {
    // A change leaves alone what is absent, and clears what is null.
    let is_change = [Method::PUT, Method::PATCH].contains(method);
    let nulls = if is_change { Nulls::Listed } else { Nulls::Described };
    let shaper = Shaper { definitions: schema.get("$defs").unwrap_or(&Value::Null), nulls };
    let mut brief = Map::new();
    brief.insert("type".to_owned(), json!("object"));
    let mut properties = Map::new();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        // Each member of `filters` is a parameter of its own as well.
        if !name.contains('.') {
            properties.insert(name.clone(), shaper.member(name, member));
        }
    }
    brief.insert("properties".to_owned(), Value::Object(properties));
    if let Some(required) = schema.get("required") {
        brief.insert("required".to_owned(), required.clone());
    }
    brief.insert("additionalProperties".to_owned(), schema["additionalProperties"].clone());
    brief
}

/// Returns the output schema of a tool: the data's members and their types. It requires nothing, because a client also
/// checks refusals against it. `None` if it is too long, or if it would reject a refusal.
pub(super) fn of_output(schema: &Value) -> Option<Map<String, Value>> {
    let fits = |brief: &Map<String, Value>| {
        serde_json::to_string(brief).is_ok_and(|text| text.len() <= OUTPUT_BYTES_MAX)
    };
    let briefs = [Nulls::Listed, Nulls::Untyped].into_iter().map(|nulls| output_with(schema, nulls));
    briefs.into_iter().find(|brief| fits(brief) && takes_problems(brief))
}

fn output_with(schema: &Value, nulls: Nulls) -> Map<String, Value> {
    let shaper = Shaper { definitions: schema.get("$defs").unwrap_or(&Value::Null), nulls };
    let mut brief = Map::new();
    brief.insert("type".to_owned(), json!("object"));
    let properties: Map<_, _> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !name.starts_with('_'))
        .map(|(name, member)| (name.clone(), shaper.shape(member, 1)))
        .collect();
    brief.insert("properties".to_owned(), Value::Object(properties));
    brief
}

/// Returns whether members that have the name of a problem's member take its values.
fn takes_problems(brief: &Map<String, Value>) -> bool {
    let members = brief.get("properties").and_then(Value::as_object);
    OF_PROBLEM.iter().all(|(name, kind)| match members.and_then(|members| members.get(*name)) {
        Some(Value::Object(shape)) => {
            let kinds = shape.get("type").map_or(&[][..], |kinds| match kinds {
                Value::Array(kinds) => kinds,
                one => std::slice::from_ref(one),
            });
            shape.is_empty() || shape.len() == 1 && kinds.iter().any(|one| one == kind)
        }
        _ => true,
    })
}

/// Returns the first sentence of a description, if it is short.
fn first_sentence(text: &str) -> Option<&str> {
    let sentence = text.split(". ").next().unwrap_or(text).split(';').next()?.trim_end_matches('.');
    (sentence.chars().count() <= DESCRIPTION_CHARS).then_some(sentence)
}

/// Returns whether a description says no more than the member's name, such as "Display name" of `name`.
fn repeats(name: &str, sentence: &str) -> bool {
    let of_name = name.to_lowercase();
    let words = sentence.split_whitespace().map(str::to_lowercase);
    words.filter(|word| word.len() > 3).all(|word| of_name.contains(word.trim_end_matches('s')))
}

/// Shortens the schemas of values.
struct Shaper<'a> {
    definitions: &'a Value,
    nulls: Nulls,
}

impl<'a> Shaper<'a> {
    fn member(&self, name: &str, schema: &Value) -> Value {
        let mut brief = self.shape(schema, DEPTH);
        if let (Some(text), Value::Object(members)) = (self.description_of(schema), &mut brief)
            && let Some(sentence) = first_sentence(text)
            && !repeats(name, sentence)
        {
            members.insert("description".to_owned(), json!(sentence));
        }
        brief
    }

    /// Returns the type of a schema, with the members of objects and the items of arrays to this depth.
    fn shape(&self, schema: &Value, depth: usize) -> Value {
        let mut has_null = false;
        let brief = self.present(schema, depth, &mut has_null);
        let is_described =
            || self.description_of(schema).is_some_and(|text| text.to_lowercase().contains("null"));
        match self.nulls {
            _ if !has_null => brief,
            Nulls::Untyped => json!({}),
            Nulls::Described if !is_described() => brief,
            Nulls::Listed | Nulls::Described => or_null(brief),
        }
    }

    /// Returns the type of a value that is not null, and notes whether it may be null.
    fn present(&self, schema: &Value, depth: usize, has_null: &mut bool) -> Value {
        if let Some(target) = self.target_of(schema) {
            return self.present(target, depth, has_null);
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array)
            && choices.len() <= CHOICES_MAX
        {
            *has_null |= choices.contains(&Value::Null);
            return json!({ "enum": choices.iter().filter(|choice| !choice.is_null()).collect::<Vec<_>>() });
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
        if let Some(choices) = choices {
            let mut present = choices.iter().filter(|choice| choice["type"] != "null");
            return match (present.next(), present.next()) {
                (Some(one), None) => {
                    *has_null |= choices.len() > 1;
                    self.present(one, depth, has_null)
                }
                _ => json!({}),
            };
        }
        let kinds = schema.get("type").and_then(Value::as_array);
        *has_null |= kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
        match type_of(schema) {
            Some("object") => self.object(schema, depth),
            Some("array") if depth > 0 => {
                let items = schema.get("items").map(|items| self.shape(items, depth - 1));
                match items.filter(|items| *items != json!({})) {
                    Some(items) => json!({ "type": "array", "items": items }),
                    None => json!({ "type": "array" }),
                }
            }
            Some(kind) => json!({ "type": kind }),
            None => json!({}),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let members = schema["properties"].as_object().filter(|members| depth > 0 && !members.is_empty());
        let Some(members) = members else { return json!({ "type": "object" }) };
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_optional =
            |(name, _): &(&String, &Value)| !required.iter().any(|needed| needed == name.as_str());
        let mut ordered: Vec<_> = members.iter().collect();
        ordered.sort_by_key(is_optional);
        let members: Map<_, _> = ordered
            .into_iter()
            .take(INNER_MEMBERS_MAX.max(required.len()))
            .map(|(name, member)| (name.clone(), self.shape(member, depth - 1)))
            .collect();
        let mut brief = json!({ "type": "object", "properties": members });
        if !required.is_empty() {
            brief["required"] = required.into();
        }
        brief
    }

    fn description_of<'s>(&self, schema: &'s Value) -> Option<&'s str>
    where
        'a: 's,
    {
        let described = schema.get("description").or_else(|| self.target_of(schema)?.get("description"));
        described.and_then(Value::as_str)
    }

    fn target_of(&self, schema: &Value) -> Option<&'a Value> {
        self.definitions.get(schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?)
    }
}

/// Adds null to the values of a shape. One without a type takes it already.
fn or_null(mut brief: Value) -> Value {
    if let Some(Value::Array(choices)) = brief.get_mut("enum") {
        choices.push(Value::Null);
    } else if let Some(kind) = brief.get("type").cloned() {
        brief["type"] = json!([kind, "null"]);
    }
    brief
}

/// Returns the type that is not null; `None` if there are several.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut present = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            present.next().filter(|_| present.next().is_none())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_keeps_names_types_and_choices_without_references() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": ["string", "null"], "maxLength": 9, "description": "Display name. At most 9." },
                "kind": { "$ref": "#/$defs/Kind", "description": "What it is" },
                "parent": { "anyOf": [{ "$ref": "#/$defs/Parent" }, { "type": "null" }] },
                "css": { "type": ["string", "null"], "description": "Style. Null removes it; absent keeps it." },
                "filters.url": { "type": "string" },
            },
            "required": ["kind"],
            "additionalProperties": false,
            "$defs": {
                "Kind": { "enum": ["a", "b", null] },
                "Parent": { "type": "object", "properties": { "up": { "$ref": "#/$defs/Parent" } } },
            },
        });
        let up = json!({ "up": { "type": "object", "properties": { "up": { "type": "object" } } } });
        let brief = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Display name" },
                "kind": { "enum": ["a", "b"], "description": "What it is" },
                "parent": { "type": "object", "properties": up },
                "css": { "type": ["string", "null"], "description": "Style" },
            },
            "required": ["kind"],
            "additionalProperties": false,
        });
        assert_eq!(Value::Object(of_input(&schema, &Method::POST)), brief);
        let change = Value::Object(of_input(&schema, &Method::PATCH));
        let of = |name: &str| change["properties"][name].clone();
        assert_eq!(of("name")["type"], json!(["string", "null"]));
        assert_eq!(of("kind")["enum"], json!(["a", "b", null]));
        assert_eq!(of("parent"), json!({ "type": ["object", "null"], "properties": up }));
    }

    #[test]
    fn an_object_inside_lists_its_required_members_first() {
        let mut members: Map<String, Value> =
            (0..20).map(|number| (format!("m{number}"), json!({ "type": "string" }))).collect();
        members.insert("needed".to_owned(), json!({ "type": "string" }));
        let item = json!({ "type": "object", "properties": members, "required": ["needed"] });
        let schema =
            json!({ "type": "object", "properties": { "items": { "type": "array", "items": item } } });
        let brief = Value::Object(of_input(&schema, &Method::POST));
        let listed = brief.pointer("/properties/items/items/properties").and_then(Value::as_object).unwrap();
        assert_eq!(listed.len(), INNER_MEMBERS_MAX);
        assert_eq!(listed.keys().next().unwrap(), "needed");
    }

    #[test]
    fn an_output_requires_nothing_and_keeps_null() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "format": "uuid" },
                "nextCursor": { "type": ["string", "null"] },
                "_meta": { "type": "object" },
            },
            "required": ["id"],
        });
        let brief = json!({
            "type": "object",
            "properties": { "id": { "type": "string" }, "nextCursor": { "type": ["string", "null"] } },
        });
        assert_eq!(of_output(&schema).map(Value::Object), Some(brief));
        let members: Map<String, Value> =
            (0..14).map(|number| (format!("m{number}"), json!({ "type": ["string", "null"] }))).collect();
        let long = of_output(&json!({ "type": "object", "properties": members })).unwrap();
        assert_eq!(long["properties"]["m0"], json!({}), "no type is shorter than two");
    }

    #[test]
    fn an_output_that_would_reject_a_problem_is_left_out() {
        let with = |name: &str, member: Value| {
            of_output(&json!({ "type": "object", "properties": { (name): member } })).is_some()
        };
        assert!(!with("status", json!({ "type": "string" })));
        assert!(!with("status", json!({ "enum": ["a"] })));
        assert!(!with("code", json!({ "enum": ["a"] })));
        assert!(!with("fieldErrors", json!({ "type": "array", "items": { "type": "string" } })));
        assert!(with("status", json!({ "type": "integer" })) && with("title", json!({ "type": "string" })));
        assert!(with("updatedAt", json!({ "type": ["string", "null"] })) && with("type", json!({})));
    }

    #[test]
    fn the_members_of_a_problem_are_those_of_the_document() {
        let document = serde_json::to_value(crate::api::document()).unwrap();
        let members = document["components"]["schemas"]["Problem"]["properties"].as_object().unwrap();
        let mut documented: Vec<_> = members
            .iter()
            .filter(|(name, _)| !name.starts_with('_'))
            .map(|(name, member)| (name.as_str(), type_of(member).unwrap()))
            .collect();
        let mut known = OF_PROBLEM.to_vec();
        documented.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, documented);
    }
}
