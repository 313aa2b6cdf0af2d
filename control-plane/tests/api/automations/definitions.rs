//! Definitions that are refused: each error has the path of what is wrong, and nothing is stored.

use domain::plans::Plan;
use http::Method;
use serde_json::{Value, json};

use super::fixture::{Owner, http, stop, with};
use crate::no_side_effects::Snapshot;

fn set(id: &str, value: &str) -> Value {
    json!({"id": id, "type": "set", "values": {"a": value}})
}

/// A step inside `levels` conditions.
fn nested(levels: usize) -> Value {
    (0..levels).fold(stop(), |inner, level| {
        json!({"id": format!("c{level}"), "type": "condition", "branches": [{"if": "true", "steps": [inner]}]})
    })
}

/// Bodies that are refused, with the path and the code of their first error.
fn wrong() -> Vec<(Value, &'static str, &'static str)> {
    let trigger = |trigger: Value| with(http(), "trigger", trigger);
    let steps = |steps: Value| with(http(), "steps", steps);
    let cron = |cron: &str, zone: &str| trigger(json!({"type": "schedule", "cron": cron, "timezone": zone}));
    let many: Vec<Value> = (0..501).map(|at| set(&format!("s{at}"), "x")).collect();
    vec![
        (with(http(), "name", json!("  ")), "name", "required"),
        (with(http(), "slug", json!("A b")), "slug", "slug"),
        (with(http(), "description", json!("x".repeat(501))), "description", "too_long"),
        (trigger(json!({"type": "email"})), "trigger.type", "unknown_type"),
        (trigger(json!({"type": "http", "method": "post"})), "trigger.method", "type"),
        (trigger(json!({"type": "http", "colour": 1})), "trigger.colour", "unknown_field"),
        (
            trigger(json!({"type": "http", "auth": {"type": "secret", "env": "TOKEN"}})),
            "trigger.auth.env",
            "unknown_env",
        ),
        (cron("0 7 30 2 *", "UTC"), "trigger.cron", "cron"),
        (cron("0 7 * *", "UTC"), "trigger.cron", "cron"),
        (cron("0 7 * * *", "Europe/Atlantis"), "trigger.timezone", "unknown_timezone"),
        (steps(json!([])), "steps", "required"),
        (
            steps(json!([stop(), {"id": "b", "type": "fetsh", "url": "https://a.test"}])),
            "steps[1].type",
            "unknown_type",
        ),
        (steps(json!([{"id": "b", "type": "fetch"}])), "steps[0].url", "required"),
        (steps(json!([{"id": "b", "type": "fetch", "url": 7}])), "steps[0].url", "type"),
        (steps(json!([set("a", "{{ trigger.payload")])), "steps[0].values.a", "template"),
        (steps(json!([set("a", "{{ 1 + }}")])), "steps[0].values.a", "template"),
        (
            steps(json!([set("a", "{{ steps.later.x }}"), set("later", "x")])),
            "steps[0].values.a",
            "unknown_step",
        ),
        (steps(json!([set("a", "{{ env.NOTHING }}")])), "steps[0].values.a", "unknown_env"),
        (steps(json!([set("a", "x"), set("a", "y")])), "steps[1].id", "duplicate"),
        (steps(json!([set("1a", "x")])), "steps[0].id", "identifier"),
        (
            steps(json!([{"id": "b", "type": "fetch", "url": "https://a.test", "timeoutMs": 70_000}])),
            "steps[0].timeoutMs",
            "range",
        ),
        (
            steps(json!([{"id": "b", "type": "create_entry", "pageId": "x", "data": {}}])),
            "steps[0].pageId",
            "type",
        ),
        (
            steps(json!([nested(5)])),
            "steps[0].branches[0].steps[0].branches[0].steps[0].branches[0].steps[0].branches[0].steps[0].branches[0].steps",
            "too_deep",
        ),
        (steps(json!(many)), "steps", "too_many"),
        (with(http(), "concurrency", json!({"limit": 0})), "concurrency.limit", "range"),
        (
            with(http(), "concurrency", json!({"limit": 1, "key": "{{ env.X }}"})),
            "concurrency.key",
            "reference",
        ),
        (with(http(), "env", json!({"1A": "x"})), "env.1A", "identifier"),
        (with(http(), "env", json!({"A": 7})), "env.A", "type"),
        (with(http(), "env", json!({"A": "x".repeat(4_097)})), "env.A", "too_long"),
        (with(http(), "enabled", json!("yes")), "enabled", "type"),
        (with(http(), "colour", json!(1)), "colour", "unknown_field"),
    ]
}

