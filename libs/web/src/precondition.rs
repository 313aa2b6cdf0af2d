//! `ETag`, `If-Match` and `ifUnmodifiedSince`: conditional updates that reject lost updates.
//!
//! A tag is the time of the last edit in milliseconds, which rises with every edit.

use std::convert::Infallible;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{HeaderStyle, Operation, Parameter, ParameterData, ReferenceOr};
use axum::extract::FromRequestParts;
use chrono::{DateTime, Utc};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use schemars::json_schema;
use serde_json::Value;

use crate::document::required_parameter;
use crate::problem::{Code, Problem};

const DESCRIPTION: &str =
    "The `ETag` of an earlier response. If the resource was edited since, the request is rejected with 409.";

/// The `If-Match` header of a request, if present.
#[derive(Debug, Clone)]
pub struct IfMatch(Option<String>);

impl IfMatch {
    /// Returns whether a resource that was last edited at `updated_at` may be edited.
    pub fn allows(&self, updated_at: DateTime<Utc>) -> bool {
        let Some(named) = &self.0 else { return true };
        let tag = tag(updated_at);
        // Some proxies weaken tags. A weak tag still identifies the version, as it is a time and no digest of bytes.
        named.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == tag || one == "*")
    }
}

/// Returns the `ETag` header of a resource that was last edited at `updated_at`.
pub fn etag(updated_at: DateTime<Utc>) -> HeaderMap {
    let value = HeaderValue::from_str(&tag(updated_at));
    value.map(|value| (header::ETAG, value)).into_iter().collect()
}

/// Returns the error for a resource, such as a page, that was edited since the caller read it. `updated_at` is the time of
/// the last edit as responses show it.
pub fn stale(noun: &str, updated_at: Value) -> Problem {
    let at = updated_at.as_str().unwrap_or_default();
    Problem::new(Code::StaleWrite, format!("the {noun} was changed at {at}"))
        .with("updatedAt", updated_at)
        .hint("read it again, and update it with its current updatedAt")
}

fn tag(updated_at: DateTime<Utc>) -> String {
    format!("\"{}\"", updated_at.timestamp_millis())
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let all = parts.headers.get_all(header::IF_MATCH);
        let read: Vec<&str> = all.iter().map(|value| value.to_str().unwrap_or_default()).collect();
        Ok(Self((!read.is_empty()).then(|| read.join(","))))
    }
}

impl OperationInput for IfMatch {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let parameter_data = ParameterData {
            description: Some(DESCRIPTION.to_owned()),
            required: false,
            ..required_parameter("If-Match", json_schema!({"type": "string"}))
        };
        let parameter = Parameter::Header { parameter_data, style: HeaderStyle::Simple };
        operation.parameters.push(ReferenceOr::Item(parameter));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tag_of_the_last_edit_matches() {
        let at = |millis| DateTime::from_timestamp_millis(millis).unwrap();
        for (named, allowed) in [
            (None, true),
            (Some("\"1500\""), true),
            (Some("W/\"1500\""), true),
            (Some("\"1\", \"1500\""), true),
            (Some("*"), true),
            (Some("\"1499\""), false),
            (Some("1500"), false),
            (Some(""), false),
        ] {
            assert_eq!(IfMatch(named.map(str::to_owned)).allows(at(1_500)), allowed, "{named:?}");
        }
        assert_eq!(etag(at(1_500))[header::ETAG], "\"1500\"");
    }
}
