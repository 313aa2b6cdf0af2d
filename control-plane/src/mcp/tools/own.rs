//! The tools that are no operations: they find, describe and call any operation.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Value, json};

use super::class::Class;

/// Finds operations.
pub(super) fn search_api() -> Tool {
    let input = json!({
        "type": "object",
        "properties": { "query": { "type": "string" }, "limit": { "type": "integer" } },
        "required": ["query"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": { "operations": { "type": "array", "items": { "type": "object" } }, "total": { "type": "integer" } },
    });
    tool("search_api", "Find operations of the API by words; any of them can be called.", &input, Class::Read)
        .with_raw_output_schema(members_of(&output))
}

/// Describes an operation.
pub(super) fn describe_api() -> Tool {
    let input = json!({
        "type": "object",
        "properties": { "operation": { "type": "string", "description": "Such as forms.create" } },
        "required": ["operation"],
        "additionalProperties": false,
    });
    let description = "Get the full input and output schema of an operation.";
    tool("describe_api", description, &input, Class::Read)
}

/// Calls any operation of a class.
pub(super) fn call_api(class: Class) -> Tool {
    let mut input = json!({
        "type": "object",
        "properties": { "operation": { "type": "string" }, "params": { "type": "object" } },
        "required": ["operation"],
        "additionalProperties": false,
    });
    if class == Class::Write {
        let key = json!({ "type": "string", "description": "The same key never runs twice" });
        input["properties"]["idempotencyKey"] = key;
    }
    let description = match class {
        Class::Read => "Call an operation that reads.",
        Class::Write => {
            "Call an operation that creates or changes. Bodies up to 1 MiB, pages 4; larger sites by HTTP."
        }
        Class::Delete => "Call an operation that deletes.",
    };
    tool(class.tool(), description, &input, class)
}

fn tool(name: &'static str, description: &'static str, input: &Value, class: Class) -> Tool {
    // A tool that calls any operation of a class may call the most destructive one.
    let annotations = class.annotations(class != Class::Read, false);
    Tool::new(name, description, members_of(input)).with_annotations(annotations)
}

fn members_of(schema: &Value) -> Arc<serde_json::Map<String, Value>> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
