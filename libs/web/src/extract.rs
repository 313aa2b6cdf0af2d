//! Extractors whose refusals are problems with the field's path.

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

/// A JSON body, or none at all.
#[derive(Debug, Clone)]
pub struct OptionalJson<T>(pub Option<T>);

/// A JSON body whose items are judged each for itself, by [`read_item`]: they may hold anything.
#[derive(Debug, Clone)]
pub struct JsonOfItems<T>(pub T);

/// The query string.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

/// The path's parameters. One that can't be read names nothing, so it is a 404.
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
        // Only its end shows that a body is empty: whoever digests it on the way can't tell beforehand.
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
    let detail = format!("this endpoint takes JSON, not `{kind}`");
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
        #[expect(clippy::disallowed_types, reason = "this is the wrapper that everyone else is to use")]
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0))
            .map_err(|_| Problem::new(Code::NotFound, "there is nothing at this address"))
    }
}

fn url_pairs(query: &str) -> url::form_urlencoded::Parse<'_> {
    url::form_urlencoded::parse(query.as_bytes())
}

fn refused_body(rejection: BytesRejection) -> Problem {
    if rejection.status() == http::StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(Code::PayloadTooLarge, "the body is larger than this endpoint takes");
    }
    Problem::new(Code::MalformedJson, "the body could not be read to its end")
}

/// Reads a JSON text.
///
/// # Errors
/// A problem naming the field that is wrong, or saying that the text is no JSON.
pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    check_is_object(bytes)?;
    if let Some(field_error) = nul_characters::field_error(bytes) {
        return Err(Problem::validation(vec![field_error]));
    }
    read(&mut serde_json::Deserializer::from_slice(bytes))
}

/// Reads one item of a [`JsonOfItems`].
///
/// # Errors
/// A problem naming the field that is wrong, as seen from the item.
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
    // serde would read a list as a struct's fields in their order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::validation(vec![FieldError::new(
            "body",
            "type",
            "the body must be a JSON object",
        )]));
    }
    Ok(())
}

/// A field_error from serde's sentence: the field it names in backquotes belongs to the path.
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

/// Tells `null` from absent: `#[serde(default, deserialize_with = "web::present")]` on an
/// `Option<Option<T>>` gives `None` for absent and `Some(None)` for null.
///
/// # Errors
/// The value's own.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(reader).map(Some)
}

/// Reads a whole number however it is written: JSON knows no difference between `1` and `1.0` (RFC 8259, 6).
///
/// # Errors
/// It is none, or beyond 64 bits.
pub fn whole_number<'de, D: Deserializer<'de>>(reader: D) -> Result<i64, D::Error> {
    whole(&serde_json::Number::deserialize(reader)?)
}

/// As [`whole_number`], or null. With `#[serde(default)]`, it may be absent as well.
///
/// # Errors
/// As there.
pub fn whole_number_or_null<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<i64>, D::Error> {
    Option::<serde_json::Number>::deserialize(reader)?.map(|number| whole(&number)).transpose()
}

/// As [`whole_number_or_null`], telling null from absent as [`present`] does.
///
/// # Errors
/// As there.
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
        #[expect(clippy::disallowed_types, reason = "only its description is borrowed")]
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
        #[expect(clippy::disallowed_types, reason = "only its description is borrowed")]
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
        #[expect(dead_code, reason = "only read into")]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only read into")]
        size: u8,
    }

    #[test]
    fn a_refusal_names_the_field() {
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
    async fn a_querys_refusal_names_the_parameter() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            #[expect(dead_code, reason = "only read into")]
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
    fn a_whole_number_may_be_written_with_a_point() {
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
    fn an_item_is_refused_as_a_whole_body_would_be() {
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
    fn what_is_no_json_is_said_to_be_none() {
        for bytes in [&b""[..], b"{", b"{} x", b"\0", b"{\"inner\":\"\xc3\x28\"}"] {
            assert_eq!(read_json::<Outer>(bytes).unwrap_err().code(), Code::MalformedJson, "{bytes:?}");
        }
    }
}
