//! Tests of reading, describing and storing definitions.

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::*;

const ID: &str = "0198c5f0-0000-7000-8000-000000000001";

/// One step of every type, with every field that it may have.
fn every_step() -> Value {
    json!([
        {"id": "a", "type": "set", "name": "Values", "if": "true", "onError": "continue", "timeoutMs": 500,
         "retry": {"max": 2, "backoff": "fixed"}, "testOutput": {"x": 1}, "values": {"x": "{{ 1 }}"}},
        {"id": "b", "type": "condition", "branches": [{"if": "trigger.payload.ok", "steps": [
            {"id": "c", "type": "stop", "status": "error", "message": "no"}]}],
         "else": [{"id": "d", "type": "respond", "status": 302, "headers": {"Location": "/x"}, "body": {"a": [1]}}]},
        {"id": "e", "type": "transform", "input": "{{ trigger.payload.rows }}", "filter": "item.ok",
         "sort": {"by": "item.n", "order": "desc"}, "map": {"n": "{{ item.n }}"}, "pick": ["n"]},
        {"id": "f", "type": "for_each", "items": "{{ steps.e }}", "as": "row", "concurrency": 5, "steps": [
            {"id": "g", "type": "fetch", "method": "POST", "url": "https://example.com/", "headers": {"x-a": "b"},
             "body": "text"}]},
        {"id": "h", "type": "wait", "resume": true, "timeout": "3d", "onTimeout": "continue"},
        {"id": "i", "type": "create_entry", "pageId": ID, "data": {"a": "b"}},
        {"id": "j", "type": "delete_entry", "pageId": ID, "entryId": "{{ steps.i.id }}"},
        {"id": "k", "type": "update_page", "slug": "xy", "upsert": true, "title": "t", "html": "<p>", "css": null,
         "entryTemplate": "{{name}}", "isPublished": true, "publishAt": null, "folderId": ID, "subdomainId": ID,
         "ifUnmodifiedSince": "{{ steps.x.updatedAt }}"},
        {"id": "l", "type": "find", "in": "submissions", "formId": ID, "where": {"a": 1}, "since": "x", "limit": 9},
        {"id": "m", "type": "create_submission", "formId": ID, "payload": {"a": 1}},
        {"id": "n", "type": "send_webhook", "webhookId": ID, "payload": {"a": 1}},
    ])
}

fn whole() -> Value {
    let trigger =
        json!({"type": "http", "method": "PUT", "auth": {"type": "hmac", "env": "KEY"}, "cors": true});
    json!({"trigger": trigger, "steps": every_step(), "concurrency": {"limit": 2, "key": "{{ trigger.payload.id }}"}})
}

fn errors_of(trigger: &Value, steps: &Value) -> Vec<(String, String)> {
    let errors = AutomationDefinition::read(&json!({"trigger": trigger, "steps": steps})).unwrap_err();
    errors.into_iter().map(|error| (error.field, error.message)).collect()
}

