//! Extractors that reject invalid input with a problem that names the field.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use domain::FieldError;
use http::request::Parts;
use http::{HeaderMap, header};
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{Code, Problem, document, nul_characters};

/// A JSON body.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T);

/// A JSON body, or an empty one.
#[derive(Debug, Clone)]
pub struct OptionalJson<T>(pub Option<T>);

/// A JSON body with items of any shape; [`read_item`] validates each on its own.
#[derive(Debug, Clone)]
pub struct JsonOfItems<T>(pub T);

/// The query string.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

/// The path's parameters. An invalid one is a 404, because it can't identify any resource.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_is_json(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(refused_body)?;
        read_json(&bytes).map(Json)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        // The body must be read first: while it is streamed through a digest, its length is unknown.
        let kind = check_is_json(request.headers());
        let says_nothing = !request.headers().contains_key(header::CONTENT_TYPE);
        let bytes = Bytes::from_request(request, state).await.map_err(refused_body)?;
        if says_nothing && bytes.is_empty() {
            return Ok(Self(None));
        }
        kind?;
        read_json(&bytes).map(|body| Self(Some(body)))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonOfItems<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_is_json(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(refused_body)?;
        check_is_object(&bytes)?;
        read(&mut serde_json::Deserializer::from_slice(&bytes)).map(Self)
    }
}

fn check_is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = format!("this endpoint accepts JSON, not `{kind}`");
    Err(Problem::new(Code::UnsupportedMediaType, detail).hint("send `Content-Type: application/json`"))
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        if let Some((name, _)) =
            url_pairs(query).find(|(name, value)| (name.to_string() + value).contains('\0'))
        {
            let name = name.replace('\0', "\u{fffd}");
            let message = format!("{name} must not contain a NUL character");
            return Err(Problem::validation(vec![FieldError::new(name, "nul", message)]));
        }
        let reader = serde_urlencoded::Deserializer::new(url_pairs(query));
        serde_path_to_error::deserialize(reader).map(Query).map_err(|error| {
            let path = error.path().to_string();
            Problem::validation(vec![field_error(&path, &error.into_inner().to_string())])
        })
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        #[expect(clippy::disallowed_types, reason = "this is the wrapper that handlers use")]
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0))
            .map_err(|_| Problem::new(Code::NotFound, "there is nothing at this URL"))
    }
}

fn url_pairs(query: &str) -> url::form_urlencoded::Parse<'_> {
    url::form_urlencoded::parse(query.as_bytes())
}

fn refused_body(rejection: BytesRejection) -> Problem {
    if rejection.status() == http::StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(Code::PayloadTooLarge, "the body exceeds the limit of this endpoint");
    }
    Problem::new(Code::MalformedJson, "the body could not be read completely")
}

/// Parses a JSON text. The problem of invalid JSON names the field, if there is one.
pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    check_is_object(bytes)?;
    if let Some(field_error) = nul_characters::field_error(bytes) {
        return Err(Problem::validation(vec![field_error]));
    }
    read(&mut serde_json::Deserializer::from_slice(bytes))
}

/// Parses one item of a [`JsonOfItems`]. The problem's field path is relative to the item.
pub fn read_item<T: DeserializeOwned>(item: Value) -> Result<T, Problem> {
    if !item.is_object() {
        let field_error = FieldError::new("item", "type", "the item must be a JSON object");
        return Err(Problem::validation(vec![field_error]));
    }
    if let Some(field_error) = nul_characters::field_error_of(&item) {
        return Err(Problem::validation(vec![field_error]));
    }
    read(item)
}

fn read<'de, T: Deserialize<'de>, D>(reader: D) -> Result<T, Problem>
where
    D: Deserializer<'de, Error = serde_json::Error>,
{
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        Problem::validation(vec![field_error(&path, &error.into_inner().to_string())])
    })
}

