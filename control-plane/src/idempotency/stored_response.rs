//! An answer that can be put away and given again.

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use web::Problem;

use super::digest::Digest;

/// Says that an answer is given again.
const REPLAYED: &str = "idempotent-replayed";

#[derive(Serialize, Deserialize)]
pub(super) struct Answer {
    request: Digest,
    status: u16,
    headers: Vec<(String, String)>,
    said: Said,
}

/// Problems are kept as such: the frame gives each its own request's id and `_meta`.
#[derive(Serialize, Deserialize)]
enum Said {
    Problem(Box<Problem>),
    Body(String),
}

impl Answer {
    /// What the handler answered, to be kept, and to be sent; only the latter if its body is no text.
    pub(super) async fn read(response: Response, request: Digest) -> Result<(Self, Response), Response> {
        let (parts, body) = response.into_parts();
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let kept = parts.headers.iter().filter(|(name, _)| *name != CONTENT_LENGTH).filter_map(header);
        let (status, headers) = (parts.status.as_u16(), kept.collect());
        if let Some(problem) = parts.extensions.get::<Problem>().cloned() {
            let said = Said::Problem(Box::new(problem));
            return Ok((Self { request, status, headers, said }, Response::from_parts(parts, body)));
        }
        let Ok(bytes) = to_bytes(body, usize::MAX).await else {
            return Err(Problem::away(false).into_response());
        };
        let again = Response::from_parts(parts, Body::from(bytes.clone()));
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok((Self { request, status, headers, said: Said::Body(text) }, again)),
            Err(_no_text) => Err(again),
        }
    }

    /// The request it answered.
    pub(super) fn request(&self) -> &Digest {
        &self.request
    }

    /// How long that was.
    pub(super) fn request_bytes(&self) -> u64 {
        self.request.bytes
    }

    /// The answer to the request `id`, which is the same request once more.
    pub(super) fn give_again(self, id: &str) -> Response {
        let mut response = match self.said {
            Said::Problem(problem) => problem.into_response(),
            Said::Body(text) => Body::from(with_request_id(text, id)).into_response(),
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

/// The same text but for `_meta.requestId`, which is this request's.
fn with_request_id(text: String, id: &str) -> String {
    let Ok(mut body) = serde_json::from_str::<Value>(&text) else { return text };
    match body.pointer_mut("/_meta/requestId") {
        Some(place) => {
            *place = json!(id);
            body.to_string()
        }
        None => text,
    }
}
