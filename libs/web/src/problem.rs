//! Errors as RFC 9457 problem documents, with a stable code, a detail and a hint.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ResponseDoc, SchemaObject};
use axum::response::{IntoResponse, Response};
use domain::{FIELD_ERRORS_MAX, FieldError, Transient};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

macro_rules! codes {
    ($($code:ident = $word:literal, $status:ident, $title:literal;)+) => {
        /// The code of a problem. Codes are permanent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Code { $(#[doc = $title] #[serde(rename = $word)] $code),+ }

        impl Code {
            /// Returns the value of `code` in the body.
            pub fn as_str(self) -> &'static str { match self { $(Self::$code => $word),+ } }
            /// Returns the HTTP status.
            pub fn status(self) -> StatusCode { match self { $(Self::$code => StatusCode::$status),+ } }
            /// Returns the title, which is the same for every problem with this code.
            pub fn title(self) -> &'static str { match self { $(Self::$code => $title),+ } }
        }
    };
}

codes! {
    ValidationFailed = "validation_failed", BAD_REQUEST, "Some fields are invalid";
    MalformedJson = "malformed_json", BAD_REQUEST, "The body is not JSON";
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "No valid API key";
    KeyExpired = "key_expired", UNAUTHORIZED, "The API key has expired";
    InsufficientScope = "insufficient_scope", FORBIDDEN, "The API key lacks a scope";
    PlanRestricted = "plan_restricted", FORBIDDEN, "The plan does not include this";
    QuotaExceeded = "quota_exceeded", FORBIDDEN, "The plan's limit is reached";
    Suspended = "suspended", FORBIDDEN, "The account is suspended";
    FolderForbidden = "folder_forbidden", FORBIDDEN, "The API key is restricted to another folder";
    Forbidden = "forbidden", FORBIDDEN, "The address does not allow this";
    SignInAgain = "sign_in_again", FORBIDDEN, "A new sign-in is required";
    ForeignOrigin = "foreign_origin", FORBIDDEN, "The request comes from another site";
    NotFound = "not_found", NOT_FOUND, "Not found";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    SlugTaken = "slug_taken", CONFLICT, "The slug is already used";
    DuplicateSubmission = "duplicate_submission", CONFLICT, "The form already has this submission";
    StaleWrite = "stale_write", CONFLICT, "The resource was changed in the meantime";
    Conflict = "conflict", CONFLICT, "Conflict";
    IdempotencyMismatch = "idempotency_mismatch", CONFLICT, "The Idempotency-Key was used for another request";
    FormClosed = "form_closed", GONE, "The form is closed";
    FormFull = "form_full", GONE, "The form is full";
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    LoopDetected = "loop_detected", LOOP_DETECTED, "A chain of deliveries calls itself";
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "A dependency is unavailable";
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
}

/// An error response. [`crate::frame`] renders it and adds the request id and `_meta`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Problem {
    code: Code,
    /// Replaces the status of the code. The serialized name is that of stored idempotent responses.
    #[serde(default, rename = "answered_with")]
    status_override: Option<u16>,
    detail: String,
    extra: Map<String, Value>,
    retry_after_seconds: Option<u64>,
    /// Not stored: a repeated request is authenticated anew.
    #[serde(skip)]
    challenge: Option<Challenge>,
}

/// The value of `WWW-Authenticate` (RFC 6750, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// The request has no API key.
    Bearer,
    /// The request has an API key that is not valid.
    InvalidToken,
}

impl Challenge {
    fn value(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Bearer => "Bearer realm=\"api\"",
            Self::InvalidToken => "Bearer realm=\"api\", error=\"invalid_token\"",
        })
    }
}

