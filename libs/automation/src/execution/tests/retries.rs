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
    assert_eq!(message, format!("a run sends at most {RUN_FETCHES_MAX} requests, retries included"));
    assert_eq!(memory.state().performed.len(), 100);
}

/// A loop over `rows` elements, each with a request that is tried up to six times, and what comes after it.
fn retried_loop(rows: u32, backoff: &str, after: serde_json::Value) -> Memory {
    let call = json!({"id": "call", "type": "fetch", "url": "https://api.example", "onError": "continue",
                      "retry": {"max": 5, "backoff": backoff}});
    let each = json!({"id": "each", "type": "for_each", "items": "{{ trigger.payload.rows }}", "concurrency": 5, "steps": [call]});
    let mut steps = vec![each];
    steps.extend(after.as_array().unwrap().clone());
    Memory::new(steps.into(), json!({"rows": (0..rows).collect::<Vec<u32>>()}))
}

#[test]
fn attempts_count_as_requests() {
    let memory = retried_loop(50, "fixed", json!([]));
    for at in 0..50 {
        memory.fail(&format!("each[{at}].call"), &vec![Failure::transient("the answer was 503"); 9]);
    }
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.state().calls.len(), 100, "without a limit 300");
    let errors: Vec<String> =
        memory.state().records.values().filter_map(|record| record.error.clone()).collect();
    let limit = "a run sends at most 100 requests, retries included";
    let ended = format!("the answer was 503; it is not tried again, because {limit}");
    assert!(errors.contains(&ended) && errors.contains(&limit.to_owned()), "{errors:?}");
    let attempts: u32 = memory
        .state()
        .records
        .values()
        .filter(|record| record.step_id == "call")
        .map(|record| record.attempts)
        .sum();
    assert_eq!(attempts, 100, "the log tells them");
}

#[test]
fn requests_of_earlier_walks_count() {
    let last = json!([
        {"id": "pause", "type": "wait", "for": "1m"},
        {"id": "more", "type": "for_each", "items": "{{ trigger.payload.rows }}", "steps": [
            {"id": "again", "type": "fetch", "url": "https://api.example"}]},
    ]);
    let memory = retried_loop(15, "fixed", last);
    for at in 0..15 {
        memory.fail(&format!("each[{at}].call"), &vec![Failure::transient("the answer was 503"); 9]);
    }
    assert!(matches!(memory.walk(), Outcome::Waiting { .. }));
    assert_eq!(memory.state().calls.len(), 90);
    memory.advance(TimeDelta::minutes(2));
    let Outcome::Error { path, .. } = memory.walk() else { panic!("105 requests") };
    assert_eq!((path.as_str(), memory.state().calls.len()), ("more[10].again", 100));
}

#[test]
fn an_attempt_after_a_long_pause_knows_the_requests_of_the_steps_after_it() {
    let memory = retried_loop(96, "exponential", json!([]));
    memory.fail("each[0].call", &vec![Failure::transient("the answer was 503"); 9]);
    assert!(matches!(memory.walk(), Outcome::Waiting { .. }));
    assert_eq!(memory.state().calls.len(), 100);
    memory.advance(TimeDelta::minutes(1));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.state().calls.len(), 100);
    let record = memory.state().records["each[0].call"].clone();
    let message = record.error.unwrap();
    assert!(message.starts_with("the answer was 503; it is not tried again"), "{message}");
    assert_eq!((record.status, record.attempts), (StepStatus::Error, 5));
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
