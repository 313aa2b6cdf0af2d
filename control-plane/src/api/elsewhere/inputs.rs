//! What the endpoints of other routers take.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, ReferenceOr, RequestBody, SchemaObject, SecurityRequirement};
use domain::answers::Answers;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value};

/// Any key of the account, whatever its scopes.
pub(super) struct AnyKey;

impl OperationInput for AnyKey {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        operation.security.push(key_with(&[]));
    }
}

/// A key may be sent, and is not needed.
pub(super) struct OptionalKey;

impl OperationInput for OptionalKey {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        operation.security.extend([SecurityRequirement::new(), key_with(&["submissions:read"])]);
    }
}

fn key_with(scopes: &[&str]) -> SecurityRequirement {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    [("apiKey".to_owned(), scopes)].into_iter().collect()
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
pub(super) struct SignInQuery {
    /// Path of this host to return to afterwards. Default: `/account`.
    return_to: Option<String>,
    /// Whether the provider must ask for the credentials again, for calls that need a recent sign-in.
    again: Option<bool>,
}

/// Answers as JSON, as an HTML form sends them, or with files.
pub(super) struct SubmissionBody;

impl OperationInput for SubmissionBody {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        let with_files = json_schema!({
            "type": "object",
            "description": "Texts and files by field name.",
            "additionalProperties": {"type": "string", "format": "binary"},
        });
        let texts = json_schema!({
            "type": "object",
            "description": "Answers by field name; a field with several answers is repeated.",
            "additionalProperties": {"type": "string"},
        });
        let schemas = [
            ("application/json", ctx.schema.subschema_for::<SubmitFormRequest>()),
            ("application/x-www-form-urlencoded", texts),
            ("multipart/form-data", with_files),
        ];
        let content =
            schemas.map(|(kind, schema)| (kind.to_owned(), media_type(schema))).into_iter().collect();
        let body = RequestBody { content, required: true, ..RequestBody::default() };
        operation.request_body = Some(ReferenceOr::Item(body));
    }
}

pub(super) fn media_type(json_schema: Schema) -> MediaType {
    let schema = SchemaObject { json_schema, example: None, external_docs: None };
    MediaType { schema: Some(schema), ..MediaType::default() }
}

/// Answers by field name: texts, numbers, booleans, or a list for a field with several. A file is the `objectId` of its
/// upload.
#[derive(JsonSchema)]
struct SubmitFormRequest(#[expect(dead_code, reason = "only described")] Answers);

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only described")]
pub(super) struct FormUploadRequest {
    /// Name of the form's file field.
    field: String,
    /// File name without folders.
    filename: String,
    /// Media type of the file; by its name if absent.
    content_type: Option<String>,
    /// Size in bytes.
    size_bytes: i64,
}

/// An event of a visitor. Members that are not named here are ignored.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
pub(super) struct EventRequest {
    /// Public token of the analytics site.
    site_token: String,
    /// `page_view`, or the name of a custom event, at most 64 characters.
    name: String,
    /// URL of the page.
    url: String,
    /// URL of the page that led here.
    referrer: Option<String>,
    /// Title of the page.
    title: Option<String>,
    /// Width of the screen in pixels.
    screen_width: Option<f64>,
    /// Custom properties, at most 20.
    props: Option<Map<String, Value>>,
    /// Milliseconds for which the page was visible since the last report.
    engagement_ms: Option<f64>,
    /// Deepest scroll position in percent of the page.
    scroll_depth: Option<f64>,
    /// Whether the part of the URL after `#` distinguishes pages.
    hash_routing: Option<bool>,
}

/// A JSON-RPC message of the Model Context Protocol.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
pub(super) struct McpRequest {
    /// Always `2.0`.
    jsonrpc: String,
    /// Text or number that the response repeats; absent in a notification.
    id: Option<Value>,
    /// Such as `tools/list` or `tools/call`.
    method: String,
    /// Parameters of the method.
    params: Option<Map<String, Value>>,
}
