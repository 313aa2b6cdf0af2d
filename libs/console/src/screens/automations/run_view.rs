//! Runs and their steps in words. A status is an icon and a word; its colour comes third.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use super::json_view::JsonView;
use crate::formatting::numbers;
use crate::formatting::times::parse;

/// A step on the timeline of its run.
#[derive(Debug, Serialize)]
pub(super) struct TimelineStep {
    /// The number of the step in its run, from 1 on.
    number: usize,
    path: String,
    kind: String,
    state: Value,
    duration: String,
    attempts: u64,
    error: Option<String>,
    input: Option<JsonView>,
    output: Option<JsonView>,
    /// Where its bar begins and how wide it is, in percent of the run.
    from: String,
    width: String,
    is_open: bool,
    /// Whether a new run can begin with it: it is outside branches and loops.
    can_begin: bool,
}

/// Adds to each run of a list what its tag says.
pub(super) fn with_states(mut list: Value) -> Value {
    for run in list["logs"].as_array_mut().into_iter().flatten() {
        *run = with_state(run.take());
    }
    list
}

/// Adds to a run what its tag says, its duration and what started it, in words.
pub(super) fn with_state(mut run: Value) -> Value {
    let is_retrying = run["isRetrying"] == true;
    let (tone, icon, text) = match run["status"].as_str().unwrap_or_default() {
        "queued" => ("", "retry", "Queued"),
        "running" => ("", "automations", "Running"),
        "waiting" if is_retrying => ("warn", "again", "Retrying"),
        "waiting" => ("", "retry", "Waiting"),
        "success" => ("good", "done", "Done"),
        "error" => ("bad", "failed", "Failed"),
        "cancelled" => ("", "close", "Cancelled"),
        "skipped" => ("warn", "close", "Skipped"),
        other => ("", "help", other),
    };
    let state = json!({ "tone": tone, "icon": icon, "text": text });
    let begins = match run["trigger"]["type"].as_str().unwrap_or_default() {
        "form_submission" => "a submission",
        "http" => "a request",
        "schedule" => "its schedule",
        _ => "a test",
    };
    run["state"] = state;
    run["duration"] = json!(run["ms"].as_u64().map(milliseconds));
    run["begins"] = json!(begins);
    run["isLive"] = json!(matches!(run["status"].as_str(), Some("queued" | "running" | "waiting")));
    run
}

/// Returns the steps of a run on its timeline. A new run can begin with the steps of `top_level`.
pub(super) fn timeline(run: &Value, top_level: &[&str], now: DateTime<Utc>) -> Vec<TimelineStep> {
    let time = |value: &Value| value.as_str().and_then(parse);
    let begin = time(&run["startedAt"]).unwrap_or(now);
    let end = time(&run["finishedAt"]).unwrap_or(now);
    let whole = (end - begin).num_milliseconds().max(1) as f64;
    let failed_path = run["errorPath"].as_str();
    let steps = run["steps"].as_array().into_iter().flatten().enumerate();
    let view = |(at, step): (usize, &Value)| {
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        let (ms, path) = (step["ms"].as_u64().unwrap_or_default(), text("path"));
        let after = time(&step["startedAt"]).map_or(0, |at| (at - begin).num_milliseconds());
        let from = (after as f64 / whole * 100.0).clamp(0.0, 99.0);
        let width = (ms as f64 / whole * 100.0).clamp(1.0, 100.0 - from);
        let state = state_of(step);
        TimelineStep {
            number: at + 1,
            kind: text("type").replace('_', " "),
            duration: milliseconds(ms),
            attempts: step["attempts"].as_u64().unwrap_or_default(),
            error: step["error"].as_str().map(str::to_owned),
            input: JsonView::new(&step["input"]),
            output: JsonView::new(&step["output"]),
            from: format!("{from:.1}"),
            width: format!("{width:.1}"),
            is_open: failed_path
                .map_or(state["tone"] == "bad" || state["tone"] == "warn", |failed| failed == path),
            can_begin: top_level.contains(&path.as_str()),
            state,
            path,
        }
    };
    steps.map(view).collect()
}

fn state_of(step: &Value) -> Value {
    let is_wait = step["type"] == "wait";
    let (tone, icon, text) = match step["status"].as_str().unwrap_or_default() {
        "success" => ("good", "done", "Done"),
        "error" => ("bad", "failed", "Failed"),
        "skipped" => ("", "older", "Skipped"),
        "waiting" if is_wait => ("", "retry", "Waiting"),
        "waiting" => ("warn", "again", "Retrying"),
        other => ("", "help", other),
    };
    json!({ "tone": tone, "icon": icon, "text": text })
}

/// Returns a duration: `84 ms`, `1.2 s`, `2 m 12 s`.
fn milliseconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => numbers::duration(ms as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_retries_is_told_from_one_that_waits() {
        let text = |run: Value| with_state(run)["state"]["text"].clone();
        assert_eq!(text(json!({ "status": "waiting", "isRetrying": true })), "Retrying");
        assert_eq!(text(json!({ "status": "waiting", "isRetrying": false })), "Waiting");
        assert_eq!(text(json!({ "status": "error" })), "Failed");
        assert_eq!(with_state(json!({ "status": "success", "ms": 1_240 }))["duration"], "1.2 s");
        assert_eq!(with_state(json!({ "status": "queued" }))["isLive"], true);
    }

    #[test]
    fn the_failed_step_is_open_and_bars_stay_inside() {
        let step = |path: &str, status: &str, at: &str, ms: u64| {
            json!({ "path": path, "type": "fetch", "status": status, "startedAt": at, "ms": ms, "attempts": 1,
                "input": { "a": 1 }, "output": null, "error": null })
        };
        let run = json!({ "startedAt": "2026-11-22T13:00:00Z", "finishedAt": "2026-11-22T13:00:10Z", "errorPath": "b",
            "steps": [step("a", "success", "2026-11-22T13:00:00Z", 5_000), step("each[0].c", "error", "2026-11-22T13:00:05Z", 1),
                step("b", "error", "2026-11-22T13:00:10Z", 99_000)] });
        let steps = timeline(&run, &["a", "b"], parse("2026-11-22T14:00:00Z").unwrap());
        let shown: Vec<_> = steps
            .iter()
            .map(|step| (step.from.as_str(), step.width.as_str(), step.is_open, step.can_begin))
            .collect();
        assert_eq!(
            shown,
            [("0.0", "50.0", false, true), ("50.0", "1.0", false, false), ("99.0", "1.0", true, true)]
        );
        assert!(steps[0].output.is_none() && steps[0].input.is_some());
        assert_eq!([5, 9_960, 132_000].map(milliseconds), ["5 ms", "10.0 s", "2 m 12 s"]);
    }
}
