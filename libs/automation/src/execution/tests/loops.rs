//! `for_each`: order, concurrency, limits and ends.

use serde_json::{Value, json};

use super::simulation::Memory;
use crate::execution::{Failure, Outcome, StepStatus};

const PAGE: &str = "019364d1-0000-7000-8000-000000000001";

fn each(concurrency: u32, steps: Value, rows: usize) -> Memory {
    let rows: Vec<Value> = (0..rows).map(|n| json!({"n": n})).collect();
    let each = json!({"id": "each", "type": "for_each", "items": "{{ trigger.payload.rows }}", "as": "row",
                      "concurrency": concurrency, "steps": steps});
    Memory::new(
        json!([each, {"id": "after", "type": "set", "values": {"all": "{{ steps.each.items }}"}}]),
        json!({"rows": rows}),
    )
}

fn entry() -> Value {
    json!([{"id": "entry", "type": "create_entry", "pageId": PAGE, "data": {"n": "{{ row.n }}", "index": "{{ index }}"}}])
}

#[test]
fn elements_run_concurrently_up_to_the_limit_and_keep_their_order() {
    for concurrency in [1, 3, 5] {
        let memory = each(concurrency, entry(), 20);
        assert_eq!(memory.walk(), Outcome::Success { message: None });
        assert_eq!(memory.state().max_in_flight, concurrency as usize);
        let output = memory.output("after");
        let ns: Vec<_> =
            output["all"].as_array().unwrap().iter().map(|item| item["data"]["n"].clone()).collect();
        assert_eq!(ns, (0..20).map(Value::from).collect::<Vec<_>>());
        assert_eq!(memory.output("each")["count"], 20);
        assert_eq!(memory.status("each[19].entry"), Some(StepStatus::Success));
    }
}

#[test]
fn more_than_500_elements_are_refused_before_the_first() {
    let memory = each(1, entry(), 501);
    let Outcome::Error { path, message } = memory.walk() else { panic!("501 elements") };
    assert_eq!((path.as_str(), message.as_str()), ("each", "items: at most 500 elements, got 501"));
    assert!(memory.state().performed.is_empty());
}

#[test]
fn what_is_no_list_is_refused() {
    let memory = Memory::new(
        json!([{"id": "each", "type": "for_each", "items": "{{ trigger.payload }}", "steps": entry()}]),
        json!({}),
    );
    let Outcome::Error { message, .. } = memory.walk() else { panic!("an object") };
    assert_eq!(message, "items: expected a list, got an object");
}

#[test]
fn an_element_that_fails_ends_the_run_and_no_other_begins_a_step() {
    let memory = each(2, entry(), 20);
    memory.fail("each[4].entry", &[Failure::permanent("the page is full")]);
    let expected = Outcome::Error { path: "each[4].entry".into(), message: "the page is full".into() };
    assert_eq!(memory.walk(), expected);
    assert!((4..=6).contains(&memory.state().performed.len()), "{:?}", memory.state().performed);
}

#[test]
fn loops_inside_loops_have_paths_of_their_own() {
    let inner = json!([{"id": "inner", "type": "for_each", "items": [1, 2], "as": "x", "steps": [
        {"id": "entry", "type": "create_entry", "pageId": PAGE, "data": {"n": "{{ row.n }}", "x": "{{ x }}"}},
    ]}]);
    let memory = each(2, inner, 2);
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    let mut performed = memory.state().performed.clone();
    performed.sort();
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(n, at)| {
        format!(
            "each[{n}].inner[{at}].entry {{\"pageId\":\"{PAGE}\",\"data\":{{\"n\":{n},\"x\":{}}}}}",
            at + 1
        )
    });
    assert_eq!(performed, expected);
}

#[test]
fn elements_that_wait_wait_together() {
    let memory = each(2, json!([{"id": "pause", "type": "wait", "for": "1h"}, entry()[0].clone()]), 5);
    assert!(matches!(memory.walk(), Outcome::Waiting { .. }));
    assert!(memory.state().performed.is_empty());
    memory.advance(chrono::TimeDelta::hours(1));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.state().performed.len(), 5);
}