#[tokio::test]
async fn each_wrong_part_is_named_by_its_path_and_nothing_is_stored() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.automation(with(http(), "slug", json!("other"))).await;
    let before = Snapshot::take(&owner.api).await;
    let mut unexpected = Vec::new();
    for (body, field, code) in wrong() {
        for (method, path) in [(Method::POST, "/api/automations"), (Method::PUT, &path)] {
            let shown: String = body.to_string().chars().take(200).collect();
            let (status, kind, errors) = owner.refused(method.clone(), path, body.clone()).await;
            let first = errors.first().map(|(field, code)| (field.as_str(), code.as_str()));
            if (status, kind.as_str(), first) != (400, "validation_failed", Some((field, code))) {
                unexpected.push(format!("{method} {shown}: {status} {kind} {errors:?}, not {field} {code}"));
            }
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    assert_eq!(before.check().await, Ok(()));
}

#[tokio::test]
async fn a_body_that_is_too_large_or_too_deep_is_refused() {
    let owner = Owner::new(&[]).await;
    let large = with(http(), "description", json!("x".repeat(1 << 20)));
    assert_eq!(owner.refused(Method::POST, "/api/automations", large).await.0, 413);
    for levels in [126, 2_000] {
        let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = format!(
            r#"{{"name": "A", "slug": "a", "trigger": {{"type": "http"}},
                "steps": [{{"id": "a", "type": "set", "values": {{"a": {deep}}}}}]}}"#
        );
        let key = format!("Bearer {}", owner.key);
        let headers = [("authorization", key.as_str()), ("content-type", "application/json")];
        let response = owner.public(Method::POST, "/api/automations", &headers, body).await;
        assert_eq!(response.status, 400, "{levels}: {response:?}");
    }
    assert_eq!(owner.get("/api/automations").await["automations"], json!([]));
}

#[tokio::test]
async fn the_plan_limits_steps_requests_and_variables_nested_ones_included() {
    let owner = Owner::on(Plan::Free, &[]).await;
    let fetch = |at: usize| json!({"id": format!("f{at}"), "type": "fetch", "url": "https://a.test"});
    let eleven: Vec<Value> = (0..10).map(|at| set(&format!("s{at}"), "x")).chain([stop()]).collect();
    let inner: Vec<Value> = (0..10).map(|at| set(&format!("s{at}"), "x")).collect();
    let each = json!([{"id": "each", "type": "for_each", "items": "{{ trigger.payload }}", "steps": inner}]);
    let four = json!({"A": "1", "B": "2", "C": "3", "D": "4"});
    for (body, field) in [
        (with(http(), "steps", json!(eleven)), "steps"),
        (with(http(), "steps", each), "steps"),
        (with(http(), "steps", json!([fetch(0), fetch(1), fetch(2)])), "steps"),
        (with(http(), "env", four), "env"),
    ] {
        let refused = owner.refused(Method::POST, "/api/automations", body).await;
        assert_eq!(refused.2, [(field.to_owned(), "plan_limit".to_owned())]);
    }
    let ten: Vec<Value> = (0..9).map(|at| set(&format!("s{at}"), "x")).chain([stop()]).collect();
    owner.automation(with(http(), "steps", json!(ten))).await;
}

#[tokio::test]
async fn the_checked_in_document_accepts_a_definition_and_refuses_a_wrong_one() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/components/schemas/AutomationDefinition",
        "components": document["components"],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut definition = http();
    definition.as_object_mut().unwrap().retain(|name, _| name == "trigger" || name == "steps");
    assert!(validator.is_valid(&definition));
    assert!(!validator.is_valid(&with(definition.clone(), "steps", json!([{"id": "a", "type": "fetch"}]))));
    assert!(!validator.is_valid(&with(definition, "trigger", json!({"type": "email"}))));
}
