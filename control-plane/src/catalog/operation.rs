//! One operation: its place, its scopes, and the schemas of its input and its answer.

use http::Method;
use serde_json::{Map, Value, json};

use super::category::category_of;
use super::schema::{add_definitions, self_contained};

/// An operation of the API.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// Such as `forms.create`.
    pub(crate) id: String,
    pub(crate) method: Method,
    /// Path with `{id}` for parameters.
    pub(crate) path: String,
    pub(crate) summary: String,
    pub(crate) description: Option<String>,
    /// One of [`super::CATEGORIES`].
    pub(crate) category: &'static str,
    /// Scopes that the key needs; `None` for a public operation.
    pub(crate) scopes: Option<Vec<String>>,
    /// Whether it is an extension of the specification.
    pub(crate) is_extension: bool,
    pub(crate) is_deprecated: bool,
    /// Whether this router serves it; the edge and the collector serve the others.
    pub(crate) served_here: bool,
    pub(crate) parameters: Vec<Parameter>,
    /// JSON Schema of the body, with its `$defs` inside.
    pub(crate) request_body: Option<Value>,
    /// Whether a request without a body is refused.
    pub(crate) is_body_required: bool,
    /// JSON Schema of the success answer, with its `$defs` inside; `None` if it is not JSON.
    pub(crate) response: Option<Value>,
    /// The documented statuses of success; `response` belongs to the first.
    pub(crate) success_statuses: Vec<u16>,
    /// Path, query, body and headers as one object schema: the params of suggestions and the arguments of tools.
    pub(crate) input_schema: Value,
}

/// A parameter of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// Name among the arguments: `ifMatch` for the header `If-Match`, otherwise the same.
    pub(crate) argument: String,
    pub(crate) location: Location,
    pub(crate) is_required: bool,
    /// JSON Schema, with its `$defs` inside.
    pub(crate) schema: Value,
    pub(crate) description: Option<String>,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Path,
    Query,
    Header,
}

impl Location {
    /// The value of `in`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Path, Self::Query, Self::Header].into_iter().find(|location| location.as_str() == text)
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

impl Operation {
    /// Reads an operation of the document; `None` for other members of a path.
    pub(super) fn read(
        method: &str,
        path: &str,
        operation: &Value,
        components: &Map<String, Value>,
    ) -> Option<Self> {
        let id = text_of(&operation["operationId"])?;
        let body = operation.pointer("/requestBody/content/application~1json/schema");
        let listed = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let successes = successes_of(operation);
        let answer = successes.first().and_then(|(_, schema)| *schema);
        let is_body_required = operation.pointer("/requestBody/required") == Some(&json!(true));
        Some(Self {
            id,
            method: method.to_uppercase().parse().ok()?,
            path: path.to_owned(),
            summary: text_of(&operation["summary"]).unwrap_or_default(),
            description: text_of(&operation["description"]),
            category: category_of(path),
            scopes: scopes_of(operation),
            is_extension: operation.get("x-extension").is_some(),
            is_deprecated: operation["deprecated"] == json!(true),
            served_here: operation.get("x-served-by").is_none(),
            parameters: listed.iter().filter_map(|one| Parameter::read(one, components)).collect(),
            request_body: body.map(|schema| self_contained(schema, components)),
            is_body_required,
            response: answer.map(|schema| self_contained(schema, components)),
            success_statuses: successes.iter().map(|(status, _)| *status).collect(),
            input_schema: input_schema(listed, body, is_body_required, components),
        })
    }

