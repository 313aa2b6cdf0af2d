//! A definition in words: what starts a run, and its steps in order with their branches.

use serde::Serialize;
use serde_json::{Value, json};

use super::schedule_words::schedule_in_words;
use crate::api_client::Answer;

/// Characters of a value that a line quotes.
const QUOTED_CHARS_MAX: usize = 120;

/// A step in words, or a group of steps inside one: a branch, or the body of a loop.
#[derive(Debug, Default, Serialize)]
pub(super) struct FlowNode {
    is_group: bool,
    /// Empty for a group.
    id: String,
    /// The title that its owner gave it; empty for none.
    name: String,
    words: String,
    /// What it works with: an address, an expression, a slug.
    detail: String,
    /// When it is executed, and what a failure does.
    notes: String,
    children: Vec<FlowNode>,
}

/// Returns what starts a run. `forms` gives the name of a form.
pub(super) fn trigger_in_words(trigger: &Value, forms: &Answer) -> Value {
    let text = |name: &str| trigger[name].as_str().unwrap_or_default();
    match text("type") {
        "form_submission" => {
            let id = text("formId");
            let forms = forms.as_ref().ok().and_then(|forms| forms["forms"].as_array());
            let form = forms.into_iter().flatten().find(|form| form["id"] == id);
            let name = form.and_then(|form| form["name"].as_str());
            json!({ "words": "On each submission of", "form": name.unwrap_or("a form"), "formId": id })
        }
        "http" => {
            let method = trigger["method"].as_str().unwrap_or("POST");
            let secured = if trigger["auth"].is_object() { ", with a secret" } else { "" };
            json!({ "words": format!("On each {method} to its address{secured}") })
        }
        "schedule" => {
            let zone = trigger["timezone"].as_str().map(|zone| format!(" in {zone}")).unwrap_or_default();
            let when = schedule_in_words(text("cron"));
            let (first, rest) = when.split_at(when.chars().next().map_or(0, char::len_utf8));
            json!({ "words": format!("{}{rest}{zone}", first.to_uppercase()) })
        }
        other => json!({ "words": other }),
    }
}

/// Returns the steps of a list.
pub(super) fn steps_in_words(steps: &Value) -> Vec<FlowNode> {
    steps.as_array().into_iter().flatten().map(step_in_words).collect()
}

fn step_in_words(step: &Value) -> FlowNode {
    let quoted = |name: &str| shorten(&step[name]);
    let (words, detail) = match step["type"].as_str().unwrap_or_default() {
        "condition" => ("Decide", String::new()),
        "set" => ("Compute", names(&step["values"])),
        "transform" => ("Reshape", quoted("input")),
        "for_each" => ("For each element of", quoted("items")),
        "wait" if step["resume"] == true => ("Wait until its link is confirmed", String::new()),
        "wait" if step["until"].is_string() => ("Wait until", quoted("until")),
        "wait" => ("Wait for", quoted("for")),
        "stop" if step["status"] == "error" => ("End as failed", quoted("message")),
        "stop" => ("End", quoted("message")),
        "fetch" => ("Call", format!("{} {}", step["method"].as_str().unwrap_or("GET"), quoted("url"))),
        "respond" => ("Answer with status", step["status"].as_u64().unwrap_or(200).to_string()),
        "create_entry" => ("Add an entry to a page", String::new()),
        "delete_entry" => ("Delete an entry", quoted("entryId")),
        "update_page" => ("Update a page", quoted("slug")),
        "find" if step["in"] == "entries" => ("Find entries of a page", names(&step["where"])),
        "find" => ("Find submissions", names(&step["where"])),
        "create_submission" => ("Store a submission", names(&step["payload"])),
        "send_webhook" => ("Send to a webhook", names(&step["payload"])),
        // A type that this release does not know.
        other => (other, String::new()),
    };
    FlowNode {
        is_group: false,
        id: step["id"].as_str().unwrap_or_default().to_owned(),
        name: step["name"].as_str().unwrap_or_default().to_owned(),
        words: words.to_owned(),
        detail,
        notes: notes_of(step),
        children: groups_of(step),
    }
}

