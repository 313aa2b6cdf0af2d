//! Kills after every write: the replay gives the same result, and performs each effect once.

use serde_json::{Value, json};

use super::simulation::Memory;
use crate::execution::Outcome;

const PAGE: &str = "019364d1-0000-7000-8000-000000000001";

fn steps() -> Value {
    json!([
        {"id": "greeting", "type": "set", "values": {"text": "Hello {{ trigger.payload.name }}"}},
        {"id": "lookup", "type": "fetch", "method": "POST", "url": "https://api.example/x", "body": {"n": "{{ trigger.payload.n }}"}},
        {"id": "is_three", "type": "condition", "branches": [
            {"if": "steps.lookup.body.n == 3", "steps": [
                {"id": "entry", "type": "create_entry", "pageId": PAGE, "data": {"text": "{{ steps.greeting.text }}", "n": "{{ steps.lookup.body.n }}"}},
                {"id": "broken", "type": "fetch", "url": "https://api.example/broken", "onError": "continue"},
            ]},
        ], "else": [{"id": "never", "type": "stop", "status": "error"}]},
        {"id": "each", "type": "for_each", "items": "{{ trigger.payload.rows }}", "as": "row", "concurrency": 2, "steps": [
            {"id": "double", "type": "set", "values": {"name": "{{ row.name }}-{{ index }}"}},
            {"id": "row_entry", "type": "create_entry", "pageId": PAGE, "data": {"name": "{{ steps.double.name }}"}},
        ]},
        {"id": "last", "type": "create_entry", "pageId": PAGE,
         "data": {"count": "{{ steps.each.count }}", "why": "{{ steps.broken.error }}"}},
    ])
}

fn memory() -> Memory {
    let memory = Memory::new(
        steps(),
        json!({"name": "Ada", "n": 3, "rows": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
    );
    memory.fail("broken", &[crate::execution::Failure::permanent("the answer was 404")]);
    memory
}

#[test]
fn a_kill_after_each_write_and_a_replay_give_the_same_result_with_each_effect_once() {
    let whole = memory();
    assert_eq!(whole.walk(), Outcome::Success { message: None });
    let expected: Vec<String> = {
        let mut performed = whole.state().performed.clone();
        performed.sort();
        performed
    };
    assert_eq!(expected.len(), 6, "{expected:?}");
    assert!(
        expected.iter().any(|effect| effect.contains(r#""count":3,"why":"the answer was 404""#)),
        "{expected:?}"
    );
    let mut kills = 0;
    for writes in 0.. {
        let killed = memory();
        if killed.walk_until(writes).is_some() {
            break;
        }
        // Failures are the peer's, which answers alike after the kill.
        if killed.status("broken").is_none() {
            killed.fail("broken", &[crate::execution::Failure::permanent("the answer was 404")]);
        }
        kills += 1;
        assert_eq!(killed.walk(), Outcome::Success { message: None }, "killed after {writes} writes");
        let mut performed = killed.state().performed.clone();
        performed.sort();
        assert_eq!(performed, expected, "killed after {writes} writes");
        let paths = |memory: &Memory| memory.state().records.keys().cloned().collect::<Vec<_>>();
        assert_eq!(paths(&killed), paths(&whole), "killed after {writes} writes");
    }
    assert_eq!(kills, 7, "one for each awaited write");
}

#[test]
fn a_worker_that_is_killed_at_every_write_ends_the_run_all_the_same() {
    let memory = memory();
    let mut kills = 0;
    let outcome = loop {
        if memory.status("broken").is_none() {
            memory.fail("broken", &[crate::execution::Failure::permanent("the answer was 404")]);
        }
        match memory.walk_until(1) {
            Some(outcome) => break outcome,
            None => kills += 1,
        }
    };
    assert_eq!(outcome, Outcome::Success { message: None });
    assert_eq!(memory.state().performed.len(), 6);
    assert!(kills >= 3, "{kills}");
}

#[test]
fn a_cancelled_run_performs_no_further_effect() {
    let memory = memory();
    assert_eq!(memory.walk_until(2), None, "killed after the first entry");
    memory.state().is_cancelled = true;
    assert_eq!(memory.walk(), Outcome::Lost);
    assert_eq!(memory.state().performed.len(), 2);
}