fn check_is_object(bytes: &[u8]) -> Result<(), Problem> {
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(Problem::new(Code::MalformedJson, format!("the body is not UTF-8: {error}")));
    }
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
        return Err(Problem::new(Code::MalformedJson, format!("the body is not JSON: {error}")));
    }
    // serde would accept an array as a struct, by the order of its fields.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::validation(vec![FieldError::new(
            "body",
            "type",
            "the body must be a JSON object",
        )]));
    }
    Ok(())
}

/// Converts serde's message to a field error. A field that the message names in backquotes is appended to the path.
fn field_error(path: &str, message: &str) -> FieldError {
    let message = message.split(" at line ").next().unwrap_or(message);
    let named = message.split('`').nth(1).unwrap_or_default();
    let parent = path.trim_matches('.');
    let under = |name: &str| match parent {
        "" | "?" => name.to_owned(),
        _ if parent == name || parent.ends_with(&format!(".{name}")) => parent.to_owned(),
        _ => format!("{parent}.{name}"),
    };
    if message.starts_with("missing field") {
        return FieldError::new(under(named), "required", format!("{} is required", under(named)));
    }
    if message.starts_with("unknown field") {
        return FieldError::new(
            under(named),
            "unknown_field",
            format!("{} is not a field of this request", under(named)),
        );
    }
    if message.starts_with("duplicate field") {
        return FieldError::new(under(named), "duplicate", format!("{} is given twice", under(named)));
    }
    let field = if parent.is_empty() { "body" } else { parent };
    FieldError::new(field, "type", format!("{field}: {message}"))
}

/// Distinguishes null from an absent member: with `#[serde(default, deserialize_with = "web::present")]`, an
/// `Option<Option<T>>` is `None` if absent and `Some(None)` if null.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(reader).map(Some)
}

/// Deserializes a 64-bit integer in any notation: JSON does not distinguish `1` from `1.0` (RFC 8259, 6).
pub fn whole_number<'de, D: Deserializer<'de>>(reader: D) -> Result<i64, D::Error> {
    whole(&serde_json::Number::deserialize(reader)?)
}

/// Deserializes like [`whole_number`], or null. With `#[serde(default)]` the member may be absent too.
pub fn whole_number_or_null<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<i64>, D::Error> {
    Option::<serde_json::Number>::deserialize(reader)?.map(|number| whole(&number)).transpose()
}

/// Deserializes like [`whole_number_or_null`] and distinguishes null from an absent member like [`present`].
pub fn present_whole_number<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Option<i64>>, D::Error> {
    whole_number_or_null(reader).map(Some)
}

fn whole<E: serde::de::Error>(number: &serde_json::Number) -> Result<i64, E> {
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float of that size holds every whole number exactly"
    )]
    let read = number.as_i64().or_else(|| float().map(|float| float as i64));
    read.ok_or_else(|| E::custom(format!("invalid number: `{number}`, expected a whole one")))
}

impl<T: JsonSchema> OperationInput for Json<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        #[expect(clippy::disallowed_types, reason = "only its description is used")]
        axum::Json::<T>::operation_input(ctx, operation);
    }
}

impl<T: JsonSchema> OperationInput for JsonOfItems<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
    }
}

impl<T: JsonSchema> OperationInput for OptionalJson<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
        if let Some(ReferenceOr::Item(body)) = &mut operation.request_body {
            body.required = false;
        }
    }
}

impl<T: JsonSchema> OperationInput for Query<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        #[expect(clippy::disallowed_types, reason = "only its description is used")]
        axum::extract::Query::<T>::operation_input(ctx, operation);
        document::forbid_nulls_in_queries(operation);
    }
}

