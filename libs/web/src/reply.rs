//! Formats of responses: the data's fields at the top level, with `_meta` and `_next` beside them.

use std::borrow::Cow;
use std::marker::PhantomData;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ResponseDoc};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use crate::{ListResponse, Meta, PageInfo};

/// A suggested next call, with its parameters.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NextStep {
    /// Purpose of the call.
    pub intent: String,
    /// Operation id of the call.
    pub tool: String,
    /// Parameters of the call, as far as they are known.
    pub params: Value,
    /// Explanation for the user.
    pub hint: String,
}

impl NextStep {
    /// Creates a suggestion.
    pub fn new(intent: &str, tool: &str, params: Value, hint: &str) -> Self {
        Self { intent: intent.to_owned(), tool: tool.to_owned(), params, hint: hint.to_owned() }
    }
}

/// The response to a deletion.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Deletion {
    /// Always true.
    deleted: bool,
}

impl Deletion {
    /// Creates the response.
    pub fn now() -> Self {
        Self { deleted: true }
    }
}

/// A 200 response.
#[derive(Debug)]
pub struct Reply<T> {
    body: Envelope<T>,
    next_cursor: Option<String>,
}

/// A 200 response if the operation is done, 202 if it is accepted and still pending.
#[derive(Debug)]
pub enum DoneOrAccepted<T> {
    Done(Reply<T>),
    Accepted(Reply<T>),
}

/// A 201 response if the resource is new; 200 if an existing one was changed, or none was created.
#[derive(Debug)]
pub enum CreatedOrChanged<T, U = T> {
    Created(Created<T>),
    Changed(Reply<U>),
}

/// The cursor of the next page; the frame, which knows the request's URL, turns it into a `Link` header.
#[derive(Debug, Clone)]
pub(crate) struct NextCursor(pub(crate) String);

/// A 201 response, with suggested next calls.
#[derive(Debug)]
pub struct Created<T>(pub Envelope<T>);

/// The whole body of a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Envelope<T> {
    #[serde(flatten)]
    pub data: T,
    /// Plan and usage; absent if the call is not authenticated.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Suggested next calls.
    #[serde(rename = "_next", skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub next: Vec<NextStep>,
}

impl<T> Envelope<T> {
    /// Creates a body of `data` and `meta`.
    pub fn new(data: T, meta: Option<Meta>) -> Self {
        Self { data, meta, next: Vec::new() }
    }
}

impl<T> Reply<T> {
    /// Creates a 200 response.
    pub fn new(body: Envelope<T>) -> Self {
        Self { body, next_cursor: None }
    }

    /// Adds a suggested next call.
    #[must_use]
    pub fn next(mut self, intent: &str, tool: &str, params: Value, hint: &str) -> Self {
        self.body.next.push(NextStep::new(intent, tool, params, hint));
        self
    }

    /// Adds suggested next calls.
    #[must_use]
    pub fn with_next(mut self, steps: Vec<NextStep>) -> Self {
        self.body.next.extend(steps);
        self
    }
}

impl<T> Reply<T> {
    /// Adds a `Link` header with the URL of the page after `page`.
    #[must_use]
    pub fn linked(mut self, page: &PageInfo) -> Self {
        self.next_cursor.clone_from(&page.next_cursor);
        self
    }
}

impl<T: ListResponse> Reply<T> {
    /// Adds a `Link` header with the URL of the next page.
    #[must_use]
    pub fn paginated(mut self) -> Self {
        self.next_cursor.clone_from(&self.body.data.page().next_cursor);
        self
    }
}

impl<T> Created<T> {
    /// Adds a suggested next call.
    #[must_use]
    pub fn next(mut self, intent: &str, tool: &str, params: Value, hint: &str) -> Self {
        self.0.next.push(NextStep::new(intent, tool, params, hint));
        self
    }

    /// Adds suggested next calls.
    #[must_use]
    pub fn with_next(mut self, steps: Vec<NextStep>) -> Self {
        self.0.next.extend(steps);
        self
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn respond<T: Serialize>(status: StatusCode, body: &Envelope<T>) -> Response {
    // Most responses fit, so that serialization does not reallocate.
    let mut text = Vec::with_capacity(2_048);
    match serde_json::to_writer(&mut text, body) {
        Ok(()) => {
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, JSON);
            response
        }
        Err(error) => {
            tracing::error!(%error, "a response could not be serialized");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let mut response = respond(StatusCode::OK, &self.body);
        if let Some(cursor) = self.next_cursor {
            response.extensions_mut().insert(NextCursor(cursor));
        }
        response
    }
}

impl<T: Serialize> IntoResponse for DoneOrAccepted<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Done(reply) => reply.into_response(),
            Self::Accepted(reply) => respond(StatusCode::ACCEPTED, &reply.body),
        }
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        respond(StatusCode::CREATED, &self.0)
    }
}

impl<T: Serialize, U: Serialize> IntoResponse for CreatedOrChanged<T, U> {
    fn into_response(self) -> Response {
        match self {
            Self::Created(created) => created.into_response(),
            Self::Changed(reply) => reply.into_response(),
        }
    }
}

/// The schema of a response body, named after its data: `PageView` gives `PageResponse`, and `PageListResponse` stays.
struct ResponseSchema<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for ResponseSchema<T> {
    fn schema_name() -> Cow<'static, str> {
        let data = T::schema_name();
        let noun = data.strip_suffix("View").or(data.strip_suffix("Response")).unwrap_or(&data);
        format!("{noun}Response").into()
    }

    fn schema_id() -> Cow<'static, str> {
        Envelope::<T>::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Envelope::<T>::json_schema(generator)
    }
}

fn describe<T: JsonSchema>(
    status: u16,
    ctx: &mut GenContext,
    of: &mut Operation,
) -> Vec<(Option<u16>, ResponseDoc)> {
    #[expect(clippy::disallowed_types, reason = "only its description is used")]
    let doc = axum::Json::<ResponseSchema<T>>::operation_response(ctx, of);
    let description = match status {
        201 => "Created.",
        202 => "Accepted; the work goes on.",
        _ => "Done.",
    };
    doc.into_iter()
        .map(|doc| (Some(status), ResponseDoc { description: description.to_owned(), ..doc }))
        .collect()
}

impl<T: JsonSchema> OperationOutput for Reply<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        describe::<T>(200, ctx, of)
    }
}

impl<T: JsonSchema> OperationOutput for DoneOrAccepted<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        [describe::<T>(200, ctx, of), describe::<T>(202, ctx, of)].concat()
    }
}

impl<T: JsonSchema> OperationOutput for Created<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        describe::<T>(201, ctx, of)
    }
}

impl<T: JsonSchema, U: JsonSchema> OperationOutput for CreatedOrChanged<T, U> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        [describe::<U>(200, ctx, of), describe::<T>(201, ctx, of)].concat()
    }
}
