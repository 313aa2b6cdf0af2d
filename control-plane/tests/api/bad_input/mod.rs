//! Invalid input is rejected with a problem that has a stable code and the field's path, never with a server error,
//! and without side effects. Unusual but valid input is returned unchanged.
//!
//! Most cases are derived from the API document: values beyond a documented type or limit must be rejected.

use axum::body::Body;
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};

mod limits;
mod requests;
mod texts;

use self::requests::{InvalidRequest, Operation};
use crate::harness::Api;
use crate::no_side_effects::Snapshot;

/// An API with an account; every request carries its key.
struct Target {
    api: Api,
    key: String,
}

impl Target {
    async fn start() -> Self {
        let api = Api::start(&[]).await;
        let (_, account_id) = api.trial_on(Plan::Scale).await;
        let (_, key) = api.insert_key(account_id, ScopeSet::FULL, Restrictions::default(), None).await;
        Self { api, key }
    }

    /// Sends a raw body.
    async fn send(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> (StatusCode, Value) {
        let mut request = Request::builder()
            .method(method.parse::<Method>().unwrap())
            .uri(path)
            .header("authorization", format!("Bearer {}", self.key));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(Body::from).unwrap_or_default();
        let response = self.api.raw_response(request.body(body).unwrap()).await;
        let status = response.status();
        let kind = response.headers()["content-type"].clone();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let response: Value = serde_json::from_slice(&bytes).unwrap();
        if status.is_client_error() {
            assert_eq!(kind, "application/problem+json", "{method} {path}: {response}");
        }
        (status, response)
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send("POST", path, Some(body.to_string().into_bytes())).await
    }
}

/// Asserts a client error and returns its code and first invalid field.
#[track_caller]
fn assert_rejected(context: &str, (status, problem): (StatusCode, Value)) -> (String, String) {
    assert!(status.is_client_error(), "{context}: {status} {problem}");
    let code = problem["code"].as_str().unwrap().to_owned();
    let field = problem["fieldErrors"][0]["field"].as_str().unwrap_or_default().to_owned();
    (code, field)
}

#[tokio::test]
async fn every_input_that_the_document_excludes_is_rejected_without_side_effects() {
    let target = Target::start().await;
    // Items are read only if the folder exists.
    let (_, folder) = target.post("/api/folders", &json!({"name": "F"})).await;
    let before = Snapshot::take(&target.api).await;
    let (mut tried, mut wrong) = (0, Vec::new());
    for operation in requests::operations() {
        for InvalidRequest { path, query, body, field } in operation.invalid_requests() {
            let sent = body.as_ref().map(|body| body.to_string().into_bytes());
            let is_resource = field.as_deref().is_some_and(|field| field.starts_with("resources[0]"));
            let path = if is_resource { folder["id"].as_str() } else { path.as_deref() };
            let address = operation.address(path, &query);
            let context = format!("{} {address} {}", operation.id, body.clone().unwrap_or_default());
            let context: String = context.chars().take(300).collect();
            let response = target.send(&operation.method, &address, sent).await;
            let of_item = |field: &str| {
                let prefixes = ["pages[0]", "resources[0]", "pageIds[0]"];
                prefixes.iter().find_map(|prefix| field.strip_prefix(prefix)).map(str::to_owned)
            };
            // A launch is rejected as a whole.
            let of_item = field.as_deref().and_then(of_item).filter(|_| operation.path != "/api/launch");
            if let Some(field_path) = of_item {
                // An item of a batch is rejected individually, by the same rules.
                let (result, field_path) = (&response.1["results"][0], field_path.trim_start_matches('.'));
                let names_field = result["error"].as_str().is_some_and(|error| error.contains(field_path));
                if result["status"] != "error" || !names_field {
                    wrong.push(format!("{context}: {response:?}, not an error about {field_path}"));
                }
                tried += 1;
                continue;
            }
            let right = field.as_deref().map_or(("not_found", ""), |field| ("validation_failed", field));
            let (code, named) = assert_rejected(&context, response);
            if right != (code.as_str(), named.as_str()) {
                wrong.push(format!("{context}: {code} {named}, not {right:?}"));
            }
            tried += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(before.check().await, Ok(()));
    assert!(tried > 400, "only {tried} invalid requests were derived from the document");
}

#[tokio::test]
async fn every_operation_rejects_a_body_that_is_not_a_json_object() {
    let target = Target::start().await;
    let before = Snapshot::take(&target.api).await;
    let many: Map<String, Value> = (0..10_000).map(|at| (format!("key{at}"), json!(at))).collect();
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("malformed_json", Vec::new()),
        ("malformed_json", b"{".to_vec()),
        ("malformed_json", b"{\"a\":1} x".to_vec()),
        ("malformed_json", b"\xff\xfe{}".to_vec()),
        ("malformed_json", b"{\"a\":\"\xc3\x28\"}".to_vec()),
        ("malformed_json", b"{\"a\":NaN}".to_vec()),
        ("malformed_json", format!("{{\"a\":{}", "[".repeat(100_000)).into_bytes()),
        ("validation_failed", b"null".to_vec()),
        ("validation_failed", b"[]".to_vec()),
        ("validation_failed", b"[1, \"two\", null]".to_vec()),
        ("validation_failed", b"\"text\"".to_vec()),
        ("validation_failed", b"1e400".to_vec()),
        ("validation_failed", b"{\"unknown\":1}".to_vec()),
        ("validation_failed", b"{\"\":1}".to_vec()),
        ("validation_failed", format!("{{\"deep\":{}}}", deep(127)).into_bytes()),
        ("validation_failed", format!("{{\"deep\":{}}}", deep(100_000)).into_bytes()),
        ("validation_failed", format!("{{\"number\":{}}}", "9".repeat(10_000)).into_bytes()),
        ("validation_failed", Value::Object(many).to_string().into_bytes()),
    ];
    for operation in requests::operations().into_iter().filter(|operation| operation.body.is_some()) {
        for (code, body) in bodies.iter().filter(|(_, body)| operation.requires_body || !body.is_empty()) {
            let shown: String = String::from_utf8_lossy(body).chars().take(80).collect();
            let context = format!("{} {shown}", operation.id);
            let response =
                target.send(&operation.method, &operation.address(None, ""), Some(body.clone())).await;
            assert_eq!(assert_rejected(&context, response).0, *code, "{context}");
        }
    }
    assert_eq!(before.check().await, Ok(()));
}

#[tokio::test]
async fn a_body_of_another_type_or_above_the_size_limit_is_rejected() {
    let target = Target::start().await;
    let before = Snapshot::take(&target.api).await;
    for operation in requests::operations().into_iter().filter(|operation| operation.body.is_some()) {
        let send = async |kind: &str, body: Vec<u8>| {
            let request = Request::builder()
                .method(operation.method.as_str())
                .uri(operation.address(None, ""))
                .header("authorization", format!("Bearer {}", target.key))
                .header("content-type", kind);
            let response = target.api.raw_response(request.body(Body::from(body)).unwrap()).await;
            response.status()
        };
        for kind in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", ""]
        {
            let status = send(kind, b"{}".to_vec()).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{} {kind}", operation.id);
        }
        let large = match (operation.path.as_str(), operation.method.as_str()) {
            // The limit of 160 MiB has its own tests.
            ("/api/pages/batch" | "/api/launch", "POST") => continue,
            ("/api/pages" | "/api/pages/{id}" | "/api/pages/batch", _) => 4 << 20,
            ("/api/deploy", _) => 8 << 20,
            _ => 1 << 20,
        };
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(large));
        let status = send("application/json", body.into_bytes()).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{}", operation.id);
        let allowed = format!("{{\"a\":\"{}\"}}", "x".repeat(large - 8));
        let status = send("application/json; charset=utf-8", allowed.into_bytes()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{}: parsed, and rejected for its field", operation.id);
    }
    assert_eq!(before.check().await, Ok(()));
}

#[tokio::test]
async fn a_forged_cursor_is_rejected_or_stays_within_the_callers_list() {
    let target = Target::start().await;
    for name in ["one", "two", "three"] {
        assert_eq!(target.post("/api/folders", &json!({"name": name})).await.0, StatusCode::CREATED);
    }
    let (_, part) = target.send("GET", "/api/folders?limit=1", None).await;
    let cursor = part["nextCursor"].as_str().unwrap().to_owned();
    let before = Snapshot::take(&target.api).await;
    let lists: Vec<Operation> =
        requests::operations().into_iter().filter(|operation| operation.has_query("cursor")).collect();
    assert!(lists.len() > 6, "only {} listings", lists.len());
    for list in &lists {
        for at in 0..cursor.len() {
            for with in ["A", "_", "-", "9", ".", "%00", "%ff", ""] {
                let changed = format!("{}{with}{}", &cursor[..at], &cursor[at + 1..]);
                // All lists share this code, so one list is enough.
                if list.id != "folders.list" && at % 8 != 0 {
                    continue;
                }
                let address = list.address(None, &format!("cursor={changed}"));
                let (status, response) = target.send("GET", &address, None).await;
                assert!(!status.is_server_error(), "{address}: {response}");
            }
        }
        for extreme in ["", "AAAA", "gAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "f_________________________________8"]
        {
            let address = list.address(None, &format!("cursor={extreme}"));
            let (status, response) = target.send("GET", &address, None).await;
            assert!(!status.is_server_error(), "{address}: {response}");
        }
    }
    assert_eq!(before.check().await, Ok(()));
}
