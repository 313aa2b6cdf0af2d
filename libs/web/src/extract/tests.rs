//! Rejected bodies, items and queries.

use axum::extract::{FromRequest, FromRequestParts};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::json::read_json;
use super::*;
use crate::{Code, Problem};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only deserialized")]
struct Outer {
    inner: Vec<Inner>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only deserialized")]
struct Inner {
    size: u8,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only deserialized")]
struct Everything {
    name: String,
    #[serde(default, deserialize_with = "present_whole_number")]
    #[schemars(with = "Option<i64>")]
    max_submissions: Option<Option<i64>>,
    is_open: Option<bool>,
    folder_id: Option<uuid::Uuid>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<chrono::DateTime<chrono::Utc>>")]
    closes_at: Option<Option<chrono::DateTime<chrono::Utc>>>,
    kind: Option<Kind>,
    steps: Option<Vec<Step>>,
    labels: Option<std::collections::BTreeMap<String, String>>,
    extra: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[expect(dead_code, reason = "only deserialized")]
enum Step {
    Wait { seconds: u32 },
    Stop { reason: Option<String> },
}

fn errors(problem: &Problem) -> Vec<Value> {
    let shown = serde_json::to_value(problem).unwrap();
    shown["extra"]["fieldErrors"].as_array().unwrap().clone()
}

fn messages_of(body: &Value) -> Vec<String> {
    let problem = read_json::<Everything>(body.to_string().as_bytes()).unwrap_err();
    assert_eq!(problem.code(), Code::ValidationFailed, "{body}");
    errors(&problem).iter().map(|error| error["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn all_wrong_types_are_reported_at_once() {
    let body = json!({
        "name": 7,
        "maxSubmissions": "3",
        "isOpen": "yes",
        "folderId": "x",
        "closesAt": "tomorrow",
        "kind": "huge",
        "steps": [{"type": "wait", "seconds": "1"}, {"type": "sleep"}, {"type": "stop", "why": 1}, 5],
        "labels": {"a": 1, "b": "x"},
        "extra": {"a": [1, null]},
        "colour": "red",
    });
    assert_eq!(
        messages_of(&body),
        [
            "name must be a text, not a number",
            "maxSubmissions must be a whole number, not a text",
            "isOpen must be true or false, not a text",
            "folderId is not an id (expected a UUID)",
            "closesAt must be a time, such as 2030-01-31T09:30:00Z",
            "kind must be one of small, large",
            "steps[0].seconds must be a whole number, not a text",
            "steps[1].type must be one of wait, stop",
            "steps[2].why is not a field of this request",
            "steps[3] must be an object, not a number",
            "labels.a must be a text, not a number",
            "colour is not a field of this request",
        ]
    );
}

#[test]
fn one_wrong_type_is_reported_in_terms_of_the_field() {
    for (body, message) in [
        (json!({"name": null}), "name must be a text, not null"),
        (json!({"isOpen": true}), "name is required"),
        (json!({"name": "", "maxSubmissions": 1.5}), "maxSubmissions must be a whole number"),
        (json!({"name": "", "folderId": 5}), "folderId must be an id (a UUID), not a number"),
        (json!({"name": "", "closesAt": ""}), "closesAt must be a time, such as 2030-01-31T09:30:00Z"),
        (
            json!({"name": "", "closesAt": [1]}),
            "closesAt must be a time, such as 2030-01-31T09:30:00Z, not a list",
        ),
        (json!({"name": "", "kind": 1}), "kind must be one of small, large, not a number"),
        (
            json!({"name": "", "steps": [{"type": "wait", "seconds": -1}]}),
            "steps[0].seconds must be a whole number of at least 0",
        ),
        (json!({"name": "", "steps": {}}), "steps must be a list, not an object"),
        (json!({"name": "", "steps": [{}]}), "steps[0].type is required"),
        (json!({"name": "", "labels": []}), "labels must be an object, not a list"),
    ] {
        assert_eq!(messages_of(&body), [message], "{body}");
    }
    let valid = json!({"name": "", "maxSubmissions": null, "folderId": null, "closesAt": null, "kind": null});
    assert!(read_json::<Everything>(valid.to_string().as_bytes()).is_ok());
}

#[test]
fn a_million_wrong_items_are_reported_in_part() {
    let body = format!(r#"{{"inner": [{}1]}}"#, "1,".repeat(1_000_000));
    let problem = read_json::<Outer>(body.as_bytes()).unwrap_err();
    assert_eq!(errors(&problem).len(), domain::FIELD_ERRORS_MAX);
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
        let first = &errors(&problem)[0];
        assert_eq!((&first["field"], &first["code"]), (&json!(field), &json!(code)), "{text}");
    }
}

#[tokio::test]
async fn a_rejected_query_names_the_parameter() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        size: Option<u8>,
        force: Option<bool>,
        id: Option<uuid::Uuid>,
        #[serde(rename = "filters.country")]
        country: Option<String>,
    }
    let read = async |query: &str| {
        let uri = format!("/?{query}");
        let mut parts = http::Request::builder().uri(uri).body(()).unwrap().into_parts().0;
        Query::<Asked>::from_request_parts(&mut parts, &()).await.map(|Query(asked)| asked)
    };
    let nothing = || Asked { size: None, force: None, id: None, country: None };
    let country = |country: &str| Asked { country: Some(country.to_owned()), ..nothing() };
    for (query, asked) in [
        ("", nothing()),
        ("size=7", Asked { size: Some(7), ..nothing() }),
        ("size=%37", Asked { size: Some(7), ..nothing() }),
        ("force=true", Asked { force: Some(true), ..nothing() }),
        ("force=1", Asked { force: Some(true), ..nothing() }),
        ("force=false", Asked { force: Some(false), ..nothing() }),
        ("force=0", Asked { force: Some(false), ..nothing() }),
        ("filters.country=de+at", country("de at")),
        ("filters[country]=de", country("de")),
        ("filters%5Bcountry%5D=de", country("de")),
    ] {
        assert_eq!(read(query).await.unwrap(), asked, "{query}");
    }
    for (query, field, code) in [
        ("size=x", "size", "type"),
        ("size=300", "size", "type"),
        ("size=", "size", "type"),
        ("size=1&size=2", "size", "duplicate"),
        ("colour=1", "colour", "unknown_field"),
        ("filters.country=a&filters[country]=a", "filters.country", "duplicate"),
        ("filters[]=1", "filters[]", "unknown_field"),
        ("size=%00", "size", "nul"),
        ("%00=1", "\u{fffd}", "nul"),
        ("size=%ff", "size", "type"),
        ("force=yes", "force", "type"),
        ("id=x", "id", "type"),
    ] {
        let problem = read(query).await.unwrap_err();
        let errors = errors(&problem);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!((&errors[0]["field"], &errors[0]["code"]), (&json!(field), &json!(code)), "{query}");
    }
    let problem = read("size=x&force=2&id=1&colour=red").await.unwrap_err();
    let messages: Vec<Value> = errors(&problem).into_iter().map(|error| error["message"].clone()).collect();
    assert_eq!(
        messages,
        [
            "size must be a whole number",
            "force must be true or false",
            "id is not an id (expected a UUID)",
            "colour is not a parameter of this request",
        ]
    );
}

#[test]
fn an_item_is_rejected_like_a_whole_body() {
    for (item, field, code) in [
        (json!({"inner": [{"size": "x"}]}), "inner[0].size", "type"),
        (json!({}), "inner", "required"),
        (json!({"inner": [{"\0": 1}]}), "inner[0].\u{fffd}", "nul"),
        (json!([[]]), "item", "type"),
        (Value::Null, "item", "type"),
    ] {
        let first = errors(&read_item::<Outer>(item.clone()).unwrap_err()).remove(0);
        assert_eq!((&first["field"], &first["code"]), (&json!(field), &json!(code)), "{item}");
    }
}

#[test]
fn invalid_json_is_reported_with_its_place() {
    for (bytes, detail) in [
        (&b""[..], "the body is empty; send a JSON object, such as {}"),
        (b"{", "not valid JSON at line 1, column 1: it ends before the JSON is complete"),
        (b"{} x", "not valid JSON at line 1, column 4: more text follows the complete JSON"),
        (
            b"{\n  \"a\": 1,\n  b: 2\n}",
            "not valid JSON at line 3, column 3: a name in double quotes is expected here, and no comma before `}`",
        ),
        (
            b"{\"a\": 1,}",
            "not valid JSON at line 1, column 9: a name in double quotes is expected here, and no comma before `}`",
        ),
        (b"\0", "not valid JSON at line 1, column 1: a value is expected here"),
        (b"{\"inner\":\"\xc3\x28\"}", "the body is not UTF-8: byte 11 is not part of a character"),
    ] {
        let problem = read_json::<Outer>(bytes).unwrap_err();
        assert_eq!((problem.code(), problem.detail()), (Code::MalformedJson, detail), "{bytes:?}");
        assert_eq!(errors(&problem), [json!({"field": "body", "code": "json", "message": detail})]);
    }
}

#[test]
fn a_compressed_body_is_rejected_before_it_is_read() {
    let headers = |coding: &'static str| {
        http::HeaderMap::from_iter([(http::header::CONTENT_ENCODING, coding.parse().unwrap())])
    };
    for coding in ["gzip", "br", "x", "gzip, identity"] {
        let problem = check_not_compressed(&headers(coding)).unwrap_err();
        assert_eq!(problem.code(), Code::UnsupportedMediaType, "{coding}");
    }
    for coding in ["", "identity", "Identity"] {
        assert!(check_not_compressed(&headers(coding)).is_ok(), "{coding}");
    }
}

#[tokio::test]
async fn an_optional_body_may_be_empty_whether_its_type_is_named_or_not() {
    let read = async |kind: Option<&str>, body: &'static str| {
        let mut request = axum::extract::Request::new(body.into());
        if let Some(kind) = kind {
            request.headers_mut().insert(http::header::CONTENT_TYPE, kind.parse().unwrap());
        }
        let read = OptionalJson::<Inner>::from_request(request, &()).await;
        read.map(|OptionalJson(inner)| inner.is_some()).map_err(|problem| problem.code())
    };
    assert_eq!(read(None, "").await, Ok(false));
    assert_eq!(read(Some("application/json"), "").await, Ok(false));
    assert_eq!(read(Some("text/plain"), "").await, Err(Code::UnsupportedMediaType));
    assert_eq!(read(Some("application/json"), " ").await, Err(Code::MalformedJson));
    assert_eq!(read(Some("application/json"), r#"{"size": 1}"#).await, Ok(true));
    assert_eq!(read(None, r#"{"size": 1}"#).await, Err(Code::UnsupportedMediaType));
}
