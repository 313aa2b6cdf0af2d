//! Branches, transforms, stops, skips and test outputs.

use serde_json::{Value, json};

use super::simulation::Memory;
use crate::execution::{Outcome, StepStatus};

fn outputs(steps: Value, payload: Value) -> Memory {
    let memory = Memory::new(steps, payload);
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    memory
}

#[test]
fn the_first_branch_that_applies_runs_else_the_others_steps() {
    let steps = json!([{"id": "which", "type": "condition", "branches": [
        {"if": "trigger.payload.n == 1", "steps": [{"id": "one", "type": "set", "values": {"a": 1}}]},
        {"if": "trigger.payload.n", "steps": [{"id": "some", "type": "set", "values": {"a": 2}}]},
    ], "else": [{"id": "none", "type": "set", "values": {"a": 3}}]}]);
    for (n, id, branch) in [(1, "one", json!(0)), (5, "some", json!(1)), (0, "none", Value::Null)] {
        let memory = outputs(steps.clone(), json!({"n": n}));
        assert_eq!(memory.output("which")["branch"], branch);
        let ran: Vec<_> = memory.state().records.keys().filter(|path| *path != "which").cloned().collect();
        assert_eq!(ran, [id]);
    }
}

#[test]
fn a_run_that_waited_stays_in_its_branch() {
    let steps = json!([{"id": "which", "type": "condition", "branches": [
        {"if": "env.FLAG", "steps": [{"id": "pause", "type": "wait", "for": "1h"}]},
    ], "else": [{"id": "other", "type": "set", "values": {}}]}]);
    let mut memory = Memory::new(steps, json!({}));
    memory.facts.env = std::sync::Arc::new(json!({"FLAG": "on"}));
    assert!(matches!(memory.walk(), Outcome::Waiting { .. }));
    memory.facts.env = std::sync::Arc::new(json!({}));
    memory.advance(chrono::TimeDelta::hours(1));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.status("other"), None);
}

#[test]
fn a_list_is_filtered_sorted_mapped_and_picked_in_this_order() {
    let steps = json!([{"id": "t", "type": "transform", "input": "{{ trigger.payload.rows }}", "filter": "item.n",
        "sort": {"by": "item.n", "order": "desc"}, "map": {"n": "{{ item.n }}", "at": "{{ index }}", "x": 1}, "pick": ["at", "n"]}]);
    let rows = json!([{"n": 2}, {"n": 0}, {"n": 10}, {"n": "a"}]);
    let memory = outputs(steps, json!({"rows": rows}));
    assert_eq!(memory.output("t"), json!([{"n": "a", "at": 3}, {"n": 10, "at": 2}, {"n": 2, "at": 0}]));
}

#[test]
fn a_sort_reads_members_that_map_drops_and_a_pick_those_that_map_made() {
    let steps = json!([{"id": "t", "type": "transform", "input": "{{ trigger.payload.rows }}", "filter": "item.rank",
        "sort": {"by": "item.rank"}, "map": {"name": "{{ item.name }}", "extra": 1}, "pick": ["name", "rank"]}]);
    let rows = json!([{"name": "b", "rank": 2}, {"name": "c", "rank": 0}, {"name": "a", "rank": 1}]);
    let memory = outputs(steps, json!({"rows": rows}));
    assert_eq!(memory.output("t"), json!([{"name": "a"}, {"name": "b"}]));
}

#[test]
fn an_object_is_filtered_by_member_and_picked() {
    let steps = json!([{"id": "t", "type": "transform", "input": "{{ trigger.payload }}", "filter": "item",
                        "map": "{{ key }}={{ item }}", "pick": ["a", "c"]}]);
    let memory = outputs(steps, json!({"a": 1, "b": 2, "c": 0}));
    assert_eq!(memory.output("t"), json!({"a": "a=1"}));
}

#[test]
fn a_stop_ends_the_run_even_inside_a_loop() {
    let steps = json!([
        {"id": "each", "type": "for_each", "items": [1, 2, 3], "steps": [
            {"id": "end", "type": "stop", "status": "success", "message": "found {{ item }}", "if": "item == 2"},
        ]},
        {"id": "after", "type": "stop", "status": "error"},
    ]);
    let memory = Memory::new(steps, json!({}));
    assert_eq!(memory.walk(), Outcome::Success { message: Some("found 2".into()) });
    assert_eq!(memory.status("each[0].end"), Some(StepStatus::Skipped));
    assert_eq!(memory.status("after"), None);
    let memory =
        Memory::new(json!([{"id": "end", "type": "stop", "status": "error", "message": "no"}]), json!({}));
    assert_eq!(memory.walk(), Outcome::Error { path: "end".into(), message: "no".into() });
}

#[test]
fn a_skipped_step_has_null_as_its_output() {
    let steps = json!([
        {"id": "call", "type": "fetch", "url": "https://api.example", "if": "trigger.payload.missing"},
        {"id": "after", "type": "set", "values": {"x": "{{ steps.call.status }}"}},
    ]);
    let memory = outputs(steps, json!({}));
    assert_eq!(memory.status("call"), Some(StepStatus::Skipped));
    assert_eq!(memory.output("after"), json!({"x": null}));
    assert!(memory.state().calls.is_empty());
}

#[test]
fn test_output_replaces_the_effect_in_test_runs_only() {
    let steps =
        json!([{"id": "call", "type": "fetch", "url": "https://api.example", "testOutput": {"status": 201}}]);
    let mut memory = Memory::new(steps.clone(), json!({}));
    memory.facts.is_test = true;
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!((memory.output("call"), memory.state().calls.len()), (json!({"status": 201}), 0));
    let memory = outputs(steps, json!({}));
    assert_eq!(memory.state().calls.len(), 1);
}

#[test]
fn an_answer_is_rendered_with_texts_as_headers() {
    let steps = json!([{"id": "answer", "type": "respond", "status": 201, "headers": {"X-Count": "{{ trigger.payload.n }}"},
                        "body": {"n": "{{ trigger.payload.n }}"}}]);
    let memory = outputs(steps, json!({"n": 3}));
    let expected = r#"answer {"status":201,"headers":{"X-Count":"3"},"body":{"n":3}}"#;
    assert_eq!(memory.state().performed, [expected]);
}

#[test]
fn an_entry_id_that_is_none_fails_with_the_field() {
    let steps = json!([{"id": "gone", "type": "delete_entry", "pageId": "019364d1-0000-7000-8000-000000000001",
                        "entryId": "{{ trigger.payload.id }}"}]);
    let memory = Memory::new(steps, json!({"id": "x"}));
    let message = "entryId: `x` is not an id".to_owned();
    assert_eq!(memory.walk(), Outcome::Error { path: "gone".into(), message });
}