impl<T: JsonSchema> OperationInput for Path<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        document::add_path_parameters::<T>(ctx, operation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only deserialized")]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only deserialized")]
        size: u8,
    }

    #[test]
    fn a_rejected_body_names_the_field() {
        let cases = [
            (r#"{"inner":[{"size":1},{"size":"x"}]}"#, "inner[1].size", "type"),
            (r#"{"inner":[{"size":300}]}"#, "inner[0].size", "type"),
            (r#"{"inner":[{}]}"#, "inner[0].size", "required"),
            (r#"{"inner":[{"size":1,"colour":2}]}"#, "inner[0].colour", "unknown_field"),
            (r#"{}"#, "inner", "required"),
            (r#"{"outer":1}"#, "outer", "unknown_field"),
            (r#"{"inner":[],"inner":[]}"#, "inner", "duplicate"),
            (r#"{"inner":[{"size":1,"size":2}]}"#, "inner[0].size", "duplicate"),
            (r#"[]"#, "body", "type"),
            (r#"3"#, "body", "type"),
        ];
        for (text, field, code) in cases {
            let problem = read_json::<Outer>(text.as_bytes()).unwrap_err();
            assert_eq!(problem.code(), Code::ValidationFailed, "{text}");
            let shown = format!("{problem:?}");
            assert!(
                shown.contains(&format!("{field:?}")) && shown.contains(&format!("{code:?}")),
                "{text}: {shown}"
            );
        }
    }

    #[tokio::test]
    async fn a_rejected_query_names_the_parameter() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            #[expect(dead_code, reason = "only deserialized")]
            size: Option<u8>,
        }
        let read = async |query: &str| {
            let uri = format!("/?{query}");
            let mut parts = http::Request::builder().uri(uri).body(()).unwrap().into_parts().0;
            Query::<Asked>::from_request_parts(&mut parts, &())
                .await
                .map(|_| ())
                .map_err(|p| format!("{p:?}"))
        };
        for right in ["", "size=7", "size=%37"] {
            assert_eq!(read(right).await, Ok(()), "{right}");
        }
        for (query, field, code) in [
            ("size=x", "size", "type"),
            ("size=300", "size", "type"),
            ("size=", "size", "type"),
            ("size=1&size=2", "size", "duplicate"),
            ("colour=1", "colour", "unknown_field"),
            ("size=%00", "size", "nul"),
            ("%00=1", "\u{fffd}", "nul"),
            ("size=%ff", "size", "type"),
        ] {
            let shown = read(query).await.unwrap_err();
            assert!(
                shown.contains(&format!("{field:?}")) && shown.contains(&format!("{code:?}")),
                "{query}: {shown}"
            );
        }
    }

    #[test]
    fn an_integer_may_have_a_fraction_of_zero() {
        let read = |text: &str| whole_number(&mut serde_json::Deserializer::from_str(text)).ok();
        for (text, number) in
            [("1", 1), ("1.0", 1), ("1e2", 100), ("-3.0", -3), ("9223372036854775807", i64::MAX)]
        {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for text in ["1.5", "1e300", "9223372036854775808", "\"1\"", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn an_item_is_rejected_like_a_whole_body() {
        for (item, field, code) in [
            (serde_json::json!({"inner": [{"size": "x"}]}), "inner[0].size", "type"),
            (serde_json::json!({}), "inner", "required"),
            (serde_json::json!({"inner": [{"\0": 1}]}), "inner[0].\u{fffd}", "nul"),
            (serde_json::json!([[]]), "item", "type"),
            (Value::Null, "item", "type"),
        ] {
            let shown = format!("{:?}", read_item::<Outer>(item.clone()).unwrap_err());
            assert!(
                shown.contains(&format!("{field:?}")) && shown.contains(&format!("{code:?}")),
                "{item}: {shown}"
            );
        }
    }

    #[test]
    fn invalid_json_is_reported_as_such() {
        for bytes in [&b""[..], b"{", b"{} x", b"\0", b"{\"inner\":\"\xc3\x28\"}"] {
            assert_eq!(read_json::<Outer>(bytes).unwrap_err().code(), Code::MalformedJson, "{bytes:?}");
        }
    }
}