impl Problem {
    /// Creates a problem; `detail` says what is wrong, where, and what would be right.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            code,
            status_override: None,
            detail,
            extra: Map::new(),
            retry_after_seconds: None,
            challenge: None,
        }
    }

    /// Some fields are invalid. The body lists the first [`FIELD_ERRORS_MAX`].
    pub fn validation(mut errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] => one.message.clone(),
            [first, rest @ ..] => format!("{} (and {} more; see fieldErrors)", first.message, rest.len()),
            [] => "the request is invalid".to_owned(),
        };
        errors.truncate(FIELD_ERRORS_MAX);
        Self::new(Code::ValidationFailed, detail).with("fieldErrors", json!(errors))
    }

    /// The body is not JSON; `detail` says where and why.
    pub fn malformed_json(detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let error = FieldError::new("body", "json", &detail);
        Self::new(Code::MalformedJson, detail).with("fieldErrors", json!([error]))
    }

    /// The resource does not exist, or belongs to another account; the response is the same.
    pub fn not_found(noun: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {noun} in this account"))
    }

    /// A dependency is unavailable and nothing was changed, so the caller may retry.
    pub fn nothing_changed() -> Self {
        let detail = "a part of the service is unavailable; nothing was changed";
        Self::new(Code::Unavailable, detail).retry_after(2)
    }

    /// A dependency failed before it responded: the request may have been carried out or not, so the caller must
    /// check before a retry.
    pub fn outcome_unknown() -> Self {
        let detail = "a part of the service failed before it responded, so it is not known whether the request was \
                      carried out; check before you send it again";
        Self::new(Code::Unavailable, detail)
    }

    /// The problem of a failed commit. The transaction may have been committed all the same, so a transient error is
    /// [`Self::outcome_unknown`].
    pub fn commit_failed<E: Transient>(error: E) -> Self {
        if !error.is_transient() {
            return Self::from(error);
        }
        tracing::warn!(%error, "a dependency failed during a commit");
        Self::outcome_unknown()
    }

    /// Adds a member to the body.
    #[must_use]
    pub fn with(mut self, member: &str, value: Value) -> Self {
        self.extra.insert(member.to_owned(), value);
        self
    }

    /// Adds a hint on how to resolve the problem.
    #[must_use]
    pub fn hint(self, hint: &str) -> Self {
        self.with("hint", json!(hint))
    }

    /// Adds a `Retry-After` header, and the time to the detail if a rate limit is the reason.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        if self.code == Code::RateLimited {
            self.detail = format!("{}; try again in {}", self.detail, spoken(seconds));
        }
        self
    }

    /// Adds a `WWW-Authenticate` header: how this address wants to be called.
    #[must_use]
    pub fn challenge(mut self, challenge: Challenge) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// Returns whether the status is 4xx.
    pub fn is_client_error(&self) -> bool {
        self.status().is_client_error()
    }

    /// Replaces the status of the code, where a visitor gets another one than the owner.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status_override = Some(status.as_u16());
        self
    }

    /// Returns the HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        let replaced = self.status_override.and_then(|status| StatusCode::from_u16(status).ok());
        replaced.unwrap_or(self.code.status())
    }

    /// Returns the problem's code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the detail of this occurrence.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Renders the response. `extra` are members that only the frame knows.
    pub(crate) fn render(&self, extra: impl IntoIterator<Item = (&'static str, Value)>) -> Response {
        let mut body = json!({
            "type": format!("urn:web-runtime:problem:{}", self.code.as_str()),
            "title": self.code.title(),
            "status": self.status().as_u16(),
            "code": self.code.as_str(),
            "detail": self.detail,
            "error": self.detail,
        });
        if let Value::Object(members) = &mut body {
            members.extend(self.extra.clone());
            if let Some(seconds) = self.retry_after_seconds {
                members.insert("retryAfterSeconds".to_owned(), seconds.into());
            }
            members.extend(extra.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        let headers = [("content-type", "application/problem+json")];
        let mut response = (self.status(), headers, body.to_string()).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert("retry-after", seconds.into());
        }
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.value());
        }
        response
    }
}

