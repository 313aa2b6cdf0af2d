//! Every limit: the largest allowed value is accepted, the next one rejected.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Target, assert_rejected};
use crate::no_side_effects::Snapshot;

/// A field, and bodies with it at its limit and just beyond.
struct Limit {
    path: &'static str,
    field: &'static str,
    at_limit: Value,
    above_limit: Value,
}

fn text(path: &'static str, field: &'static str, most: usize, body: fn(String) -> Value) -> [Limit; 2] {
    // Four bytes per character, because limits count characters.
    ["x", "\u{1f980}"].map(|letter| Limit {
        path,
        field,
        at_limit: body(letter.repeat(most)),
        above_limit: body(letter.repeat(most + 1)),
    })
}

fn field(part: Value) -> Value {
    let mut field = json!({"name": "a", "label": "A", "type": "text"});
    field.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    json!({"name": "F", "fields": [field]})
}

fn options(count: usize) -> Value {
    let options: Vec<String> = (0..count).map(|at| at.to_string()).collect();
    field(json!({"type": "select", "options": options}))
}

fn fields(count: usize) -> Value {
    let fields: Vec<Value> =
        (0..count).map(|at| json!({"name": format!("f{at}"), "label": "L", "type": "text"})).collect();
    json!({"name": "F", "fields": fields})
}

fn limits() -> Vec<Limit> {
    let texts = [
        text("/api/folders", "name", 80, |it| json!({"name": it})),
        text("/api/folders", "description", 500, |it| json!({"name": "F", "description": it})),
        text("/api/keys", "label", 80, |it| json!({"label": it})),
        text("/api/analytics/sites", "name", 80, |it| json!({"name": it})),
        text("/api/forms", "name", 200, |it| json!({"name": it, "fields": fields(1)["fields"]})),
        text(
            "/api/forms",
            "successMessage",
            2_000,
            |it| json!({"name": "F", "fields": fields(1)["fields"], "successMessage": it}),
        ),
        text(
            "/api/forms",
            "submitLabel",
            100,
            |it| json!({"name": "F", "fields": fields(1)["fields"], "submitLabel": it}),
        ),
        text("/api/forms", "fields[0].label", 500, |it| field(json!({"label": it}))),
        text("/api/forms", "fields[0].placeholder", 500, |it| field(json!({"placeholder": it}))),
        text("/api/forms", "fields[0].pattern", 500, |it| field(json!({"pattern": it}))),
        text("/api/forms", "fields[0].options[0]", 500, |it| {
            field(json!({"type": "select", "options": [it]}))
        }),
        text(
            "/api/webhooks",
            "description",
            500,
            |it| json!({"url": "https://a.example", "description": it}),
        ),
        text("/api/pages", "title", 300, |it| json!({"slug": fresh(), "title": it, "html": "x"})),
    ];
    let one = |path, field, at_limit, above_limit| Limit { path, field, at_limit, above_limit };
    let form = |max: i64| json!({"name": "F", "fields": fields(1)["fields"], "maxSubmissions": max});
    let page = |part: Value| {
        let mut page = json!({"slug": fresh(), "title": "T", "html": "x"});
        page.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        page
    };
    let name = |name: String| json!({"name": name});
    let hook = |bytes: usize| json!({"url": format!("https://a.example/{}", "x".repeat(bytes - 18))});
    let with_events = |count: usize| json!({"url": "https://a.example", "events": vec!["*"; count]});
    let with_mapping = |count: usize| {
        let mapping: serde_json::Map<_, _> = (0..count).map(|at| (at.to_string(), json!("x"))).collect();
        json!({"url": "https://a.example", "fieldMapping": mapping})
    };
    let mut limits: Vec<Limit> = texts.into_iter().flatten().collect();
    limits.extend([
        one("/api/forms", "fields", fields(100), fields(101)),
        one("/api/forms", "fields", fields(1), fields(0)),
        one("/api/forms", "fields[0].options", options(200), options(201)),
        one(
            "/api/forms",
            "fields[0].name",
            field(json!({"name": "n".repeat(64)})),
            field(json!({"name": "n".repeat(65)})),
        ),
        one(
            "/api/forms",
            "fields[0].minLength",
            field(json!({"minLength": 5, "maxLength": 5})),
            field(json!({"minLength": 6, "maxLength": 5})),
        ),
        one(
            "/api/forms",
            "fields[0].minLength",
            field(json!({"minLength": 20_000})),
            field(json!({"minLength": 20_001})),
        ),
        one(
            "/api/forms",
            "fields[0].min",
            field(json!({"type": "number", "min": 1, "max": 1.5})),
            field(json!({"type": "number", "min": 2, "max": 1.5})),
        ),
        one("/api/forms", "maxSubmissions", form(1), form(0)),
        one("/api/forms", "maxSubmissions", form(1_000_000_000), form(1_000_000_001)),
        one("/api/account/subdomains", "name", name("a".repeat(3)), name("a".repeat(2))),
        one("/api/account/subdomains", "name", name("a".repeat(30)), name("a".repeat(31))),
        one("/api/pages", "slug", page(json!({"slug": "aa"})), page(json!({"slug": "a"}))),
        one(
            "/api/pages",
            "slug",
            page(json!({"slug": "a".repeat(200)})),
            page(json!({"slug": "a".repeat(201)})),
        ),
        one(
            "/api/pages",
            "html",
            page(json!({"html": "x".repeat(512 << 10)})),
            page(json!({"html": "x".repeat((512 << 10) + 1)})),
        ),
        one(
            "/api/pages",
            "html",
            page(json!({"html": "é".repeat(256 << 10)})),
            page(json!({"html": "é".repeat((256 << 10) + 1)})),
        ),
        one(
            "/api/pages",
            "css",
            page(json!({"css": "x".repeat(128 << 10)})),
            page(json!({"css": "x".repeat((128 << 10) + 1)})),
        ),
        one("/api/webhooks", "url", hook(2_000), hook(2_001)),
        one("/api/webhooks", "events", with_events(6), with_events(7)),
        one("/api/webhooks", "fieldMapping", with_mapping(200), with_mapping(201)),
        one(
            "/api/keys",
            "resourceIds.pages",
            json!({"label": "K", "resourceIds": {"pages": []}}),
            too_many_ids(),
        ),
    ]);
    limits
}

