//! Measures what a step costs without I/O: `cargo run -p automation --release --example step_cost`.
//!
//! A walk of many equal steps is compared with a walk of few, so that what a run costs once is not counted.

#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use automation::definition::AutomationDefinition;
use automation::execution::{
    Compiled, EffectCall, EffectError, Effects, Journal, Outcome, RunFacts, StepRecord, run,
};
use chrono::{DateTime, Utc};
use futures::executor::block_on;
use serde_json::{Value, json};
use uuid::Uuid;

/// Number of steps of a walk.
const STEPS: u32 = 400;
/// Number of measured walks; the fastest counts, as others share the machine.
const WALKS: u32 = 200;

/// Effects that do nothing.
struct Nothing;

impl Effects for Nothing {
    async fn perform(&self, _: EffectCall) -> Result<Value, EffectError> {
        Ok(Value::Null)
    }

    async fn record(&self, _: StepRecord) -> bool {
        true
    }

    fn record_later(&self, _: StepRecord) {}

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    fn resume_url(&self, _: u32) -> String {
        String::new()
    }
}

fn payload() -> Value {
    let rows: Vec<Value> = (0..20)
        .map(|at| json!({"n": 20 - at, "email": format!("Person{at}@Example.com"), "note": "x".repeat(100)}))
        .collect();
    json!({"name": "Ann Example", "email": "Ann@Example.com", "age": 42, "plan": "pro", "rows": rows})
}

fn steps() -> Vec<(&'static str, Value)> {
    vec![
        (
            "set, three templates",
            json!({"type": "set", "values": {
                "name": "{{ trigger.payload.name }}",
                "text": "Dear {{ trigger.payload.name }}, you are {{ trigger.payload.age }}.",
                "mail": "{{ lower(trim(trigger.payload.email)) }}",
            }}),
        ),
        (
            "condition, second branch",
            json!({"type": "condition", "branches": [
                {"if": "trigger.payload.plan == \"free\"", "steps": []},
                {"if": "trigger.payload.age >= 18 && trigger.payload.plan == \"pro\"", "steps": []},
            ]}),
        ),
        (
            "transform, 20 elements: filter, sort, map",
            json!({"type": "transform", "input": "{{ trigger.payload.rows }}", "filter": "item.n > 5",
                   "sort": {"by": "item.n"}, "map": {"n": "{{ item.n }}", "mail": "{{ lower(item.email) }}"}}),
        ),
    ]
}

fn definition(step: &Value, count: u32) -> Option<AutomationDefinition> {
    let numbered = |at: u32| {
        let mut step = step.clone();
        step["id"] = json!(format!("s{at}"));
        step
    };
    let steps: Vec<Value> = (0..count).map(numbered).collect();
    AutomationDefinition::read(&json!({"trigger": {"type": "http"}, "steps": steps})).ok()
}

/// Returns the time of the fastest walk.
fn fastest(definition: &AutomationDefinition, facts: &RunFacts) -> Option<Duration> {
    // A worker keeps the compiled texts of a definition, as most runs are not its first.
    let language = Compiled::default();
    let journal = Journal::default();
    let walk = || {
        let begun = Instant::now();
        let outcome = block_on(run(definition, facts, &journal, &language, &Nothing));
        matches!(outcome, Outcome::Success { .. }).then(|| begun.elapsed())
    };
    (0..WALKS).filter_map(|_| walk()).min()
}

fn main() {
    let facts = RunFacts {
        id: Uuid::from_u128(1),
        started_at: DateTime::UNIX_EPOCH,
        is_test: false,
        trigger: Arc::new(json!({"payload": payload()})),
        env: Arc::new(json!({})),
        resumed: None,
    };
    println!("| step | µs per step |\n| --- | ---: |");
    for (name, step) in steps() {
        let walks =
            [1, STEPS + 1].map(|count| definition(&step, count).and_then(|walk| fastest(&walk, &facts)));
        match walks {
            [Some(one), Some(many)] => {
                let micros = many.saturating_sub(one).as_secs_f64() * 1e6 / f64::from(STEPS);
                println!("| {name} | {micros:.2} |");
            }
            _ => println!("| {name} | the run failed |"),
        }
    }
}
