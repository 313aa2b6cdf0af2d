//! `wait`: for a time, until a time, and for a link.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::simulation::Memory;
use crate::execution::Outcome;

fn wait(mut step: Value) -> Memory {
    step["id"] = "pause".into();
    step["type"] = "wait".into();
    Memory::new(
        json!([
            {"id": "mail", "type": "fetch", "method": "POST", "url": "https://mail.example", "body": {"link": "{{ run.resumeUrl }}"}},
            step,
            {"id": "after", "type": "set", "values": {"resumed": "{{ steps.pause.resumed }}", "payload": "{{ steps.pause.payload }}", "link": "{{ run.resumeUrl }}"}},
        ]),
        json!({"at": "2024-09-05T00:00:00Z"}),
    )
}

fn until(memory: &Memory) -> DateTime<Utc> {
    match memory.walk() {
        Outcome::Waiting { until, resume: None } => until,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wait_for_a_duration_ends_when_it_is_over_and_not_before() {
    let memory = wait(json!({"for": "1h30m"}));
    assert_eq!(until(&memory), memory.facts.started_at + TimeDelta::minutes(90));
    memory.advance(TimeDelta::minutes(89));
    assert_eq!(until(&memory), memory.facts.started_at + TimeDelta::minutes(90));
    memory.advance(TimeDelta::minutes(1));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.output("after")["resumed"], false);
    assert_eq!(memory.state().performed.len(), 1);
}

#[test]
fn a_wait_until_a_past_time_does_not_wait() {
    let memory = wait(json!({"until": "{{ trigger.payload.at }}"}));
    assert!(memory.facts.started_at > "2024-09-05T00:00:00Z".parse::<DateTime<Utc>>().unwrap());
    assert_eq!(memory.walk(), Outcome::Success { message: None });
}

#[test]
fn a_wait_of_more_than_30_days_fails() {
    let memory = wait(json!({"until": "2099-01-01T00:00:00Z"}));
    let Outcome::Error { message, .. } = memory.walk() else { panic!("73 years") };
    assert!(message.ends_with("is more than 30 days ahead"), "{message}");
}

#[test]
fn a_link_resumes_with_its_payload_and_the_next_wait_has_another_link() {
    let mut memory = wait(json!({"resume": true, "timeout": "3d"}));
    let expected = Outcome::Waiting { until: memory.facts.started_at + TimeDelta::days(3), resume: Some(0) };
    assert_eq!(memory.walk(), expected);
    assert!(memory.state().performed[0].contains("https://base/resume/0"));
    memory.facts.resumed = Some((0, json!({"approved": true})));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    let expected = json!({"resumed": true, "payload": {"approved": true}, "link": "https://base/resume/1"});
    assert_eq!(memory.output("after"), expected);
}

#[test]
fn a_link_that_nothing_uses_in_time_fails_the_step_unless_it_may_continue() {
    let memory = wait(json!({"resume": true, "timeout": "3d"}));
    memory.walk();
    memory.advance(TimeDelta::days(3));
    let message = "the link was not used in time".to_owned();
    assert_eq!(memory.walk(), Outcome::Error { path: "pause".into(), message });
    let memory = wait(json!({"resume": true, "timeout": "3d", "onTimeout": "continue"}));
    memory.walk();
    memory.advance(TimeDelta::days(3));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.output("after")["resumed"], false);
}

#[test]
fn elements_of_a_loop_wait_for_their_links_one_after_the_other() {
    let steps = json!([{"id": "each", "type": "for_each", "items": [1, 2], "concurrency": 5, "steps": [
        {"id": "mail", "type": "fetch", "method": "POST", "url": "https://mail.example", "body": {"link": "{{ run.resumeUrl }}"}},
        {"id": "pause", "type": "wait", "resume": true},
    ]}]);
    let mut memory = Memory::new(steps, json!({}));
    assert!(matches!(memory.walk(), Outcome::Waiting { resume: Some(0), .. }));
    assert_eq!(memory.state().performed.len(), 1);
    memory.facts.resumed = Some((0, Value::Null));
    assert!(matches!(memory.walk(), Outcome::Waiting { resume: Some(1), .. }));
    memory.facts.resumed = Some((1, Value::Null));
    assert!(memory.state().performed[1].contains("https://base/resume/1"));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
}

#[test]
fn one_click_can_not_approve_two_waits_after_a_kill() {
    let steps = json!([
        {"id": "first", "type": "wait", "resume": true},
        {"id": "second", "type": "wait", "resume": true},
        {"id": "pay", "type": "fetch", "method": "POST", "url": "https://bank.example"},
    ]);
    let mut memory = Memory::new(steps, json!({}));
    assert!(matches!(memory.walk(), Outcome::Waiting { resume: Some(0), .. }));
    memory.facts.resumed = Some((0, json!({"by": "Mo"})));
    // The end of the first wait and the beginning of the second are stored; the end of the walk is not, so the use of
    // the first link is still in the run.
    assert!(matches!(memory.walk(), Outcome::Waiting { resume: Some(1), .. }));
    assert!(matches!(memory.walk(), Outcome::Waiting { resume: Some(1), .. }));
    assert_eq!(memory.output("first")["payload"], json!({"by": "Mo"}));
    assert!(memory.state().performed.is_empty());
    memory.facts.resumed = Some((1, json!({"by": "Li"})));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.output("second")["payload"], json!({"by": "Li"}));
}
