//! The list of automations, and those to begin with.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};

use super::definition_view::trigger_in_words;
use super::presets::PRESETS;
use crate::api_client::operations::{AUTOMATIONS_LIST, FORMS_LIST};
use crate::api_client::{Answer, Call};
use crate::page::{Page, Section};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the newest automations.
pub(super) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, &query, |page| page).await
}

/// Shows the list with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&AUTOMATIONS_LIST)
        .query("sort", "newest")
        .optional_query("folderId", query.get("folderId"))
        .optional_query("cursor", query.get("cursor"));
    let (account, list, forms) =
        join!(console.account(viewer), console.call(viewer, call), list_forms(console, viewer));
    let list: Answer = list.map(|mut list| {
        for automation in list["automations"].as_array_mut().into_iter().flatten() {
            *automation = with_state(automation.take(), &forms);
        }
        list
    });
    let page = Page::new(Section::Automations, "automations/list.html")
        .main("list", &list)
        .panel("forms", &forms)
        .with("presets", &PRESETS);
    add(page).respond(console, viewer, &account)
}

/// Returns the newest hundred forms. The screens show their names and ids.
pub(super) async fn list_forms(console: &Console, viewer: &Viewer) -> Answer {
    console.call(viewer, Call::of(&FORMS_LIST).query("sort", "newest").query("limit", "100")).await
}

/// Adds to an automation what its tags say, and its trigger in words.
pub(super) fn with_state(mut automation: Value, forms: &Answer) -> Value {
    let statistics = &automation["statistics"];
    let streak = statistics["consecutiveFailures"].as_u64().unwrap_or_default();
    let last = match (statistics["lastRunAt"].is_string(), streak) {
        (false, _) => Value::Null,
        (true, 0) => json!({ "tone": "good", "icon": "done", "text": "Done" }),
        (true, 1) => json!({ "tone": "bad", "icon": "failed", "text": "Failed" }),
        (true, _) => {
            json!({ "tone": "bad", "icon": "failed", "text": "Failed", "note": format!("{streak} in a row") })
        }
    };
    let is_on = automation["enabled"] == true;
    let state = if is_on { ("good", "done", "On") } else { ("", "close", "Off") };
    automation["state"] = json!({ "tone": state.0, "icon": state.1, "text": state.2 });
    automation["lastRun"] = last;
    automation["begins"] = trigger_in_words(&automation["trigger"], forms);
    automation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_failed_if_no_success_came_after() {
        let of = |enabled: bool, last_run: Value, streak: u32| {
            let statistics = json!({ "lastRunAt": last_run, "consecutiveFailures": streak });
            let shown = with_state(json!({ "enabled": enabled, "statistics": statistics }), &Ok(Value::Null));
            (shown["state"]["text"].clone(), shown["lastRun"]["text"].clone())
        };
        assert_eq!(of(true, Value::Null, 0), (json!("On"), Value::Null));
        assert_eq!(of(false, json!("2026-11-22T13:02:11Z"), 0), (json!("Off"), json!("Done")));
        assert_eq!(of(true, json!("2026-11-22T13:02:11Z"), 1).1, "Failed");
        assert_eq!(of(true, json!("2026-11-22T13:02:11Z"), 7).1, "Failed");
    }
}