fn error_in(step: Value) -> (String, String) {
    let mut errors = errors_of(&json!({"type": "http"}), &json!([step]));
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

#[test]
fn every_field_survives_storage() {
    let definition = AutomationDefinition::read(&whole()).unwrap();
    let stored: Value = serde_json::from_str(&definition.canonical_json()).unwrap();
    assert_eq!(stored, whole());
    let again: AutomationDefinition = serde_json::from_value(stored).unwrap();
    assert_eq!((again.hash(), &again), (definition.hash(), &definition));
    let ids: Vec<_> = definition.all_steps().into_iter().map(|(_, step)| step.options.id.clone()).collect();
    assert_eq!(ids.concat(), "abcdefghijklmn");
    assert_eq!(definition.all_steps()[2].0, "steps[1].branches[0].steps[0]");
    let kinds: std::collections::BTreeSet<_> =
        definition.all_steps().into_iter().map(|(_, step)| step.action.kind()).collect();
    assert_eq!(kinds.len(), StepType::ALL.len(), "the example lacks a type");
}

#[test]
fn defaults_change_no_hash() {
    let short = json!({"trigger": {"type": "schedule", "cron": "0 7 * * *"},
        "steps": [{"id": "a", "type": "set", "values": {}}]});
    let long = json!({"concurrency": null, "trigger": {"cron": "0 7 * * *", "catchUp": "none", "type": "schedule"},
        "steps": [{"onError": "fail", "type": "set", "values": {}, "id": "a", "name": null}]});
    let read = |value| AutomationDefinition::read(value).unwrap();
    assert_eq!(read(&short).hash(), read(&long).hash());
    let other = json!({"trigger": {"type": "schedule", "cron": "1 7 * * *"},
        "steps": [{"id": "a", "type": "set", "values": {}}]});
    assert_ne!(read(&short).hash(), read(&other).hash());
}

#[test]
fn an_unknown_type_names_the_similar_one() {
    let (field, message) = error_in(json!({"id": "a", "type": "fetchh", "url": "x"}));
    assert_eq!(field, "steps[0].type");
    assert_eq!(message, "steps[0].type: unknown step type \"fetchh\"; did you mean fetch?");
    let (_, message) = error_in(json!({"id": "a", "type": "zzz"}));
    assert!(message.contains("known are condition, set"), "{message}");
    let errors = errors_of(&json!({"type": "form"}), &json!([]));
    assert_eq!(errors[0].1, "trigger.type: unknown trigger type \"form\"; did you mean form_submission?");
}

#[test]
fn an_unknown_field_is_refused_with_its_path() {
    let (field, message) = error_in(json!({"id": "a", "type": "fetch", "url": "x", "header": {}}));
    assert_eq!(field, "steps[0].header");
    assert_eq!(message, "steps[0].header is not a field here; did you mean headers?");
    let retry = json!({"id": "a", "type": "fetch", "url": "x", "retry": {"max": 1, "delay": 2}});
    assert_eq!(error_in(retry).0, "steps[0].retry.delay");
    let sort = json!({"id": "a", "type": "transform", "input": 1, "sort": {"order": "asc"}});
    assert_eq!(error_in(sort), ("steps[0].sort.by".to_owned(), "steps[0].sort.by is required".to_owned()));
    let branch = json!({"id": "a", "type": "condition", "branches": [{"when": "x", "steps": []}]});
    let fields: Vec<_> =
        errors_of(&json!({"type": "http"}), &json!([branch])).into_iter().map(|e| e.0).collect();
    assert_eq!(fields, ["steps[0].branches[0].when", "steps[0].branches[0].if"]);
    assert_eq!(errors_of(&json!({"type": "http", "formId": ID}), &json!([]))[0].0, "trigger.formId");
}

#[test]
fn a_wrong_value_inside_a_loop_is_found_by_its_path() {
    let inner = json!({"id": "b", "type": "fetch", "url": 5, "onError": "ignore"});
    let each = json!({"id": "a", "type": "for_each", "items": [], "steps": [inner]});
    let nested = json!({"id": "c", "type": "condition", "branches": [{"if": "true", "steps": [each]}]});
    let errors = errors_of(&json!({"type": "http"}), &json!([nested]));
    let at = "steps[0].branches[0].steps[0].steps[0]";
    assert_eq!(errors[0].0, format!("{at}.onError"));
    assert_eq!(errors[1].0, format!("{at}.url"));
    assert_eq!(errors[1].1, format!("{at}.url must be a text, not a number"));
}

#[test]
fn serde_never_speaks_of_untagged_enums() {
    for wrong in [
        json!(null),
        json!(5),
        json!([]),
        json!({}),
        json!({"trigger": [], "steps": {}}),
        json!({"trigger": {"type": 5}, "steps": [null, {"type": null}, {"type": "set"}, []]}),
    ] {
        let errors = AutomationDefinition::read(&wrong).unwrap_err();
        assert!(
            !errors.is_empty() && errors.iter().all(|error| !error.message.contains("untagged")),
            "{errors:?}"
        );
        assert!(
            errors.iter().all(|error| !error.field.is_empty() && !error.field.contains("..")),
            "{errors:?}"
        );
    }
}

#[test]
fn ten_thousand_wrong_steps_give_fifty_errors() {
    let steps: Vec<Value> = (0..10_000).map(|_| json!({"type": "x"})).collect();
    assert_eq!(errors_of(&json!({"type": "http"}), &json!(steps)).len(), domain::FIELD_ERRORS_MAX);
}

fn schema() -> Value {
    SchemaGenerator::default().into_root_schema_for::<AutomationDefinition>().to_value()
}

#[test]
fn the_schema_accepts_what_is_read_and_refuses_the_rest() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let problems: Vec<String> = validator.iter_errors(&whole()).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    for (pointer, wrong) in [
        ("/steps/0/values", json!(1)),
        ("/steps/1/branches/0/if", json!(true)),
        ("/steps/0/type", json!("sett")),
        ("/trigger/method", json!("post")),
        ("/steps/0/retry/max", json!(6)),
        ("/steps/3/steps/0", json!({"id": "x"})),
        ("/steps/5", json!({"id": "i", "type": "create_entry", "pageId": ID, "data": {}, "extra": 1})),
    ] {
        let mut changed = whole();
        *changed.pointer_mut(pointer).unwrap() = wrong;
        assert!(!validator.is_valid(&changed), "the schema accepts a wrong {pointer}");
    }
}

