//! Calls tools by the API document alone, as agents do.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::harness::Api;

/// The operations of the API document.
pub(crate) struct Tools {
    document: Value,
}

impl Tools {
    pub(crate) fn read() -> Self {
        Self { document: serde_json::to_value(control_plane::api::document()).unwrap() }
    }

    /// The method, the path and the operation of a tool.
    fn operation(&self, tool: &str) -> (Method, &str, &Value) {
        for (path, item) in self.document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if operation["operationId"] == tool {
                    return (method.to_uppercase().parse().unwrap(), path, operation);
                }
            }
        }
        panic!("no operation {tool}")
    }

    /// The input of an operation: path, query and body as one object.
    fn input_schema(&self, tool: &str) -> Value {
        let (_, _, operation) = self.operation(tool);
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "header" {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            properties.insert(name.to_owned(), parameter["schema"].clone());
            required.extend((parameter["required"] == true).then(|| json!(name)));
        }
        let mut others = json!(false);
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        if let Some(name) = body["$ref"].as_str() {
            let body = self.document.pointer(&name[1..]).unwrap();
            properties.extend(body["properties"].as_object().cloned().unwrap_or_default());
            required.extend(body["required"].as_array().cloned().unwrap_or_default());
            // The answers of a form have names of their own.
            others = body.get("additionalProperties").cloned().unwrap_or(json!(true));
        }
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "properties": properties, "required": required, "additionalProperties": others,
            "components": self.document["components"],
        })
    }

    /// Returns what is wrong with the suggestions of a response.
    pub(crate) fn check(&self, made_by: &str, response: &Value) -> Vec<String> {
        let suggestions = response["_next"].as_array().cloned().unwrap_or_default();
        assert!((1..=5).contains(&suggestions.len()), "{made_by} suggests {suggestions:?}: {response}");
        let mut wrong = Vec::new();
        for (at, suggestion) in suggestions.iter().enumerate() {
            let tool = suggestion["tool"].as_str().unwrap();
            let schema = self.input_schema(tool);
            let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            wrong.extend(
                validator
                    .iter_errors(&suggestion["params"])
                    .map(|error| format!("{made_by} suggests {tool}: {error} at {}", error.instance_path())),
            );
            for text in ["intent", "hint"] {
                assert!(suggestion[text].as_str().is_some_and(|text| !text.is_empty()), "{suggestion}");
            }
            let has_example = suggestion["params"].to_string().contains("example.com");
            let may_lead =
                tool == "webhooks.create" || tool == "submissions.submit" || tool == "automations.test";
            if at == 0 && has_example && !may_lead {
                wrong.push(format!("{made_by} first suggests {tool} with a value that only a person knows"));
            }
        }
        wrong
    }

    /// Calls the tool of a suggestion with its params.
    pub(crate) async fn call(&self, api: &Api, key: &str, suggestion: &Value) -> (StatusCode, Value) {
        let (method, path, operation) = self.operation(suggestion["tool"].as_str().unwrap());
        let (mut path, mut query) = (path.to_owned(), form_urlencoded::Serializer::new(String::new()));
        let mut body = suggestion["params"].as_object().unwrap().clone();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let Some(value) = body.remove(name) else { continue };
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if parameter["in"] == "path" {
                path = path.replace(&format!("{{{name}}}"), &value);
            } else {
                query.append_pair(name, &value);
            }
        }
        let body = if method == Method::GET { Value::Null } else { Value::Object(body) };
        api.send(method, &format!("{path}?{}", query.finish()), Some(key), &body).await
    }
}

/// The tools that a response suggests.
pub(crate) fn tool_names(response: &Value) -> Vec<String> {
    let suggestions = response["_next"].as_array().into_iter().flatten();
    suggestions.map(|suggestion| suggestion["tool"].as_str().unwrap().to_owned()).collect()
}