fn notes_of(step: &Value) -> String {
    let mut notes = Vec::new();
    if step["if"].is_string() {
        notes.push(format!("only if {}", shorten(&step["if"])));
    }
    if let Some(max) = step["retry"]["max"].as_u64() {
        notes.push(format!("up to {max} more attempt{}", if max == 1 { "" } else { "s" }));
    }
    if step["onError"] == "continue" {
        notes.push("goes on after a failure".to_owned());
    }
    if let Some(timeout) = step["timeoutMs"].as_u64() {
        notes.push(format!("at most {timeout} ms"));
    }
    notes.join(", ")
}

fn groups_of(step: &Value) -> Vec<FlowNode> {
    let group = |words: &str, condition: &Value, steps: &Value| FlowNode {
        is_group: true,
        words: words.to_owned(),
        detail: shorten(condition),
        children: steps_in_words(steps),
        ..FlowNode::default()
    };
    let branches = step["branches"].as_array().into_iter().flatten().enumerate();
    let mut groups: Vec<_> = branches
        .map(|(at, branch)| group(if at == 0 { "If" } else { "Else if" }, &branch["if"], &branch["steps"]))
        .collect();
    for (name, words) in [("else", "Otherwise"), ("steps", "Do")] {
        if step[name].as_array().is_some_and(|steps| !steps.is_empty()) {
            groups.push(group(words, &Value::Null, &step[name]));
        }
    }
    groups
}

/// Returns the names of an object's members.
fn names(object: &Value) -> String {
    let names: Vec<_> = object.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    shorten(&json!(names.join(", ")))
}

/// Returns the beginning of a text, or of a value as JSON.
fn shorten(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_their_order_and_their_branches() {
        let steps = json!([
            { "id": "known", "type": "find", "in": "entries", "where": { "email": "x" } },
            { "id": "new", "type": "condition", "name": "Only new", "branches": [
                { "if": "steps.known.count == 0", "steps": [{ "id": "tell", "type": "fetch", "method": "POST",
                    "url": "https://a.test", "retry": { "max": 1 }, "onError": "continue", "if": "true" }] },
                { "if": "false", "steps": [] }],
              "else": [{ "id": "end", "type": "stop", "status": "success" }] }]);
        let view = json!(steps_in_words(&steps));
        assert_eq!(view[0]["words"], "Find entries of a page");
        assert_eq!((&view[0]["detail"], &view[1]["name"]), (&json!("email"), &json!("Only new")));
        let groups = view[1]["children"].as_array().unwrap();
        let words: Vec<_> = groups.iter().map(|group| group["words"].as_str().unwrap()).collect();
        assert_eq!(words, ["If", "Else if", "Otherwise"]);
        let call = &groups[0]["children"][0];
        assert_eq!(call["detail"], "POST https://a.test");
        assert_eq!(call["notes"], "only if true, up to 1 more attempt, goes on after a failure");
    }

    #[test]
    fn a_trigger_names_its_form_and_its_time() {
        let forms: Answer = Ok(json!({ "forms": [{ "id": "1", "name": "Contact" }] }));
        let of = |trigger: Value| trigger_in_words(&trigger, &forms);
        assert_eq!(of(json!({ "type": "form_submission", "formId": "1" }))["form"], "Contact");
        assert_eq!(of(json!({ "type": "form_submission", "formId": "2" }))["form"], "a form");
        assert_eq!(of(json!({ "type": "http" }))["words"], "On each POST to its address");
        let schedule = json!({ "type": "schedule", "cron": "0 7 * * *", "timezone": "Europe/Berlin" });
        assert_eq!(of(schedule)["words"], "Every day at 7:00 in Europe/Berlin");
    }
}