fn too_many_ids() -> Value {
    let ids: Vec<String> = (0..1_001).map(|at| format!("00000000-0000-0000-0000-{at:012}")).collect();
    json!({"label": "K", "resourceIds": {"pages": ids}})
}

/// A new slug.
fn fresh() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("page-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test]
async fn values_at_a_limit_are_accepted_and_values_beyond_it_rejected() {
    let target = Target::start().await;
    let limits = limits();
    let before = Snapshot::take(&target.api).await;
    for limit in &limits {
        let context = format!("{} {}", limit.path, limit.field);
        let named = assert_rejected(&context, target.post(limit.path, &limit.above_limit).await);
        assert_eq!(named, ("validation_failed".to_owned(), limit.field.to_owned()), "{context}");
    }
    assert_eq!(before.check().await, Ok(()));
    for limit in &limits {
        let (status, response) = target.post(limit.path, &limit.at_limit).await;
        assert_eq!(status, StatusCode::CREATED, "{} {}: {response}", limit.path, limit.field);
    }
}

#[tokio::test]
async fn one_call_moves_at_most_two_hundred_resources() {
    let target = Target::start().await;
    let (_, folder) = target.post("/api/folders", &json!({"name": "F"})).await;
    let path = format!("/api/folders/{}/organize", folder["id"].as_str().unwrap());
    let resources = |count: usize| {
        let one = json!({"type": "page", "id": "00000000-0000-0000-0000-000000000000"});
        json!({"resources": vec![one; count]})
    };
    let (status, moved) = target.post(&path, &resources(200)).await;
    assert_eq!((status, &moved["failed"]), (StatusCode::OK, &json!(200)));
    for count in [0, 201] {
        let named = assert_rejected("resources", target.post(&path, &resources(count)).await);
        assert_eq!(named, ("validation_failed".to_owned(), "resources".to_owned()));
    }
}

#[tokio::test]
async fn invalid_timestamps_are_rejected_and_unusual_ones_stored() {
    let target = Target::start().await;
    let form = |at: &str| json!({"name": "F", "fields": fields(1)["fields"], "closesAt": at});
    for at in [
        "",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "2026-02-30",
        "2026-01-01T25:00:00Z",
        "-200000-01-01T00:00:00Z",
        "+200000-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "12026-01-01T00:00",
        "10:00",
    ] {
        let response = target.post("/api/forms", &form(at)).await;
        let named = assert_rejected(at, response);
        assert_eq!(named, ("validation_failed".to_owned(), "closesAt".to_owned()), "{at}");
    }
    for at in
        ["1970-01-01T00:00:00Z", "2026-06-30T23:59:60Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00+14:00"]
    {
        let (status, response) = target.post("/api/forms", &form(at)).await;
        assert_eq!(status, StatusCode::CREATED, "{at}: {response}");
    }
}
