//! The structured description of the API: `GET /api/schema`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::example::{Example, operations_of};
use super::{curl, facts};
use crate::catalog::{CATEGORIES, Catalog, Operation, Parameter};

/// A JSON Schema.
type JsonObject = Map<String, Value>;

/// The structured description of the API, or of one category.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SchemaResponse {
    /// URL that paths begin with.
    base_url: String,
    /// How to authenticate, and where a key comes from.
    authentication: &'static str,
    /// Where else the API is described: `openapi`, `docs`, `guide` and `mcp`.
    links: BTreeMap<&'static str, String>,
    /// All categories, with the number of their endpoints.
    categories: Vec<SchemaCategory>,
    /// Problems that every endpoint may answer.
    common_errors: Vec<SchemaProblem>,
    /// The endpoints, by category.
    endpoints: Vec<SchemaEndpoint>,
    /// Endpoints beyond the specification; no category counts them.
    extensions: Vec<SchemaEndpoint>,
    /// What the schemas refer to, by name.
    #[serde(rename = "$defs")]
    definitions: BTreeMap<String, Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SchemaCategory {
    /// Name of the category, for `?category=`.
    name: &'static str,
    /// Number of its endpoints, without extensions.
    count: usize,
    /// Number of its extensions.
    extensions: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SchemaEndpoint {
    /// Name of the operation, as in `_next[].tool` and in MCP.
    operation: String,
    /// HTTP method.
    method: String,
    /// Path with `{name}` for its parameters.
    path: String,
    /// Category of the endpoint.
    category: &'static str,
    /// What the endpoint does, in a line.
    summary: String,
    /// Details; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether a caller needs a key: `none`, `key` or `key|session`.
    auth: &'static str,
    /// Scopes that the key needs.
    scopes: Vec<String>,
    /// Whether another endpoint replaces it.
    deprecated: bool,
    /// Parameters in the path, the query and the headers.
    parameters: Vec<SchemaParameter>,
    /// JSON Schema of the body; null if the endpoint takes none.
    #[schemars(with = "Option<JsonObject>")]
    request: Option<Value>,
    /// Statuses of success; `response` describes the answer with the first.
    statuses: Vec<u16>,
    /// JSON Schema of the answer; null if it is not JSON.
    #[schemars(with = "Option<JsonObject>")]
    response: Option<Value>,
    /// Problems of this endpoint, beside `commonErrors`.
    errors: Vec<SchemaProblem>,
    /// Limits, as sentences.
    limits: Vec<String>,
    /// A call that works; null if there is none.
    example: Option<SchemaExample>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SchemaParameter {
    /// Name of the parameter.
    name: String,
    /// `path`, `query` or `header`.
    #[serde(rename = "in")]
    location: &'static str,
    /// Whether a request without it is rejected.
    required: bool,
    /// JSON Schema of the value.
    #[schemars(with = "JsonObject")]
    schema: Value,
    /// Meaning of the parameter; left out if its name says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SchemaProblem {
    /// HTTP status.
    status: u16,
    /// Value of `code` in the problem.
    code: &'static str,
    /// Meaning of the code.
    title: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SchemaExample {
    /// Place in the order in which all examples succeed on a fresh account of the plan `pro`.
    step: usize,
    /// Operations with examples to repeat before this one.
    first: Vec<String>,
    /// Arguments of the path, the query and the body. Values that begin with `$` are placeholders.
    params: Map<String, Value>,
    /// Source of each placeholder in `params`.
    placeholders: BTreeMap<String, String>,
    /// Placeholders that the answer fills, with JSON pointers to their values.
    keep: BTreeMap<String, String>,
    /// Bytes in base64 to send to the answer's `uploadUrl` with its `uploadHeaders`; left out for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<String>,
    /// The call as a command; placeholders are variables of the shell.
    curl: String,
}

const AUTHENTICATION: &str = "Send `Authorization: Bearer <key>`. POST /api/trial needs no credentials and returns a key at \
    once; its `claimUrl` keeps the account for good. A signed-in session is accepted wherever `auth` is `key|session`. \
    Keys are secret: never put one into a page.";

impl SchemaResponse {
    /// Describes a category; the whole API for the empty text.
    pub(super) fn new(catalog: &Catalog, examples: &[Example], base_url: &str, category: &str) -> Self {
        let mut definitions = BTreeMap::new();
        let (mut endpoints, mut extensions) = (Vec::new(), Vec::new());
        for name in CATEGORIES.into_iter().filter(|name| category.is_empty() || *name == category) {
            for (operation, example) in operations_of(catalog, examples, name) {
                let endpoint = endpoint(operation, example, base_url, &mut definitions);
                if operation.is_extension { &mut extensions } else { &mut endpoints }.push(endpoint);
            }
        }
        let at = |path: &str| format!("{base_url}{path}");
        let links = [
            ("openapi", at("/api/openapi.json")),
            ("docs", at("/docs")),
            ("guide", at("/llms.txt")),
            ("mcp", at("/api/mcp")),
        ];
        Self {
            base_url: base_url.to_owned(),
            authentication: AUTHENTICATION,
            links: links.into(),
            categories: CATEGORIES.into_iter().map(|name| counted(catalog, name)).collect(),
            common_errors: facts::COMMON_ERRORS.into_iter().map(problem).collect(),
            endpoints,
            extensions,
            definitions,
        }
    }
}

fn counted(catalog: &Catalog, name: &'static str) -> SchemaCategory {
    let (extensions, specified): (Vec<_>, Vec<_>) =
        catalog.operations_of(name).partition(|operation| operation.is_extension);
    SchemaCategory { name, count: specified.len(), extensions: extensions.len() }
}

fn endpoint(
    operation: &Operation,
    example: Option<&Example>,
    base_url: &str,
    definitions: &mut BTreeMap<String, Map<String, Value>>,
) -> SchemaEndpoint {
    let mut shared = |schema: &Option<Value>| schema.clone().map(|schema| share(schema, definitions));
    SchemaEndpoint {
        operation: operation.id.clone(),
        method: operation.method.to_string(),
        path: operation.path.clone(),
        category: operation.category,
        summary: operation.summary.clone(),
        description: operation.description.clone(),
        auth: auth_of(operation),
        scopes: operation.scopes.clone().unwrap_or_default(),
        deprecated: operation.is_deprecated,
        request: shared(&operation.request_body),
        response: shared(&operation.response),
        parameters: operation.parameters.iter().map(|one| parameter(one, definitions)).collect(),
        statuses: operation.success_statuses.clone(),
        errors: facts::errors_of(operation).into_iter().map(problem).collect(),
        limits: facts::limits_of(operation),
        example: example.map(|example| SchemaExample {
            step: example.step,
            first: example.first.clone(),
            params: example.params.clone(),
            placeholders: example.placeholders.clone(),
            keep: example.keep.clone(),
            upload: example.upload.clone(),
            curl: curl::command(operation, example, base_url),
        }),
    }
}

/// Returns the credentials that an operation takes.
pub(super) fn auth_of(operation: &Operation) -> &'static str {
    match &operation.scopes {
        None => "none",
        Some(_) if operation.category == "mcp" => "key",
        Some(_) => "key|session",
    }
}

fn parameter(
    parameter: &Parameter,
    definitions: &mut BTreeMap<String, Map<String, Value>>,
) -> SchemaParameter {
    SchemaParameter {
        name: parameter.name.clone(),
        location: parameter.location.as_str(),
        required: parameter.is_required,
        schema: share(parameter.schema.clone(), definitions),
        description: parameter.description.clone(),
    }
}

fn problem(code: web::Code) -> SchemaProblem {
    SchemaProblem { status: code.status().as_u16(), code: code.as_str(), title: code.title() }
}

/// Moves a schema's `$defs` to those of the whole answer: its references, which begin at the root, stay as they are.
fn share(mut schema: Value, definitions: &mut BTreeMap<String, Map<String, Value>>) -> Value {
    let own = schema.as_object_mut().and_then(|schema| schema.shift_remove("$defs")).unwrap_or(json!({}));
    if let Value::Object(own) = own {
        let named = own.into_iter().filter_map(|(name, schema)| match schema {
            Value::Object(schema) => Some((name, schema)),
            _ => None,
        });
        definitions.extend(named);
    }
    schema
}
