//! The form in which a response is stored under an `Idempotency-Key`.

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use domain::json_bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use web::Problem;

use super::digest::Digest;

/// Upper bound of a stored refusal. Its size is up to the caller, and it is stored for a day.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// The header that marks a replayed response.
const REPLAYED: &str = "idempotent-replayed";

/// A response and the digest of the request it belongs to. The field names are stored data.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredResponse {
    request: Digest,
    status: u16,
    headers: Vec<(String, String)>,
    #[serde(rename = "said")]
    body: StoredBody,
}

/// A problem is stored as such: the frame writes the replaying request's own id and `_meta` into it.
#[derive(Serialize, Deserialize)]
enum StoredBody {
    Problem(Box<Problem>),
    #[serde(rename = "Body")]
    Text(String),
}

impl StoredResponse {
    /// Splits a handler's response into the form to store and the response to send. Returns only the latter, as an
    /// error, if the body is not text, or if a refusal is too large to keep: a repetition is then refused again.
    pub(super) async fn read(response: Response, request: Digest) -> Result<(Self, Response), Response> {
        let (parts, body) = response.into_parts();
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let headers = parts.headers.iter().filter(|(name, _)| *name != CONTENT_LENGTH).filter_map(header);
        let (status, headers) = (parts.status.as_u16(), headers.collect());
        if let Some(problem) = parts.extensions.get::<Problem>().cloned() {
            if json_bytes(&problem) > REFUSAL_BYTES_MAX {
                return Err(Response::from_parts(parts, body));
            }
            let stored = StoredBody::Problem(Box::new(problem));
            return Ok((Self { request, status, headers, body: stored }, Response::from_parts(parts, body)));
        }
        let Ok(bytes) = to_bytes(body, usize::MAX).await else {
            return Err(Problem::outcome_unknown().into_response());
        };
        let response = Response::from_parts(parts, Body::from(bytes.clone()));
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok((Self { request, status, headers, body: StoredBody::Text(text) }, response)),
            Err(_not_text) => Err(response),
        }
    }

    /// The digest of the first request.
    pub(super) fn request(&self) -> &Digest {
        &self.request
    }

    /// The body length of the first request.
    pub(super) fn request_bytes(&self) -> u64 {
        self.request.bytes
    }

    /// Returns the response again, for the request `id`.
    pub(super) fn replay(self, id: &str) -> Response {
        let mut response = match self.body {
            StoredBody::Problem(problem) => problem.into_response(),
            StoredBody::Text(text) => Body::from(with_request_id(text, id)).into_response(),
        };
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

/// Replaces `_meta.requestId` with the id of the replaying request.
fn with_request_id(text: String, id: &str) -> String {
    let Ok(mut body) = serde_json::from_str::<Value>(&text) else { return text };
    match body.pointer_mut("/_meta/requestId") {
        Some(value) => {
            *value = json!(id);
            body.to_string()
        }
        None => text,
    }
}
