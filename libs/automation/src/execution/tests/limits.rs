//! What one walk may compute, hold and nest, with the real language.

use std::time::Instant;

use serde_json::{Value, json};

use super::simulation::Memory;
use crate::execution::Outcome;
use crate::expressions::values::is_deeper;

fn error_of(steps: Value, payload: Value) -> (String, String) {
    match Memory::compiled(steps, payload).walk() {
        Outcome::Error { path, message } => (path, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_templates_of_one_step_share_its_limit() {
    let text = "x".repeat(200_000);
    let twice = json!({"a": "{{ trigger.payload.text }}", "b": "{{ trigger.payload.text }}"});
    let id = "0198c5f0-0000-7000-8000-000000000001";
    for (step, field) in [
        (json!({"id": "s", "type": "set", "values": twice}), "values.b"),
        (json!({"id": "s", "type": "create_entry", "pageId": id, "data": twice}), "data.b"),
        (json!({"id": "s", "type": "send_webhook", "webhookId": id, "payload": twice}), "payload.b"),
    ] {
        let (path, message) = error_of(json!([step]), json!({"text": text}));
        let expected = format!("{field}: the templates of one step may write 262144 bytes together");
        assert_eq!((path.as_str(), message), ("s", expected));
    }
}

#[test]
fn a_transform_can_not_multiply_a_large_value() {
    // A body of 256 KB would become 2.5 GB.
    let rows: Vec<u32> = (0..10_000).collect();
    let payload = json!({"rows": rows, "text": "x".repeat(60_000)});
    let transform = |map: Value| json!([{"id": "t", "type": "transform", "input": "{{ trigger.payload.rows }}", "map": map}]);
    let (_, message) = error_of(transform(json!("{{ trigger.payload.text }}")), payload.clone());
    assert_eq!(message, "map, element 4: the templates of one step may write 262144 bytes together");
    let (_, message) = error_of(transform(json!({"n": "{{ item }}", "text": "x".repeat(100_000)})), payload);
    assert_eq!(message, "map, element 83: the elements have more than 8 MB together");
}

#[test]
fn steps_can_not_nest_their_outputs_without_end() {
    let level = |at: usize| {
        let input = if at == 0 { "1".to_owned() } else { format!("steps.s{}.v", at - 1) };
        let (open, close) = ("[".repeat(5), "]".repeat(5));
        json!({"id": format!("s{at}"), "type": "set", "values": {"v": format!("{{{{ {open}{input}{close} }}}}")}})
    };
    let steps: Value = (0..450).map(level).collect();
    let (path, message) = error_of(steps, json!({}));
    assert_eq!(path, "s19", "{message}");
    assert!(message.ends_with("nested deeper than 100 levels"), "{message}");
}

#[test]
fn a_walk_that_computes_too_much_ends() {
    // Without a limit: 500 × 3,000 copies of a text of 200 KB, for minutes and on one thread.
    let payload = json!({"rows": (0..3_000).collect::<Vec<u32>>(), "text": "x".repeat(200_000)});
    let steps = json!([{"id": "each", "type": "for_each", "items": "{{ slice(trigger.payload.rows, 0, 500) }}", "steps": [
        {"id": "t", "type": "transform", "input": "{{ trigger.payload.rows }}",
         "filter": "ends_with(trigger.payload.text, 'y')"},
    ]}]);
    let begun = Instant::now();
    let (path, message) = error_of(steps, payload);
    assert!(path.starts_with("each["), "{path}");
    assert!(message.contains("the run computes too much"), "{message}");
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn an_ordinary_large_run_is_far_from_the_limit() {
    let rows: Vec<Value> =
        (0..1_000).map(|at| json!({"n": at, "mail": format!("a{at}@example.com")})).collect();
    let steps = json!([
        {"id": "t", "type": "transform", "input": "{{ trigger.payload.rows }}", "filter": "item.n % 2 == 0",
         "sort": {"by": "-item.n"}, "map": {"n": "{{ item.n + 1 }}", "mail": "{{ lower(item.mail) }}"}},
        {"id": "each", "type": "for_each", "items": "{{ steps.t }}", "steps": [
            {"id": "text", "type": "set", "values": {"v": "{{ item.n }}: {{ item.mail }}"}}]},
    ]);
    let memory = Memory::compiled(steps, json!({"rows": rows}));
    let before = crate::expressions::work();
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    let work = crate::expressions::work() - before;
    assert!(work < crate::execution::RUN_OPERATIONS_MAX / 100, "{work}");
}

#[test]
fn an_error_does_not_repeat_a_whole_value() {
    let id = "0198c5f0-0000-7000-8000-000000000001";
    let text = "ü".repeat(20_000);
    for step in [
        json!({"id": "s", "type": "delete_entry", "pageId": id, "entryId": "{{ trigger.payload.text }}"}),
        json!({"id": "s", "type": "wait", "until": "{{ trigger.payload.text }}"}),
        json!({"id": "s", "type": "find", "in": "entries", "pageId": id, "since": "{{ trigger.payload.text }}"}),
    ] {
        let (_, message) = error_of(json!([step]), json!({"text": text}));
        assert!(message.len() < 300, "{message}");
    }
}

#[test]
fn an_effect_can_not_nest_values_so_deep_that_they_are_not_read_back() {
    let id = "0198c5f0-0000-7000-8000-000000000001";
    let nested = |levels: usize| (0..levels).fold(json!(1), |value, _| json!([value]));
    let wrapped =
        |levels: usize| (0..levels).fold(json!("{{ trigger.payload.v }}"), |value, _| json!([value]));
    // With the effect's own levels these have 90, then 91.
    for (is_refused, levels) in [(false, 60), (true, 61)] {
        for step in [
            json!({"type": "fetch", "method": "POST", "url": "https://x.example", "body": wrapped(29)}),
            json!({"type": "respond", "status": 200, "body": wrapped(29)}),
            json!({"type": "create_entry", "pageId": id, "data": {"v": wrapped(28)}}),
            json!({"type": "find", "in": "entries", "pageId": id, "where": {"v": wrapped(28)}}),
            json!({"type": "create_submission", "formId": id, "payload": {"v": wrapped(28)}}),
            json!({"type": "send_webhook", "webhookId": id, "payload": {"v": wrapped(28)}}),
        ] {
            let mut step = step;
            step["id"] = json!("s");
            let memory = Memory::compiled(json!([step]), json!({"v": nested(levels)}));
            let outcome = memory.walk();
            assert_eq!(memory.state().calls.len(), usize::from(!is_refused), "{step}: {outcome:?}");
            if is_refused {
                let message = "the step's values are nested deeper than 90 levels".to_owned();
                assert_eq!(outcome, Outcome::Error { path: "s".to_owned(), message });
            } else {
                let call = serde_json::to_value(&memory.state().calls[0].effect).unwrap();
                assert!(!is_deeper(&call, 90) && is_deeper(&call, 89), "{step}");
            }
        }
    }
}

#[test]
fn set_and_transform_can_not_nest_their_outputs_too_deep() {
    let nested = (0..60).fold(json!(1), |value, _| json!([value]));
    let wrapped = (0..60).fold(json!("{{ trigger.payload.v }}"), |value, _| json!([value]));
    for step in [
        json!({"id": "s", "type": "set", "values": {"v": wrapped}}),
        json!({"id": "s", "type": "transform", "input": [1], "map": wrapped}),
    ] {
        let memory = Memory::compiled(json!([step]), json!({"v": nested}));
        let message = "the output is nested deeper than 100 levels".to_owned();
        assert_eq!(memory.walk(), Outcome::Error { path: "s".to_owned(), message: message.clone() });
        assert_eq!(memory.output("s"), json!({"error": message}), "nothing deep is stored");
    }
}

#[test]
fn a_whole_result_has_no_fraction_in_a_text_and_stays_a_number() {
    let values = json!({"text": "{{ round(89.999, 2) }} EUR, {{ round(1.256, 2) }}, {{ -0.0 }}", "number": "{{ round(89.999, 2) }}"});
    let memory = Memory::compiled(json!([{"id": "s", "type": "set", "values": values}]), json!({}));
    assert_eq!(memory.walk(), Outcome::Success { message: None });
    assert_eq!(memory.output("s"), json!({"text": "90 EUR, 1.26, 0", "number": 90.0}));
}
