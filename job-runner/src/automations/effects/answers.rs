//! The answer to a `fetch`, as later steps read it.

use automation::execution::is_too_deep;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use outbound::Response;
use serde_json::{Map, Value, json};

/// Returns `{status, headers, body}`. A body that is neither JSON nor text is base64, and `isBase64` says so.
pub(super) fn output(response: &Response) -> Value {
    let (body, is_base64) = body(&response.headers, &response.body);
    let mut output =
        json!({"status": response.status.as_u16(), "headers": headers(&response.headers), "body": body});
    if is_base64 {
        output["isBase64"] = Value::Bool(true);
    }
    output
}

/// Values of one name are joined. Cookies are left out: they would be kept in the log.
fn headers(all: &HeaderMap) -> Map<String, Value> {
    let mut read = Map::new();
    for name in all.keys().filter(|name| **name != header::SET_COOKIE) {
        let values: Vec<_> =
            all.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        read.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    read
}

fn body(headers: &HeaderMap, bytes: &[u8]) -> (Value, bool) {
    let kind = Kind::of(headers);
    if kind == Kind::Json {
        if bytes.is_empty() {
            return (Value::Null, false);
        }
        // Nested deeper, it could not be read back from the journal: it stays a text.
        if let Some(value) = serde_json::from_slice(bytes).ok().filter(|value| !is_too_deep(value)) {
            return (value, false);
        }
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if kind != Kind::Other => (Value::String(text.to_owned()), false),
        Err(_) if kind == Kind::Text => (Value::String(String::from_utf8_lossy(bytes).into_owned()), false),
        _ => (Value::String(STANDARD.encode(bytes)), true),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Text,
    /// The answer has no type: a text if it is one.
    Unknown,
    Other,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Self {
        let is_encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
        let Some(value) = headers.get(header::CONTENT_TYPE) else {
            return if is_encoded { Self::Other } else { Self::Unknown };
        };
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        let essence = value.split(';').next().unwrap_or_default().trim();
        let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
        if is_encoded {
            Self::Other
        } else if subtype == "json" || subtype.ends_with("+json") {
            Self::Json
        } else if kind == "text" || is_text(subtype) {
            Self::Text
        } else {
            Self::Other
        }
    }
}

/// Texts that are no `text/…`.
fn is_text(subtype: &str) -> bool {
    matches!(
        subtype,
        "xml"
            | "javascript"
            | "x-www-form-urlencoded"
            | "x-ndjson"
            | "ndjson"
            | "yaml"
            | "x-yaml"
            | "graphql"
    ) || subtype.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::StatusCode;

    use super::*;

    fn answer(headers: &[(&'static str, &'static str)], body: &'static [u8]) -> Value {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, value.parse().unwrap());
        }
        output(&Response {
            status: StatusCode::OK,
            headers: all,
            body: Bytes::from_static(body),
            truncated: false,
            elapsed_ms: 0,
        })
    }

    fn body_of(content_type: &'static str, body: &'static [u8]) -> Value {
        answer(&[("content-type", content_type)], body)["body"].clone()
    }

    #[test]
    fn a_body_is_parsed_by_its_type() {
        assert_eq!(body_of("application/json; charset=utf-8", b"{\"a\":[1]}"), json!({"a": [1]}));
        assert_eq!(body_of("Application/Problem+JSON", b"null"), Value::Null);
        assert_eq!(body_of("application/json", b""), Value::Null);
        assert_eq!(body_of("application/json", b"{oops"), json!("{oops"));
        assert_eq!(body_of("text/html", b"<p>"), json!("<p>"));
        assert_eq!(body_of("text/plain", b"{}"), json!("{}"));
        assert_eq!(body_of("image/svg+xml", b"<svg/>"), json!("<svg/>"));
        assert_eq!(body_of("text/plain", b"\xff!"), json!("\u{fffd}!"));
    }

    #[test]
    fn json_that_is_nested_too_deep_to_be_read_back_stays_a_text() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for (levels, is_text) in [(90, false), (91, true), (127, true), (10_000, true)] {
            let body = body_of("application/json", nested(levels).leak().as_bytes());
            assert_eq!(body.is_string(), is_text, "{levels} levels");
        }
    }

    #[test]
    fn bytes_are_base64_and_say_so() {
        let png = answer(&[("content-type", "image/png")], b"\x89PNG");
        assert_eq!((&png["body"], &png["isBase64"]), (&json!("iVBORw=="), &json!(true)));
        let packed = answer(&[("content-type", "application/json"), ("content-encoding", "gzip")], b"{}");
        assert_eq!(packed["isBase64"], json!(true));
        let untyped = answer(&[], b"\xff");
        assert_eq!(untyped["isBase64"], json!(true));
        assert_eq!(answer(&[], b"hello")["body"], json!("hello"));
        assert_eq!(answer(&[("content-type", "text/plain")], b"")["isBase64"], Value::Null);
    }

    #[test]
    fn headers_are_joined_and_have_no_cookies() {
        let read = answer(&[("x-a", "1"), ("X-A", "2"), ("set-cookie", "session=1"), ("etag", "\"e\"")], b"");
        assert_eq!(read["headers"], json!({"x-a": "1, 2", "etag": "\"e\""}));
    }
}