/// Returns a time in words, rounded up: `1 second`, `12 minutes`, `3 hours`.
fn spoken(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds.max(1), "second"),
        120..7_200 => (seconds.div_ceil(60), "minute"),
        _ => (seconds.div_ceil(3_600), "hour"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

impl<E: Transient> From<E> for Problem {
    /// The problem of an error before any commit. The cause goes to the log; the caller learns whether a retry may
    /// succeed. A failed commit needs [`Problem::commit_failed`].
    fn from(error: E) -> Self {
        if error.is_transient() {
            tracing::warn!(%error, "a dependency is unavailable");
            return Self::nothing_changed();
        }
        tracing::error!(%error, "a request failed with an internal error");
        Self::new(Code::Internal, "an internal error occurred; try again in a few seconds")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.render([]);
        response.extensions_mut().insert(self);
        response
    }
}

impl OperationOutput for Problem {
    type Inner = Self;

    fn inferred_responses(ctx: &mut GenContext, _: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        vec![(None, Self::described(ctx, "The error, and how to resolve it."))]
    }
}

impl Problem {
    /// Documents a response with a problem as its body.
    pub fn described(ctx: &mut GenContext, description: &str) -> ResponseDoc {
        let json_schema = ctx.schema.subschema_for::<ProblemBody>();
        let schema = SchemaObject { json_schema, example: None, external_docs: None };
        let body = MediaType { schema: Some(schema), ..MediaType::default() };
        let content = [("application/problem+json".to_owned(), body)].into_iter().collect();
        ResponseDoc { description: description.to_owned(), content, ..ResponseDoc::default() }
    }
}

/// An error, as RFC 9457 describes it. Programs read `code`, people `detail` and `hint`.
// `Problem::render` writes it.
#[derive(JsonSchema)]
#[schemars(rename = "Problem", rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
struct ProblemBody {
    /// A URN of the problem's kind.
    r#type: String,
    /// Title, the same for every problem of this kind.
    title: String,
    /// HTTP status code.
    status: u16,
    /// Kind of problem, a permanent identifier.
    code: String,
    /// What is wrong in this request, and where.
    detail: String,
    /// The same text as `detail`.
    error: String,
    /// Request id, also in the `X-Request-Id` header.
    request_id: String,
    /// How to resolve the problem.
    hint: Option<String>,
    /// After how many seconds the request may succeed, also in the `Retry-After` header.
    retry_after_seconds: Option<u64>,
    /// The invalid fields, at most 50 of them.
    field_errors: Option<Vec<FieldError>>,
    /// Id of the page that already has the slug.
    existing_page_id: Option<String>,
    /// Time of the last edit, if the write was stale.
    updated_at: Option<String>,
    /// The scope that the key lacks.
    required_scope: Option<String>,
    /// The plan's limit that is reached.
    limit: Option<i64>,
    /// Current usage of that limit.
    used: Option<i64>,
    /// URL of the page on larger plans.
    upgrade_url: Option<String>,
    /// The run of the automation that failed to answer.
    run_id: Option<String>,
    /// Plan and usage; absent if the call is not authenticated.
    #[serde(rename = "_meta")]
    meta: Option<crate::Meta>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the store is unavailable")]
    struct Unavailable;

    impl Transient for Unavailable {
        fn is_transient(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_request_with_a_thousand_invalid_fields_gets_fifty_field_errors() {
        let error =
            |at: usize| FieldError::new(format!("fields[{at}]"), "type", format!("field {at} is wrong"));
        let problem = Problem::validation((0..1_000).map(error).collect());
        let shown = problem.extra["fieldErrors"].as_array().unwrap();
        assert_eq!((shown.len(), &shown[49]["field"]), (50, &json!("fields[49]")));
        assert_eq!(problem.detail, "field 0 is wrong (and 999 more; see fieldErrors)");
    }

    #[test]
    fn a_rate_limit_says_when_to_try_again() {
        for (seconds, wait) in [
            (0, "1 second"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (3_601, "61 minutes"),
            (7_200, "2 hours"),
            (86_399, "24 hours"),
        ] {
            let problem = Problem::new(Code::RateLimited, "too many calls").retry_after(seconds);
            assert_eq!(problem.detail, format!("too many calls; try again in {wait}"));
        }
        let busy = Problem::new(Code::Unavailable, "busy").retry_after(5);
        assert_eq!(busy.detail, "busy");
    }

    #[test]
    fn only_a_certain_failure_says_that_nothing_was_changed() {
        let before = Problem::from(Unavailable);
        let while_committing = Problem::commit_failed(Unavailable);
        assert_eq!((before.code, while_committing.code), (Code::Unavailable, Code::Unavailable));
        assert!(before.detail.contains("nothing was changed") && before.retry_after_seconds.is_some());
        assert!(!while_committing.detail.contains("nothing was changed"));
        assert!(while_committing.retry_after_seconds.is_none(), "a retry could execute it twice");
    }
}
