//! The shape of an authenticated answer: the data's fields flat, `_meta` and `_next` beside them.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ResponseDoc};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::PageInfo;

/// Plan and usage, on every authenticated answer. Usage may be a second old.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// `free`, `pro` or `scale`.
    pub plan: &'static str,
    /// Whether the account belongs to somebody who signed in.
    pub claimed: bool,
    /// How much of the plan is used.
    pub usage: Usage,
    /// Features the plan leaves out.
    pub restrictions: &'static [&'static str],
    /// The request's id, also in `X-Request-Id`.
    pub request_id: String,
}

/// How much of the plan is used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Forms, pages, analytics sites and automations together.
    pub projects: UsageCounter,
    /// Webhooks.
    pub webhooks: UsageCounter,
    /// Custom domains.
    pub domains: UsageCounter,
    /// Subdomains.
    pub subdomains: UsageCounter,
    /// Bytes stored.
    pub storage_bytes: UsageCounter,
    /// Analytics events of this calendar month (UTC).
    pub events: UsageCounter,
    /// Automation runs of this calendar month (UTC).
    pub automation_runs: UsageCounter,
}

/// One counter against its limit.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct UsageCounter {
    /// How much there is.
    pub used: i64,
    /// How much there may be; -1 for unlimited.
    pub limit: i64,
}

/// What the caller may want to do next, ready to be called.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NextStep {
    /// What it is for.
    pub intent: String,
    /// The operation's id.
    pub tool: String,
    /// Parameters filled in from what is known.
    pub params: Value,
    /// A sentence for people.
    pub hint: String,
}

/// The answer to a deletion.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Deleted {
    /// Always true.
    deleted: bool,
}

impl Deleted {
    /// It is gone.
    pub fn now() -> Self {
        Self { deleted: true }
    }
}

/// 200 with `data`.
#[derive(Debug)]
pub struct Reply<T> {
    body: Envelope<T>,
    next_cursor: Option<String>,
}

/// 200 with `data` where it is done, 202 where it has only begun.
#[derive(Debug)]
pub enum DoneOrAccepted<T> {
    /// It is done.
    Done(Reply<T>),
    /// It has begun.
    Accepted(Reply<T>),
}

/// 201 with `data` where it is new, 200 where it was there and is other now.
#[derive(Debug)]
pub enum CreatedOrChanged<T> {
    /// It is new.
    Created(Created<T>),
    /// It was there.
    Changed(Reply<T>),
}

/// Where a listing goes on; the frame, which knows the request's address, makes a header of it.
#[derive(Debug, Clone)]
pub(crate) struct NextCursor(pub(crate) String);

/// 201 with `data` and what can follow.
#[derive(Debug)]
pub struct Created<T>(pub Envelope<T>);

/// An answer's whole body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Envelope<T> {
    /// What was asked for.
    #[serde(flatten)]
    pub data: T,
    /// Plan and usage; absent where nobody is authenticated.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// What can follow.
    #[serde(rename = "_next", skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub next: Vec<NextStep>,
}

impl<T> Envelope<T> {
    /// `data` with `meta` beside it.
    pub fn new(data: T, meta: Option<Meta>) -> Self {
        Self { data, meta, next: Vec::new() }
    }
}

impl<T> Reply<T> {
    /// 200 with `body`.
    pub fn new(body: Envelope<T>) -> Self {
        Self { body, next_cursor: None }
    }

    /// It is one part of a listing: a `Link` header says where the next one is.
    #[must_use]
    pub fn part(mut self, listed: PageInfo) -> Self {
        self.next_cursor = listed.next_cursor;
        self
    }
}

impl<T> Created<T> {
    /// Adds a suggestion.
    #[must_use]
    pub fn next(mut self, intent: &str, tool: &str, params: Value, hint: &str) -> Self {
        let (intent, tool, hint) = (intent.to_owned(), tool.to_owned(), hint.to_owned());
        self.0.next.push(NextStep { intent, tool, params, hint });
        self
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn respond<T: Serialize>(status: StatusCode, body: &Envelope<T>) -> Response {
    // Most answers fit, so that writing one does not move it about.
    let mut text = Vec::with_capacity(2_048);
    match serde_json::to_writer(&mut text, body) {
        Ok(()) => {
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, JSON);
            response
        }
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
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

impl<T: Serialize> IntoResponse for CreatedOrChanged<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Created(created) => created.into_response(),
            Self::Changed(reply) => reply.into_response(),
        }
    }
}

fn describe<T: JsonSchema>(
    status: u16,
    ctx: &mut GenContext,
    of: &mut Operation,
) -> Vec<(Option<u16>, ResponseDoc)> {
    #[expect(clippy::disallowed_types, reason = "only its description is borrowed")]
    let doc = axum::Json::<Envelope<T>>::operation_response(ctx, of);
    doc.into_iter().map(|doc| (Some(status), doc)).collect()
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

impl<T: JsonSchema> OperationOutput for CreatedOrChanged<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        [describe::<T>(200, ctx, of), describe::<T>(201, ctx, of)].concat()
    }
}
