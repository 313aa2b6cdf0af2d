//! Attacks of visitors: markup, templates and addresses in what they submit.

use domain::entries;
use serde_json::{Map, Value, json};

use super::simulation::Memory;
use crate::execution::{Effect, Outcome};

const ID: &str = "0198c5f0-0000-7000-8000-000000000001";
const MARKUP: &str = "<img src=x onerror=\"alert('1')\">&";
const ESCAPED: &str = "&lt;img src=x onerror=&quot;alert(&#x27;1&#x27;)&quot;&gt;&amp;";

/// Returns the effect of one step, which reads the payload.
fn effect(mut step: Value, payload: Value) -> Effect {
    step["id"] = json!("step");
    let mut memory = Memory::compiled(json!([step]), payload);
    memory.facts.env = std::sync::Arc::new(json!({"TOKEN": "secret-token"}));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    let calls = std::mem::take(&mut memory.state().calls);
    calls[0].effect.clone()
}

fn html_of(html: &str, payload: Value) -> String {
    match effect(json!({"type": "update_page", "pageId": ID, "html": html}), payload) {
        Effect::UpdatePage(edit) => edit.html.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn entry_of(data: Value, payload: Value) -> Map<String, Value> {
    match effect(json!({"type": "create_entry", "pageId": ID, "data": data}), payload) {
        Effect::CreateEntry { data, .. } => data,
        other => panic!("{other:?}"),
    }
}

fn body_of(headers: Value, body: Value, payload: Value) -> Value {
    let step = json!({"type": "fetch", "method": "POST", "url": "https://x.example", "headers": headers, "body": body});
    match effect(step, payload) {
        Effect::Fetch { body, .. } => body.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_in_a_page_cannot_carry_markup() {
    let payload = json!({"name": MARKUP});
    assert_eq!(html_of("<p>{{ trigger.payload.name }}</p>", payload.clone()), format!("<p>{ESCAPED}</p>"));
    assert_eq!(html_of("{{ trigger.payload.name }}", payload), ESCAPED);
}

#[test]
fn a_whole_object_in_a_page_cannot_carry_markup() {
    let payload = json!({"a": [MARKUP, {MARKUP: MARKUP}], "b": 1});
    for html in ["{{ trigger.payload }}", "<pre>{{ trigger.payload }}</pre>", "{{ [trigger.payload] }}"] {
        let shown = html_of(html, payload.clone());
        assert!(!shown.contains("<img") && shown.contains("&lt;img"), "{html}: {shown}");
    }
    let shown: Value = serde_json::from_str(&html_of("{{ trigger.payload }}", payload)).unwrap();
    assert_eq!(shown, json!({"a": [ESCAPED, {ESCAPED: ESCAPED}], "b": 1}));
}

/// Entries are data, not HTML: the page escapes them when it shows them, and `find` compares them with what visitors
/// send. An escaped value would be shown with its escapes, and never be found again.
#[test]
fn a_whole_object_in_an_entry_cannot_carry_markup() {
    let payload =
        json!({"name": MARKUP, "tags": ["a", MARKUP], "link": "javascript:alert(1)", "braces": "{{other}}"});
    let data = json!({
        "name": "{{ trigger.payload.name }}", "tags": "{{ trigger.payload.tags }}",
        "link": "{{ trigger.payload.link }}", "braces": "{{ trigger.payload.braces }}", "other": "not read",
    });
    let entry = entry_of(data, payload.clone());
    assert_eq!((&entry["name"], &entry["tags"]), (&payload["name"], &payload["tags"]));
    assert_eq!(entries::check_data(&entry), []);
    let template = "<li title=\"{{name}}\">{{name}} {{tags}} {{braces}} <a href=\"{{link}}\">x</a></li>";
    let shown = entries::Template::parse(template).unwrap().render(&entry);
    assert!(!shown.contains("<img") && !shown.contains("javascript:"), "{shown}");
    assert!(shown.contains("&lt;img") && !shown.contains("&amp;lt;"), "escaped once: {shown}");
    assert!(!shown.contains("not read"), "{shown}");
    // An object as a value is refused by the rules of entries, so nothing of it is shown.
    let entry = entry_of(json!({"all": "{{ trigger.payload }}"}), payload);
    assert_eq!(entries::check_data(&entry)[0].field, "data.all");
}

#[test]
fn a_submission_with_braces_is_never_evaluated() {
    let evil = "{{ env.TOKEN }}";
    let payload = json!({"name": evil, "list": [evil, {evil: "{{ 1 + 1 }}"}]});
    assert_eq!(html_of("<b>{{ trigger.payload.name }}</b>", payload.clone()), format!("<b>{evil}</b>"));
    let entry = entry_of(
        json!({"a": "{{ trigger.payload.name }}", "b": "{{ trigger.payload.list }}"}),
        payload.clone(),
    );
    assert_eq!((&entry["a"], &entry["b"]), (&payload["name"], &payload["list"]));
    let body = body_of(json!({}), json!({"all": "{{ trigger.payload }}"}), payload.clone());
    assert_eq!(body, json!({"all": payload}));
    // Not by a second step that reads the output of the first, either.
    let steps = json!([
        {"id": "one", "type": "set", "values": {"v": "{{ trigger.payload.name }}", "{{ env.TOKEN }}": 1}},
        {"id": "two", "type": "transform", "input": ["{{ steps.one.v }}"], "map": "<{{ item }}>"},
        {"id": "three", "type": "for_each", "items": "{{ steps.two }}", "steps": [
            {"id": "four", "type": "set", "values": {"v": "{{ item }} {{ steps.one }}"}}]},
    ]);
    let mut memory = Memory::compiled(steps, payload);
    memory.facts.env = std::sync::Arc::new(json!({"TOKEN": "secret-token"}));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.output("two"), json!([format!("<{evil}>")]));
    assert!(!memory.output("three").to_string().contains("secret-token"));
}

#[test]
fn a_value_cannot_add_members_to_a_json_body() {
    let payload = json!({"name": "x\", \"admin\": true, \"y\": \"\\\n"});
    let body = body_of(
        json!({"Content-Type": "application/json"}),
        json!("{\"name\": \"{{ trigger.payload.name }}\"}"),
        payload.clone(),
    );
    let read: Value = serde_json::from_str(body.as_str().unwrap()).unwrap();
    assert_eq!(read, json!({"name": payload["name"]}));
    // In an object, JSON itself escapes; whole values keep their type.
    let body = body_of(
        json!({}),
        json!({"name": "{{ trigger.payload.name }}", "all": "{{ trigger.payload }}"}),
        payload.clone(),
    );
    assert_eq!(body, json!({"name": payload["name"], "all": payload}));
}

#[test]
fn a_value_cannot_leave_its_part_of_a_url() {
    let payload = json!({"id": "../admin?x=1#y", "list": ["a/b", {"c": "&d"}], "form": "a=1&admin=true"});
    let step = json!({"type": "fetch", "url": "https://x.example/{{ trigger.payload.id }}?q={{ trigger.payload.list }}"});
    let Effect::Fetch { url, .. } = effect(step, payload.clone()) else { panic!("no request") };
    let expected =
        "https://x.example/..%2Fadmin%3Fx%3D1%23y?q=%5B%22a%2Fb%22%2C%7B%22c%22%3A%22%26d%22%7D%5D";
    assert_eq!(url, expected);
    let headers = json!({"Content-Type": "application/x-www-form-urlencoded"});
    let body = body_of(headers, json!("name={{ trigger.payload.form }}"), payload);
    assert_eq!(body, json!("name=a%3D1%26admin%3Dtrue"));
}

#[test]
fn an_answer_in_html_cannot_carry_markup() {
    let payload = json!({"name": MARKUP, "list": [MARKUP]});
    for body in [
        json!("<p>{{ trigger.payload.name }}</p>"),
        json!("{{ trigger.payload }}"),
        json!({"a": "{{ trigger.payload.list }}", "b": "{{ trigger.payload.name }}"}),
    ] {
        let step =
            json!({"type": "respond", "headers": {"content-type": "text/HTML; charset=utf-8"}, "body": body});
        let Effect::Respond { body: Some(answer), .. } = effect(step, payload.clone()) else {
            panic!("no answer")
        };
        assert!(!answer.to_string().contains("<img") && answer.to_string().contains("&lt;img"), "{answer}");
    }
}
