//! JSON-RPC messages: what a client may send, and how it is answered.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcVersion2_0};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

/// A message of a client.
#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    Notification {
        method: String,
    },
    /// Answers nothing, as this server asks its clients nothing.
    Response,
}

/// A request of a client.
#[derive(Debug)]
pub(super) struct Request {
    /// A text or a number.
    pub(super) id: Value,
    pub(super) method: String,
    /// Not parsed yet: a value takes up to forty times as much memory as its text.
    params: Option<Box<RawValue>>,
}

/// A request that gets a JSON-RPC error.
#[derive(Debug)]
pub(super) struct Refusal {
    /// `None` for that of the error's code in the request's protocol version.
    pub(super) status: Option<StatusCode>,
    pub(super) error: Box<ErrorData>,
}

impl Refusal {
    /// Creates a refusal whose status depends on the protocol version.
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status: None, error: Box::new(ErrorData::new(code, message.into(), None)) }
    }

    /// The method's parameters are invalid.
    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Sets the HTTP status.
    #[must_use]
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Adds machine-readable data.
    #[must_use]
    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.error.data = Some(data);
        self
    }

    /// A message that can't be read gets 400 in every version of the protocol.
    fn unreadable(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code, message).with_status(StatusCode::BAD_REQUEST)
    }
}

/// A message as it is sent.
#[derive(Deserialize)]
struct Wire {
    jsonrpc: Option<Value>,
    /// An id of null is not the same as none, which makes a notification.
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Box<RawValue>>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Message {
    /// Reads the body of a POST.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let invalid = |message: &str| Refusal::unreadable(ErrorCode::INVALID_REQUEST, message);
        if body.trim_ascii_start().first() == Some(&b'[') {
            return Err(invalid("a batch of messages is not supported; send them one by one"));
        }
        let wire: Wire = serde_json::from_slice(body).map_err(|error| match error.classify() {
            Category::Data => invalid("the body must be one JSON-RPC message, an object"),
            _ => Refusal::unreadable(ErrorCode::PARSE_ERROR, format!("the body is not JSON: {error}")),
        })?;
        if wire.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let is_id = |id: &Value| id.is_string() || id.is_number();
        let method = match wire.method {
            Some(Value::String(method)) => method,
            None if wire.result.is_some() || wire.error.is_some() => return Ok(Self::Response),
            None => return Err(invalid("method is missing")),
            Some(_) => return Err(invalid("method must be a text")),
        };
        match wire.id {
            None => Ok(Self::Notification { method }),
            Some(id) if is_id(&id) => Ok(Self::Request(Request { id, method, params: wire.params })),
            Some(_) => Err(invalid("id must be a text or a number")),
        }
    }
}

impl Request {
    /// Reads the members that the method needs from its parameters; absent parameters are an empty object.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Refusal> {
        let params = self.params.as_ref().map_or("{}", |params| params.get());
        if !params.starts_with('{') {
            return Err(Refusal::params("params must be an object"));
        }
        let refused = |error| Refusal::params(format!("invalid params of {}: {error}", self.method));
        serde_json::from_str(params).map_err(refused)
    }
}

#[derive(Serialize)]
struct Answer<'a, T> {
    jsonrpc: JsonRpcVersion2_0,
    id: &'a Value,
    result: &'a T,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: JsonRpcVersion2_0,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    error: &'a ErrorData,
}

/// Writes the answer to a request.
pub(super) fn write_answer<T: Serialize>(id: &Value, result: &T) -> Result<Bytes, Refusal> {
    let answer = Answer { jsonrpc: JsonRpcVersion2_0, id, result };
    serde_json::to_vec(&answer).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "failed to write an MCP answer");
        Refusal::new(ErrorCode::INTERNAL_ERROR, "an internal error occurred; try again in a few seconds")
    })
}

/// Returns the response with a JSON-RPC error.
pub(super) fn refuse(status: StatusCode, id: Option<&Value>, error: &ErrorData) -> Response {
    let failure = Failure { jsonrpc: JsonRpcVersion2_0, id, error };
    respond(status, serde_json::to_vec(&failure).unwrap_or_default().into())
}

/// Returns the response with a JSON-RPC message.
pub(super) fn respond(status: StatusCode, message: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], message).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> i32 {
        Message::parse(body.as_bytes()).unwrap_err().error.code.0
    }

    #[test]
    fn requests_notifications_and_responses_differ_by_their_members() {
        let parse = |body: &str| Message::parse(body.as_bytes()).unwrap();
        let request = parse(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        assert!(matches!(request, Message::Request(Request { id, .. }) if id == "a"));
        let notification = parse(r#" {"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#);
        assert!(matches!(notification, Message::Notification { .. }));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Response));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), Message::Response));
    }

    #[test]
    fn a_body_that_is_no_message_gets_the_codes_of_json_rpc() {
        for (body, code) in [
            ("", -32700),
            ("{", -32700),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, -32700),
            ("\u{7f}", -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            ("\n []", -32600),
            ("7", -32600),
            ("\"ping\"", -32600),
            ("null", -32600),
            ("{}", -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600),
        ] {
            assert_eq!(refused(body), code, "{body}");
        }
    }
}
