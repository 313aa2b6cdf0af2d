//! What the endpoints of other routers answer.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{
    Header, HeaderStyle, Operation, ParameterSchemaOrContent, ReferenceOr, Response, SchemaObject,
};
use chrono::{DateTime, Utc};
use domain::results::FieldResults;
use schemars::{JsonSchema, json_schema};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::inputs::media_type;

type Responses = Vec<(Option<u16>, Response)>;

fn with_body<T: JsonSchema>(ctx: &mut GenContext, description: &str) -> Response {
    let body = media_type(ctx.schema.subschema_for::<T>());
    let content = [("application/json".to_owned(), body)].into_iter().collect();
    Response { content, ..without_body(description) }
}

fn without_body(description: &str) -> Response {
    Response { description: description.to_owned(), ..Response::default() }
}

fn redirect(description: &str) -> Response {
    let schema = json_schema!({"type": "string", "format": "uri"});
    let location = Header {
        description: Some("Where to go on.".to_owned()),
        style: HeaderStyle::Simple,
        required: true,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(SchemaObject {
            json_schema: schema,
            external_docs: None,
            example: None,
        }),
        example: None,
        examples: Default::default(),
        extensions: Default::default(),
    };
    let headers = [("Location".to_owned(), ReferenceOr::Item(location))].into_iter().collect();
    Response { headers, ..without_body(description) }
}

/// A 201 response without `_meta`.
pub(super) struct CreatedBody<T>(PhantomData<T>);

impl<T: JsonSchema> OperationOutput for CreatedBody<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, _: &mut Operation) -> Responses {
        vec![(Some(201), with_body::<T>(ctx, "Created."))]
    }
}

/// A 200 response with a JSON-RPC message, or 202 for a notification.
pub(super) struct AcceptedOr<T>(PhantomData<T>);

impl<T: JsonSchema> OperationOutput for AcceptedOr<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, _: &mut Operation) -> Responses {
        let accepted = without_body("The message needs no answer.");
        vec![(Some(200), with_body::<T>(ctx, "The answer.")), (Some(202), accepted)]
    }
}

/// The public results of a form.
pub(super) struct FormResults;

impl OperationOutput for FormResults {
    type Inner = Self;

    fn inferred_responses(ctx: &mut GenContext, _: &mut Operation) -> Responses {
        vec![(Some(200), with_body::<PublicResultsResponse>(ctx, "Done."))]
    }
}

/// A 302 response.
pub(super) struct Found;

impl OperationOutput for Found {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        vec![(Some(302), redirect("The file is at `Location`."))]
    }
}

/// A 303 response.
pub(super) struct SeeOther;

impl OperationOutput for SeeOther {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        vec![(Some(303), redirect("The provider asks for consent."))]
    }
}

/// A 204 response.
pub(super) struct Nothing;

impl OperationOutput for Nothing {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        vec![(Some(204), without_body("The event was taken."))]
    }
}

/// The receipt of a submission.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
pub(super) struct SubmissionReceiptResponse {
    /// Always true.
    success: bool,
    /// Id of the submission.
    submission_id: Uuid,
    /// The form's message to its visitors.
    message: String,
    /// Where the form sends its visitors; null for nowhere.
    redirect_url: Option<String>,
    created_at: DateTime<Utc>,
    /// Names of answers that were dropped, because the form has no such fields.
    ignored_fields: Option<Vec<String>>,
}

/// Where to upload a file.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
pub(super) struct FormUploadResponse {
    /// The answer to submit for the file.
    object_id: Uuid,
    /// Always `PUT`.
    method: String,
    /// Send the bytes here, once, before `expiresAt`. The URL is the credential.
    upload_url: String,
    /// Headers to send with the upload.
    upload_headers: BTreeMap<String, String>,
    /// The upload URL expires at this time.
    expires_at: DateTime<Utc>,
    /// Maximum size of a file of this field.
    max_size_bytes: i64,
}

/// Results of a form, for everyone.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
struct PublicResultsResponse {
    /// The form's id.
    form_id: Uuid,
    /// Display name of the form.
    name: String,
    /// Number of submissions, without spam.
    submissions: i64,
    /// Results of each choice, checkbox and number field, in the form's order.
    fields: Vec<FieldResults>,
}

/// A JSON-RPC response of the Model Context Protocol.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
pub(super) struct McpResponse {
    /// Always `2.0`.
    jsonrpc: String,
    /// That of the request.
    id: Option<Value>,
    /// Present if the method succeeded.
    result: Option<Map<String, Value>>,
    /// Present if it failed: `code`, `message` and `data`.
    error: Option<Map<String, Value>>,
}
