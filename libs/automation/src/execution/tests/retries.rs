//! Retries, time limits, `onError` and limits of a run.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use super::simulation::Memory;
use crate::execution::{Failure, Outcome, RUN_FETCHES_MAX, StepStatus};

fn fetch(retry: Option<serde_json::Value>) -> Memory {
    let mut step = json!({"id": "call", "type": "fetch", "url": "https://api.example"});
    if let Some(retry) = retry {
        step["retry"] = retry;
    }
    Memory::new(json!([step]), json!({}))
}

#[test]
fn short_pauses_are_waited_in_place_and_grow() {
    let memory = fetch(Some(json!({"max": 3})));
    memory.fail("call", &vec![Failure::transient("the answer was 500"); 2]);
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.state().slept, [1, 2].map(Duration::from_secs));
    assert_eq!(memory.state().records["call"].attempts, 3);
}

#[test]
fn a_long_pause_frees_the_worker_and_the_journal_keeps_the_attempts() {
    let memory = fetch(Some(json!({"max": 5})));
    memory.fail("call", &vec![Failure::transient("the answer was 500"); 5]);
    let Outcome::Waiting { until, resume: None } = memory.walk() else {
        panic!("no wait before the last attempt")
    };
    assert_eq!(memory.status("call"), Some(StepStatus::Waiting));
    assert_eq!(memory.state().calls.len(), 5);
    // Woken too early, as by another element of a loop.
    assert_eq!(memory.walk(), Outcome::Waiting { until, resume: None });
    memory.advance(TimeDelta::seconds(16));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.state().records["call"].attempts, 6);
}

#[test]
fn the_last_failure_ends_the_run_with_its_step() {
    let memory = fetch(Some(json!({"max": 1, "backoff": "fixed"})));
    memory.fail("call", &vec![Failure::transient("the answer was 500"); 9]);
    let expected = Outcome::Error { path: "call".into(), message: "the answer was 500".into() };
    assert_eq!(memory.walk(), expected);
    assert_eq!(memory.state().slept, [Duration::from_secs(2)]);
    assert_eq!(memory.walk(), expected, "a replay makes no further attempt");
    assert_eq!(memory.state().calls.len(), 2);
}

#[test]
fn a_failure_that_repeats_itself_is_not_retried() {
    let memory = fetch(Some(json!({"max": 5})));
    memory.fail("call", &[Failure::permanent("the URL is refused")]);
    assert!(matches!(memory.walk(), Outcome::Error { .. }));
    assert_eq!(memory.state().calls.len(), 1);
}

#[test]
fn a_step_has_its_own_time_limit_or_15_seconds() {
    let memory = Memory::new(
        json!([
            {"id": "one", "type": "fetch", "url": "https://api.example"},
            {"id": "two", "type": "fetch", "url": "https://api.example", "timeoutMs": 700},
        ]),
        json!({}),
    );
    memory.walk();
    let timeouts: Vec<_> = memory.state().calls.iter().map(|call| call.timeout).collect();
    assert_eq!(timeouts, [Duration::from_secs(15), Duration::from_millis(700)]);
}

#[test]
fn a_step_that_may_fail_leaves_its_reason() {
    let memory = Memory::new(
        json!([
            {"id": "sum", "type": "set", "values": {"x": "{{ fail! }}"}, "onError": "continue"},
            {"id": "after", "type": "set", "values": {"why": "{{ steps.sum.error }}"}},
        ]),
        json!({}),
    );
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.status("sum"), Some(StepStatus::Error));
    assert_eq!(memory.output("after"), json!({"why": "values.x: it fails"}));
}

#[test]
fn a_run_sends_at_most_100_requests() {
    let rows: Vec<u32> = (0..120).collect();
    let steps = json!([{"id": "each", "type": "for_each", "items": "{{ trigger.payload.rows }}", "concurrency": 5, "steps": [
        {"id": "call", "type": "fetch", "url": "https://api.example"},
    ]}]);
    let memory = Memory::new(steps, json!({"rows": rows}));
    let Outcome::Error { message, .. } = memory.walk() else { panic!("120 requests") };
    assert_eq!(message, format!("a run sends at most {RUN_FETCHES_MAX} requests"));
    assert_eq!(memory.state().performed.len(), 100);
}

#[test]
fn a_run_that_holds_too_much_fails() {
    let text = "x".repeat(1 << 20);
    let names = (0..9).map(|n| (format!("n{n}"), json!("{{ trigger.payload.text }}")));
    let steps = json!([{"id": "big", "type": "set", "values": serde_json::Map::from_iter(names)}]);
    let memory = Memory::new(steps, json!({"text": text}));
    let Outcome::Error { path, message } = memory.walk() else { panic!("9 MB") };
    assert_eq!((path.as_str(), message.contains("8 MB")), ("big", true), "{message}");
}