#[test]
fn the_example_is_read_and_checked_without_errors() {
    let schema = schema();
    let examples = schema["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 1);
    let definition = AutomationDefinition::read(&examples[0]).unwrap();
    let limits = domain::plans::Plan::Free.limits();
    assert_eq!(crate::check::check(&definition, &limits, &std::collections::BTreeSet::new()), []);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator.iter_errors(&examples[0]).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    let used: Vec<_> = definition.all_steps().iter().map(|(_, step)| step.action.kind().as_str()).collect();
    assert_eq!(used, ["find", "condition", "create_entry", "fetch", "stop"]);
}

#[test]
fn the_schema_and_the_check_have_the_same_limits() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let limits = domain::plans::Plan::Scale.limits();
    let long = |length: usize| "x".repeat(length);
    let many = |count: usize| -> serde_json::Map<String, Value> {
        (0..count).map(|at| (format!("x-{at}"), json!("v"))).collect()
    };
    let fetch = |field: &str, value: Value| {
        let mut step = json!({"id": "a", "type": "fetch", "url": "https://example.com/"});
        step[field] = value;
        step
    };
    let page = |field: &str, value: Value| {
        let mut step = json!({"id": "a", "type": "update_page", "pageId": ID});
        step[field] = value;
        step
    };
    let wait = |duration: &str| json!({"id": "a", "type": "wait", "for": duration});
    let set = json!({"id": "b", "type": "set", "values": {}});
    let spaces = |length: usize| format!("1{}", " ".repeat(length - 1));
    for (allowed, refused) in [
        (fetch("name", json!(long(200))), fetch("name", json!(long(201)))),
        (fetch("if", json!(spaces(8_192))), fetch("if", json!(spaces(8_193)))),
        (fetch("timeoutMs", json!(60_000)), fetch("timeoutMs", json!(60_001))),
        (fetch("timeoutMs", json!(100)), fetch("timeoutMs", json!(99))),
        (fetch("retry", json!({"max": 5})), fetch("retry", json!({"max": 6}))),
        (fetch("headers", json!(many(50))), fetch("headers", json!(many(51)))),
        (
            fetch("url", json!(format!("https://x/{}", long(8_182)))),
            fetch("url", json!(format!("https://x/{}", long(8_183)))),
        ),
        (page("title", json!(format!("{{{{ 1{}}}}}", " ".repeat(8_186)))), page("title", json!(long(8_193)))),
        (page("html", json!(long(524_288))), page("html", json!(long(524_289)))),
        (page("css", json!(long(131_072))), page("css", json!(long(131_073)))),
        (page("entryTemplate", json!(long(65_536))), page("entryTemplate", json!(long(65_537)))),
        (wait("1d2h3m4s"), wait("1 day")),
        (wait("30d"), wait("d")),
        (
            json!({"id": "a", "type": "for_each", "items": [], "steps": [set], "concurrency": 5}),
            json!({"id": "a", "type": "for_each", "items": [], "steps": [set], "concurrency": 6}),
        ),
        (
            json!({"id": "a", "type": "for_each", "items": [], "steps": [set]}),
            json!({"id": "a", "type": "for_each", "items": [], "steps": []}),
        ),
        (
            json!({"id": "a", "type": "find", "in": "entries", "pageId": ID, "where": many(20), "limit": 100}),
            json!({"id": "a", "type": "find", "in": "entries", "pageId": ID, "where": many(21), "limit": 100}),
        ),
        (
            json!({"id": "a", "type": "transform", "input": [], "pick": vec!["x"; 100]}),
            json!({"id": "a", "type": "transform", "input": [], "pick": vec!["x"; 101]}),
        ),
        (
            json!({"id": "a", "type": "stop", "status": "error", "message": long(8_192)}),
            json!({"id": "a", "type": "stop", "status": "error", "message": long(8_193)}),
        ),
        (
            json!({"id": "a", "type": "condition", "branches": [{"if": "true", "steps": []}]}),
            json!({"id": "a", "type": "condition", "branches": []}),
        ),
        (
            json!({"id": "a", "type": "respond", "status": 599}),
            json!({"id": "a", "type": "respond", "status": 600}),
        ),
        (
            json!({"id": long(64), "type": "set", "values": {}}),
            json!({"id": long(65), "type": "set", "values": {}}),
        ),
    ] {
        for (step, is_allowed) in [(allowed, true), (refused, false)] {
            let value = json!({"trigger": {"type": "http"}, "steps": [step]});
            let shown: String = value["steps"].to_string().chars().take(100).collect();
            let definition = AutomationDefinition::read(&value).unwrap();
            let errors = crate::check::check(&definition, &limits, &std::collections::BTreeSet::new());
            assert_eq!(errors.is_empty(), is_allowed, "the check of {shown}: {errors:?}");
            assert_eq!(validator.is_valid(&value), is_allowed, "the schema of {shown}");
        }
    }
}