    /// Returns whether the body takes members that its schema does not name, such as the answers to a form.
    pub(crate) fn has_open_body(&self) -> bool {
        self.request_body.as_ref().is_some_and(is_open)
    }
}

impl Parameter {
    fn read(parameter: &Value, components: &Map<String, Value>) -> Option<Self> {
        let mut schema = parameter.get("schema").cloned().unwrap_or_else(|| json!({}));
        add_definitions(&mut schema, components);
        let description = text_of(&parameter["description"]).or_else(|| text_of(&schema["description"]));
        let (name, location) = (text_of(&parameter["name"])?, Location::parse(parameter["in"].as_str()?)?);
        Some(Self {
            argument: argument_of(&name, location),
            name,
            location,
            is_required: parameter["required"] == json!(true),
            schema,
            description,
        })
    }
}

/// Returns the name of a parameter among the arguments, which are written as the members of bodies are.
fn argument_of(name: &str, location: Location) -> String {
    if location != Location::Header {
        return name.to_owned();
    }
    let mut words = name.split('-').map(str::to_lowercase);
    let mut argument = words.next().unwrap_or_default();
    for word in words {
        let mut chars = word.chars();
        argument.extend(chars.next().into_iter().flat_map(char::to_uppercase));
        argument.push_str(chars.as_str());
    }
    argument
}

/// Returns the scopes of all alternatives; `None` if one of them needs no key.
fn scopes_of(operation: &Value) -> Option<Vec<String>> {
    let alternatives: Vec<_> =
        operation["security"].as_array()?.iter().filter_map(Value::as_object).collect();
    if alternatives.iter().any(|alternative| alternative.is_empty()) {
        return None;
    }
    let scopes = alternatives.into_iter().flat_map(Map::values).filter_map(Value::as_array).flatten();
    Some(scopes.filter_map(text_of).collect())
}

/// Returns the statuses of success, each with the schema of its JSON answer. A redirect is a success as well.
fn successes_of(operation: &Value) -> Vec<(u16, Option<&Value>)> {
    let responses = operation["responses"].as_object().into_iter().flatten();
    let by_status = responses.filter_map(|(status, response)| Some((status.parse::<u16>().ok()?, response)));
    let mut successes: Vec<_> = by_status
        .filter(|(status, _)| (200..400).contains(status))
        .map(|(status, response)| (status, response.pointer("/content/application~1json/schema")))
        .collect();
    successes.sort_by_key(|(status, _)| *status);
    successes
}

/// Returns whether an object of this schema may have members that it does not name.
fn is_open(schema: &Value) -> bool {
    schema.get("additionalProperties") != Some(&json!(false))
}

/// Joins path, query, body and headers to one object. Beside a body that takes any member, a header has no name of its own.
fn input_schema(
    parameters: &[Value],
    body: Option<&Value>,
    is_body_required: bool,
    components: &Map<String, Value>,
) -> Value {
    let (mut properties, mut required, mut others) = (Map::new(), Vec::new(), json!(false));
    let (headers, in_url): (Vec<_>, Vec<_>) =
        parameters.iter().partition(|parameter| parameter["in"] == "header");
    for parameter in in_url {
        let Some(name) = parameter["name"].as_str() else { continue };
        properties.insert(name.to_owned(), described(parameter));
        required.extend((parameter["required"] == json!(true)).then(|| json!(name)));
    }
    if let Some(body) = body {
        let target = body["$ref"].as_str().and_then(|path| components.get(path.rsplit('/').next()?));
        let body = target.unwrap_or(body);
        // A parameter is described once, also if the body has a member of the same name.
        for (name, schema) in body["properties"].as_object().into_iter().flatten() {
            properties.entry(name.clone()).or_insert_with(|| schema.clone());
        }
        if is_body_required {
            let members = body["required"].as_array().into_iter().flatten();
            required.extend(members.filter(|name| !required.contains(name)).cloned().collect::<Vec<_>>());
        }
        if is_open(body) {
            others = body.get("additionalProperties").cloned().unwrap_or(json!(true));
        }
    }
    for parameter in headers.into_iter().filter(|_| others == json!(false)) {
        let name = parameter["name"].as_str().unwrap_or_default();
        properties.entry(argument_of(name, Location::Header)).or_insert_with(|| described(parameter));
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema["additionalProperties"] = others;
    add_definitions(&mut schema, components);
    schema
}

/// Returns the schema of a parameter with its description.
fn described(parameter: &Value) -> Value {
    let mut schema = parameter.get("schema").cloned().unwrap_or_else(|| json!({}));
    if let (Value::Object(schema), Some(description)) = (&mut schema, parameter.get("description")) {
        schema.entry("description").or_insert_with(|| description.clone());
    }
    schema
}