/// Returns whether a schema bounds what it accepts, or refers to one of ours.
fn is_limited(field: &Value) -> bool {
    let has = |keyword: &str| field.get(keyword).is_some();
    let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| field[keyword].as_array());
    let types = match &field["type"] {
        Value::String(name) => vec![name.as_str()],
        other => other.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    if has("$ref") || has("const") || has("enum") || types.contains(&"boolean") {
        return true;
    }
    let mut choices = choices.flatten().peekable();
    if choices.peek().is_some() {
        return choices.all(|choice| is_limited(choice) || choice["type"] == "null");
    }
    types.iter().all(|name| match *name {
        "string" => has("maxLength") || field["format"] == "uuid",
        "integer" => has("minimum") && has("maximum"),
        "array" => has("maxItems"),
        _ => true,
    })
}

#[test]
fn every_text_number_and_list_has_a_limit() {
    let schema = schema();
    let mut without = Vec::new();
    let components = schema["$defs"].as_object().unwrap().iter().map(|(name, one)| (name.as_str(), one));
    for (name, component) in components.chain([("AutomationDefinition", &schema)]) {
        for (member, field) in component["properties"].as_object().into_iter().flatten() {
            if !is_limited(field) {
                without.push(format!("{name}.{member}: {field}"));
            }
        }
    }
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn every_field_has_a_description() {
    let schema = schema();
    let mut without = Vec::new();
    for (member, field) in schema["properties"].as_object().unwrap() {
        assert!(field["description"].is_string(), "{member}");
    }
    for (name, component) in schema["$defs"].as_object().unwrap() {
        let is_described = |part: &Value| part.get("description").is_some_and(|text| text != "");
        if !is_described(component) {
            without.push(name.clone());
        }
        for (member, field) in component["properties"].as_object().into_iter().flatten() {
            if !is_described(field) {
                without.push(format!("{name}.{member}"));
            }
        }
    }
    assert!(without.is_empty(), "{without:?}");
    for kind in StepType::ALL {
        let mapping = &schema["$defs"]["AutomationStep"]["discriminator"]["mapping"];
        assert!(mapping[kind.as_str()].is_string(), "{mapping}");
    }
}
